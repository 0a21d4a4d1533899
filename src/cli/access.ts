/** The log from the terminal: through the live server of a data folder, or one that was named, else from its database. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunView } from '../part/fold.ts'
import type { RunQuery, RunRow, RunStatus } from '../part/log.ts'
import { checkData } from './folders.ts'
import { localAccess } from './local-access.ts'
import { findServer, namedServer } from './live-server.ts'
import { remoteAccess } from './remote-access.ts'

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
  if (url !== undefined) {
    const named = namedServer(url)
    return remoteAccess(named.url, named)
  }
  checkData(data)
  const server = await findServer(data)
  if (server !== undefined) return remoteAccess(server.url, server)
  const file = join(data, 'millrace.db')
  if (existsSync(file)) return localAccess(file, data)
  const why = data === 'none' ? 'what ran was not kept' : 'nothing has run here yet'
  throw new MillraceError('usage', `There is no log in ${data}: ${why}, or --data must name another folder.`)
}

/** The flags that lead to the same runs, for a command line to paste; often none. */
export function whereFlags({ data, url }: Where): string {
  return `${data === '.millrace' ? '' : ` --data ${data}`}${url === undefined ? '' : ` --url ${url}`}`
}
