/** Access to runs: through the server of `--url`, the live server of the data folder, or else its database. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunView } from '../fold/run-view.ts'
import type { RunQuery, RunRow, RunStatus } from '../part/log.ts'
import type { ThreadQuery, ThreadRow } from '../part/thread.ts'
import type { ShownThread } from '../server/show-thread.ts'
import { checkData } from './folders.ts'
import { localAccess } from './local-access.ts'
import { findServer, namedServer } from './live-server.ts'
import { remoteAccess } from './remote-access.ts'

/** Where the runs are: flags of every command about runs. */
export interface Where {
  data: string
  /** The server of `--url`. */
  url?: string
}

/** What the next server does with a run that the log has as `running` although its process is gone. */
export type Fate = 'goes on' | 'is ended'

export interface Access {
  /** URL of the server; absent when the database is read. */
  url?: string
  list(query: RunQuery): Promise<RunRow[]>
  threads(query: ThreadQuery): Promise<ThreadRow[]>
  /** With at most about so many of its newest messages. Throws `unknown-thread`. */
  thread(id: string, messages?: number): Promise<ShownThread>
  /** Throws `unknown-run`. */
  status(run: string): Promise<RunStatus>
  /** The state of the run, from its log. Throws `unknown-run`. */
  view(run: string): Promise<RunView>
  /** Entries after `after`; with `follow`, until the run ends or no process is left that could continue it. */
  read(run: string, after: number, follow: boolean): AsyncIterable<Entry>
  /** For a run whose process is gone; otherwise undefined. */
  fate(run: Pick<RunRow, 'id' | 'status' | 'protocol'>): Promise<Fate | undefined>
  /** Absent without a server. */
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
  return server === undefined ? localAccess(databaseIn(data), data) : remoteAccess(server.url, server)
}

/** The database of a data folder. Throws `usage` if there is none. */
export function databaseIn(data: string): string {
  checkData(data)
  const file = join(data, 'millrace.db')
  if (existsSync(file)) return file
  const why =
    data === 'none'
      ? 'Runs with --data none are not kept.'
      : 'Start a run with millrace run or millrace serve, or name another data folder with --data.'
  throw new MillraceError('usage', `No runs found in ${data}. ${why}`)
}

/** The flags that lead to the same runs, to append to a printed command; often none. */
export function whereFlags({ data, url }: Where): string {
  return `${data === '.millrace' ? '' : ` --data ${data}`}${url === undefined ? '' : ` --url ${url}`}`
}
