/** What is read of runs in any store. */
import { readView } from '../fold/read-view.ts'
import { MillraceError } from '../part/error.ts'
import { type RunRow, type Store, timeOf } from '../part/log.ts'
import { defaultCloseAfterMs } from '../part/thread.ts'
import type { Access, Fate } from './access.ts'

/** No config is read: a thread counts as closed after the default time. */
const rule = (store: Store) => ({ closeAfterMs: defaultCloseAfterMs, now: timeOf(store) })

export async function rowOf(store: Store, run: string): Promise<RunRow> {
  const found = await store.runs.get(run)
  if (found === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`)
  return found
}

/** What becomes of a run whose process is gone. */
export async function fateOf(store: Store, id: string): Promise<Fate> {
  // Loaded on demand: rarely needed, and the YAML parser takes as long to load as everything else.
  const { readStored } = await import('../engine/stored-pipeline.ts')
  for await (const [first] of store.log.read(id)) {
    const isOurs = first?.type === 'run-start' && first.foreign === undefined
    return isOurs && readStored(first.pipeline)?.recover ? 'goes on' : 'is ended'
  }
  return 'is ended'
}

export function storeAccess(store: Store): Omit<Access, 'read' | 'fate'> {
  return {
    list: (query) => store.runs.list(query),
    async threads(query) {
      const { listThreads } = await import('../record/threads/list-threads.ts')
      return listThreads(store, query, rule(store))
    },
    async thread(id, messages) {
      const { showThread } = await import('../server/show-thread.ts')
      return showThread(store, id, rule(store), { messages })
    },
    status: async (run) => (await rowOf(store, run)).status,
    async view(run) {
      await rowOf(store, run)
      return (await readView(store, run))!
    },
    close: () => store.close(),
  }
}
