/** Requests that real clients have sent, where they are beside the repository. Tests of them are skipped elsewhere. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'

export interface RecordedRequests<T> {
  /** Without `.json`; empty where there are none. */
  names: string[]
  read(name: string): T
}

export function recordedRequests<T>(kind: 'messages' | 'responses'): RecordedRequests<T> {
  const folder = new URL(`../../../shared/fixtures/${kind}/`, import.meta.url)
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : []
  return {
    names: files.map((file) => file.replace(/\.json$/u, '')),
    read: (name) => JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as T,
  }
}
