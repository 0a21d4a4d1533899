/** Takes over runs that need an owner, as the fleet reports them: orphaned by a crash, due, or answered in another process. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { type Store, timeOf } from '../part/log.ts'
import type { Supervisor } from './supervisor.ts'

export interface Recovered {
  resumed: number
  interrupted: number
}

export interface Adoption {
  /** Subscribes to the fleet for the runs that this process knows. */
  watch(): void
  /**
   * Subscribes to the fleet for all runs. Resolves when the orphaned active runs are resumed or ended; suspended runs with a reply or a passed
   * deadline follow in the background.
   */
  recover(): Promise<Recovered>
}

/** Maximum number of runs that are reconciled at the same time. */
const page = 64

export function createAdoption(store: Store, supervisor: Supervisor, shutdown: AbortSignal): Adoption {
  const { runs, fleet } = store
  let adoptsAll = false
  let isWatching = false

  async function reconcile(run: string, why: 'hint' | 'orphan') {
    // The failure of one run must not stop the others. It is retried.
    return supervisor.reconcile(run, why).catch(() => undefined)
  }

  async function adopt(ids: readonly string[]): Promise<Recovered> {
    const counts = { resumed: 0, interrupted: 0 }
    for (let i = 0; i < ids.length && !shutdown.aborted; i += page) {
      for (const looked of await Promise.all(ids.slice(i, i + page).map((id) => reconcile(id, 'orphan')))) {
        if (looked?.type === 'claimed') counts[looked.owned.work.type === 'end' ? 'interrupted' : 'resumed']++
      }
    }
    return counts
  }

  async function follow(hints: AsyncIterator<string[]>): Promise<void> {
    isWatching = true
    const looking = new Set<Promise<unknown>>()
    for (let next = await hints.next(); !next.done; next = await hints.next()) {
      for (const run of next.value) {
        if (!adoptsAll && !supervisor.knows(run)) continue
        // Only a fleet of several processes can report that an active run has no owner.
        const one = reconcile(run, fleet.shared && !supervisor.owns(run) ? 'orphan' : 'hint')
        looking.add(one)
        void one.finally(() => looking.delete(one))
        // If a process with many runs died, other processes may take the runs that are still queued here.
        if (looking.size >= page) await Promise.race(looking)
      }
    }
  }

  /** Runs whose last entry lies in the future: the clock was set back, so their deadlines seem too far away. */
  async function fromTheFuture(): Promise<string[]> {
    const found: string[] = []
    for (let before: string | undefined; ;) {
      const rows = await runs.list({
        status: 'suspended',
        limit: 200,
        ...omitUndefined({ before }),
      })
      const later = rows.filter(({ updatedAt }) => updatedAt > timeOf(store))
      found.push(...later.map(({ id }) => id))
      before = rows.at(-1)?.id
      if (later.length === 0 || before === undefined) return found
    }
  }

  return {
    watch() {
      if (isWatching) return
      isWatching = true
      const hints = fleet.wanted(shutdown)[Symbol.asyncIterator]()
      // Earlier hints are left to `recover`.
      void hints
        .next()
        .then(() => follow(hints))
        .catch(() => undefined)
    },

    async recover() {
      const leave = new AbortController()
      shutdown.addEventListener('abort', () => leave.abort())
      const hints = fleet.wanted(leave.signal)[Symbol.asyncIterator]()
      const first = await hints.next()
      const left = first.done ? [] : first.value
      const rows = await Promise.all(left.map((id) => runs.get(id)))
      const active = left.filter((_, i) => rows[i]?.status === 'running' && !supervisor.owns(left[i]!))
      const counts = await adopt(active)
      adoptsAll = true
      void adopt([...left.filter((id) => !active.includes(id)), ...(await fromTheFuture())])
      if (isWatching) leave.abort()
      else void follow(hints).catch(() => undefined)
      return counts
    },
  }
}
