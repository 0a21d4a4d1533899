/** Reads runs from the database, when no server is running. */
import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../part/error.ts'
import { hasEnded, type RunRow } from '../part/log.ts'
import { defaultCloseAfterMs } from '../part/thread.ts'
import { sqliteStore } from '../store/sqlite-store.ts'
import { readView } from '../fold/read-view.ts'
import { isHeld } from '../server/data-lock.ts'
import type { Access, Fate } from './access.ts'

/** Polling interval for a followed log, in ms: another process that writes does not notify this one. */
const every = 200

/** No config is read: a thread counts as closed after the default time. */
const rule = () => ({ closeAfterMs: defaultCloseAfterMs, now: Date.now() })

export function localAccess(file: string, data: string): Access {
  const store = sqliteStore(file, { readOnly: true })

  async function row(run: string): Promise<RunRow> {
    const found = await store.runs.get(run)
    if (found === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`)
    return found
  }

  /** Whether a process may be running it: a server that does not answer, or a command that started or answered it. */
  async function mayRun({ id, protocol }: Pick<RunRow, 'id' | 'protocol'>): Promise<boolean> {
    if (isHeld(data, 'server')) return true
    if (!isHeld(data, 'anyone')) return false
    let by = protocol
    for await (const batch of store.log.read(id))
      for (const entry of batch) if (entry.type === 'resume') by = entry.protocol
    return by === 'cli'
  }

  async function fate({ id, status, protocol }: Pick<RunRow, 'id' | 'status' | 'protocol'>): Promise<Fate | undefined> {
    if (status !== 'running' || (await mayRun({ id, protocol }))) return undefined
    // Loaded on demand: rarely needed, and the YAML parser takes as long to load as everything else.
    const { readStored } = await import('../engine/stored-pipeline.ts')
    for await (const [first] of store.log.read(id)) {
      return first?.type === 'run-start' && readStored(first.pipeline)?.recover ? 'goes on' : 'is ended'
    }
    return 'is ended'
  }

  return {
    list: (query) => store.runs.list(query),
    async threads(query) {
      const { listThreads } = await import('../record/threads/list-threads.ts')
      return listThreads(store, query, rule())
    },
    async thread(id, messages) {
      const { showThread } = await import('../server/show-thread.ts')
      return showThread(store, id, rule(), { messages })
    },
    status: async (run) => (await row(run)).status,
    async view(run) {
      await row(run)
      return (await readView(store, run))!
    },
    async *read(run, after, follow) {
      let seq = after
      for (;;) {
        // The status is read before the entries: if the run has ended by now, all its entries are there.
        const found = await row(run)
        const goesOn = follow && !hasEnded(found.status) && (await mayRun(found))
        for await (const batch of store.log.read(run, { after: seq })) {
          yield* batch
          seq = batch.at(-1)?.seq ?? seq
        }
        if (!goesOn) return
        await sleep(every)
      }
    },
    fate,
    close: () => store.close(),
  }
}
