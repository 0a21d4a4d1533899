/** Reads runs from the database of a data folder, when no server is running. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommandContext } from './context.ts'
import { hasEnded, type RunRow } from '../part/log.ts'
import { sqliteStore } from '../store/sqlite-store.ts'
import { isHeld } from '../server/data-lock.ts'
import type { Access } from './access.ts'
import { fateOf, rowOf, storeAccess } from './store-access.ts'

/** Polling interval for a followed log, in ms: another process that writes does not notify this one. */
const every = 200

export function localAccess(context: CommandContext, file: string, data: string): Access {
  const store = sqliteStore(file, { readOnly: true })

  /** Whether a process may be running it: a server that does not answer, or a command that started or answered it. */
  async function mayRun({ id, protocol }: Pick<RunRow, 'id' | 'protocol'>): Promise<boolean> {
    if (isHeld(context.path(data), 'server')) return true
    if (!isHeld(context.path(data), 'anyone')) return false
    let by = protocol
    for await (const batch of store.log.read(id))
      for (const entry of batch) if (entry.type === 'resume') by = entry.protocol
    return by === 'cli'
  }

  return {
    ...storeAccess(store),
    async *read(run, after, follow) {
      let seq = after
      for (;;) {
        // The status is read before the entries: if the run has ended by now, all its entries are there.
        const found = await rowOf(store, run)
        const goesOn = follow && !hasEnded(found.status) && (await mayRun(found))
        for await (const batch of store.log.read(run, { after: seq })) {
          yield* batch
          seq = batch.at(-1)?.seq ?? seq
        }
        if (!goesOn) return
        await sleep(every)
      }
    },
    fate: async (run) => (run.status !== 'running' || (await mayRun(run)) ? undefined : fateOf(store, run.id)),
  }
}
