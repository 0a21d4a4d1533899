/** Access to runs: through a server, in a shared store, or in the database of a data folder. */
import type { CommandContext } from './context.ts'
import type { Entry } from '../part/entry.ts'
import type { RunView } from '../fold/run-view.ts'
import type { RunQuery, RunRow, RunStatus } from '../part/log.ts'
import type { ThreadQuery, ThreadRow } from '../part/thread.ts'
import type { ShownThread } from '../server/show-thread.ts'
import { databaseIn, placeOf, type Where } from './where.ts'

export { whereFlags, type Where } from './where.ts'

/** What the next server does with a run that the log has as `running` although its process is gone. */
export type Fate = 'goes on' | 'is ended'

export interface Access {
  /** URL of the server; absent when the store is read. */
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
  /** Absent where no server would see it. */
  stop?(run: string): Promise<void>
  close(): Promise<void>
}

export async function openAccess(context: CommandContext, where: Where): Promise<Access> {
  const place = await placeOf(context, where)
  switch (place.type) {
    case 'server':
      return (await import('./remote-access.ts')).remoteAccess(place.server.url, place.server)
    case 'store':
      return (await import('./shared-access.ts')).sharedAccess(context, place.url)
    case 'folder':
      return (await import('./local-access.ts')).localAccess(context, databaseIn(context, place.data), place.data)
  }
}
