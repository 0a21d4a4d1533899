/** The log from the terminal: through the live server of a data folder, or one that was named, else from its database. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunView } from '../part/fold.ts'
import type { RunQuery, RunRow, RunStatus } from '../part/log.ts'
import { isHeld } from '../server/data-lock.ts'
import { readServerFile } from '../server/server-file.ts'
import { checkData } from './folders.ts'
import { localAccess } from './local-access.ts'
import { isOwnAddress, remoteAccess, reachableUrl } from './remote-access.ts'

/** Where the runs are: flags that every command about runs has. */
export interface Where {
  data: string
  /** A server that the user named. */
  url?: string
}

/** What the next server will make of a run that is `running` in the log though nothing runs it. */
export type Fate = 'goes on' | 'is ended'

export interface Access {
  /** Of the live server; absent where the database is read. */
  url?: string
  list(query: RunQuery): Promise<RunRow[]>
  /** Throws `unknown-run`. */
  status(run: string): Promise<RunStatus>
  /** All that its log comes to. Throws `unknown-run`. */
  view(run: string): Promise<RunView>
  /** Entries after `after`; with `follow` until the run ends, or nothing is there that could go on with it. */
  read(run: string, after: number, follow: boolean): AsyncIterable<Entry>
  /** Of a run whose process is gone; undefined for every other. */
  fate(run: Pick<RunRow, 'id' | 'status' | 'protocol'>): Promise<Fate | undefined>
  /** Absent when there is no server: then nobody can be told to stop. */
  stop?(run: string): Promise<void>
  close(): Promise<void>
}

export async function openAccess({ data, url }: Where): Promise<Access> {
  const key = process.env['MILLRACE_API_KEY'] || undefined
  if (url !== undefined) return remoteAccess(parseUrl(url), { key })
  checkData(data)
  // The file says where its server is; whether there is one, only the lock does: anybody may have put the file there.
  const server = isHeld(data, 'server') ? readServerFile(data)?.url : undefined
  if (server !== undefined && URL.canParse(server)) {
    const reachable = reachableUrl(server)
    const isOwn = isOwnAddress(reachable)
    if (await answers(reachable)) return remoteAccess(reachable, { key: isOwn ? key : undefined, isKeyKept: !isOwn })
  }
  const file = join(data, 'millrace.db')
  if (existsSync(file)) return localAccess(file, data)
  const why = data === 'none' ? 'what ran was not kept' : 'nothing has run here yet'
  throw new MillraceError('usage', `There is no log in ${data}: ${why}, or --data must name another folder.`)
}

function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return text.replace(/\/+$/u, '')
  throw new MillraceError('usage', `--url must be a server's address such as http://localhost:3000, not "${text}".`)
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) })).ok
  } catch {
    return false
  }
}
