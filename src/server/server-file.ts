/** The server of a data folder: it locks the folder, and `<data>/server.json` has its address. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { MillraceError } from '../part/error.ts'
import type { Endpoint } from '../models/resolver.ts'
import { lockData } from './data-lock.ts'
import { hashText } from './http/key.ts'

export interface ServerFile {
  pid: number
  /** Absent while the server starts. */
  url?: string
  version?: string
  /** Requests need `Authorization: Bearer`. */
  key?: boolean
  /** Grants editing of agents: `server.edit: 'token'`. */
  token?: string
  /** The real path of the agents folder. */
  dir?: string
  /** Its endpoints, hashed with `hashEndpoint` because a URL may contain a password. */
  endpoints?: string[]
}

/** The server of a data folder, if its process is alive. */
export function readServerFile(data: string): ServerFile | undefined {
  try {
    const file = JSON.parse(readFileSync(pathOf(data), 'utf8')) as ServerFile
    process.kill(file.pid, 0)
    return file
  } catch {
    return undefined
  }
}

/** Writes nothing when `data` is `none`: without a store, other processes have no reason to connect. */
export function writeServerFile(data: string, file: ServerFile): void {
  if (data === 'none') return
  // A new file replaces the old one, which would keep its mode and its open handles.
  const path = pathOf(data)
  const made = `${path}.new`
  rmSync(made, { force: true })
  writeFileSync(made, `${JSON.stringify(file)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(made, path)
}

export function removeServerFile(data: string): void {
  rmSync(pathOf(data), { force: true })
}

export function hashEndpoint({ name, baseURL, protocol = 'openai-chat' }: Endpoint): Promise<string> {
  return hashText(`${name}=${protocol}+${baseURL}`)
}

function pathOf(data: string): string {
  return join(resolve(data), 'server.json')
}

/**
 * Locks the folder for a server. Throws `data-in-use` if another process has locked the folder. `shared`: the runs are in a shared store, so several servers may use
 * the folder, and no other process looks for them there.
 */
export function claimData(data: string, shared: boolean): () => void {
  if (data === 'none') return () => undefined
  const release = lockData(data, shared ? 'shared' : 'alone')
  if (release === undefined) {
    const other = readServerFile(data)
    const who = other === undefined ? 'a run' : `process ${other.pid}`
    const where = other?.url === undefined ? '' : ` at ${other.url}`
    const cure = 'Stop it, or choose another folder with --data.'
    throw new MillraceError('data-in-use', `The data folder ${data} is used by ${who}${where}. ${cure}`)
  }
  if (shared) return release
  writeServerFile(data, { pid: process.pid })
  return () => {
    removeServerFile(data)
    release()
  }
}
