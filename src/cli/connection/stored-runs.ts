/** Reads runs and threads in a store, of a data folder or shared. */
import { readView } from '../../fold/read-view.ts'
import { MillraceError } from '../../part/error.ts'
import type { RunRow, Store } from '../../part/log.ts'
import { timeOf } from '../../part/log.ts'
import { defaultCloseAfterMs } from '../../part/thread.ts'
import type { Connection, OrphanOutcome } from '../connection.ts'

/** No config is read: a thread counts as closed after the default time. */
const threadRule = (store: Store) => ({ closeAfterMs: defaultCloseAfterMs, now: timeOf(store) })

/** `open` opens the store when it is first needed. */
export function storedRuns(
  open: () => Promise<Store>,
): Pick<Connection, 'list' | 'threads' | 'thread' | 'status' | 'view' | 'feedback'> {
  return {
    list: async (query) => (await open()).runs.list(query),
    async threads(query) {
      const { listThreads } = await import('../../record/threads/list-threads.ts')
      const store = await open()
      return listThreads(store, query, threadRule(store))
    },
    async thread(id, { messages, runs } = {}) {
      const { showThread } = await import('../../server/show-thread.ts')
      const store = await open()
      return showThread(store, id, threadRule(store), {
        messages,
        ...(runs !== undefined && { page: { limit: runs } }),
      })
    },
    feedback: async (run) => (await (await open()).feedback?.of(run)) ?? [],
    status: async (run) => (await rowOf(await open(), run)).status,
    async view(run) {
      const store = await open()
      await rowOf(store, run)
      return (await readView(store, run))!
    },
  }
}

/** Throws `unknown-run`. */
export async function rowOf(store: Store, run: string): Promise<RunRow> {
  const found = await store.runs.get(run)
  if (found === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`)
  return found
}

/** How the next server continues a run whose process is gone. */
export async function outcomeOf(store: Store, id: string): Promise<OrphanOutcome> {
  // Loaded on demand: rarely needed, and the YAML parser takes as long to load as everything else.
  const { readStored } = await import('../../engine/stored-pipeline.ts')
  for await (const [first] of store.log.read(id)) {
    const isOurs = first?.type === 'run-start' && first.foreign === undefined
    return isOurs && readStored(first.pipeline)?.recover ? 'resumed' : 'interrupted'
  }
  return 'interrupted'
}
