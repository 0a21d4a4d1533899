/** `<data>/server.json`: how to reach the server of a data folder. `data-lock.ts` ensures that there is only one. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Endpoint } from '../models/resolver.ts'
import { hashText } from './http/hash-text.ts'

export interface ServerFile {
  pid: number
  /** Absent while the server starts. */
  url?: string
  version?: string
  /** Requests need `Authorization: Bearer`. */
  key?: boolean
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

/** Writes nothing when `data` is `none`: without a store, other processes have nothing to connect for. */
export function writeServerFile(data: string, file: ServerFile): void {
  if (data !== 'none') writeFileSync(pathOf(data), `${JSON.stringify(file)}\n`, { mode: 0o600 })
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
