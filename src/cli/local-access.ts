/** Runs as their database holds them, while no server can be asked. */
import { setTimeout as sleep } from 'node:timers/promises'
import { MillraceError } from '../part/error.ts'
import { hasEnded, type RunRow } from '../part/log.ts'
import { sqliteStore } from '../record/sqlite-store.ts'
import { readView } from '../run/history.ts'
import { isHeld } from '../server/data-lock.ts'
import type { Access, Fate } from './access.ts'

/** Another process that writes wakes nobody here: how often a log that is followed is looked at, in ms. */
const every = 200

export function localAccess(file: string, data: string): Access {
  const store = sqliteStore(file, { readOnly: true })

  async function row(run: string): Promise<RunRow> {
    const found = await store.runs.get(run)
    if (found === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`)
    return found
  }

  async function fate({ id, status, protocol }: Pick<RunRow, 'id' | 'status' | 'protocol'>): Promise<Fate | undefined> {
    // A server that does not answer has its runs all the same. `millrace run` runs those that were started with it.
    if (status !== 'running' || isHeld(data, protocol === 'cli' ? 'anyone' : 'server')) return undefined
    // Rarely needed, and what reads YAML takes as long to load as all the rest.
    const { readStored } = await import('../run/stored-pipeline.ts')
    for await (const [first] of store.log.read(id)) {
      return first?.type === 'run-start' && readStored(first.pipeline)?.recover ? 'goes on' : 'is ended'
    }
    return 'is ended'
  }

  return {
    list: (query) => store.runs.list(query),
    status: async (run) => (await row(run)).status,
    async view(run) {
      await row(run)
      return (await readView(store, run))!
    },
    async *read(run, after, follow) {
      let seq = after
      for (;;) {
        // Looked at before the entries: what has ended by now is read to its end.
        const { status, protocol } = await row(run)
        const goesOn = follow && !hasEnded(status) && isHeld(data, protocol === 'cli' ? 'anyone' : 'server')
        for await (const batch of store.log.read(run, seq)) {
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
