/** `<data>/server.json`: where the server of a data folder is found. That there is only one is `data-lock.ts`'s matter. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Endpoint } from '../run/models/resolver.ts'
import { hashText } from './hash-text.ts'

export interface ServerFile {
  pid: number
  /** Absent while it starts. */
  url?: string
  version?: string
  /** It wants `Authorization: Bearer`. */
  key?: boolean
  /** The real path of its folder of agents. */
  dir?: string
  /** Hashes of the endpoints that it knows: `hashEndpoint`. An address may hold a password. */
  endpoints?: string[]
}

/** The server that a data folder belongs to, if its process is alive. */
export function readServerFile(data: string): ServerFile | undefined {
  try {
    const file = JSON.parse(readFileSync(pathOf(data), 'utf8')) as ServerFile
    process.kill(file.pid, 0)
    return file
  } catch {
    return undefined
  }
}

/** With `none` for a folder nothing is written: there is nothing that others could come for. */
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
