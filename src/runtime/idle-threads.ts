/**
 * Closes idle threads. Whether a thread is closed is derived (`part/thread.ts`), so the only work is to end its suspended runs, which would wait
 * forever. Several processes may do so at once: a stop counts once, a claim has one winner.
 */
import { omitUndefined } from '../part/omit-undefined.ts'
import type { RunRow, Store } from '../part/log.ts'
import { pause } from '../async/pause.ts'
import type { Clock } from '../engine/run-clock.ts'
import { openRequests, pendingAnswers } from './pending-answers.ts'

export interface IdleThreadsOptions {
  store: Store
  clock: Clock
  /** `Infinity`: never. */
  closeAfterMs: number
  shutdown: AbortSignal
  /** Makes this process end a stopped run. */
  reconcile(run: string, why: 'hint'): Promise<unknown>
}

export interface IdleThreads {
  /** Sweeps now, and then at intervals until the shutdown. */
  watch(): void
}

const hour = 3_600_000
/** Maximum number of runs of a thread among which the last entry is searched. Older ones get no more entries. */
const newest = 100

export function createIdleThreads({
  store,
  clock,
  closeAfterMs,
  shutdown,
  reconcile,
}: IdleThreadsOptions): IdleThreads {
  const { log, runs } = store

  async function sweep(): Promise<void> {
    const cutoff = clock.wall() - closeAfterMs
    for (let before: string | undefined; ;) {
      const rows = await runs.list({ status: 'suspended', limit: 200, ...omitUndefined({ before }) })
      for (const row of rows) {
        if (shutdown.aborted) return
        if (row.updatedAt <= cutoff) await close(row, cutoff)
      }
      if (rows.length < 200) return
      before = rows.at(-1)!.id
    }
  }

  async function close({ id, threadId }: RunRow, cutoff: number): Promise<void> {
    const others = await runs.list({ threadId, limit: newest })
    if (others.some(({ updatedAt }) => updatedAt > cutoff)) return
    const open = new Map((await openRequests(log, id)).map((request) => [request.requestId, request]))
    // A reply or a deadline came first: the run continues.
    if ([...open.values()].some(({ deadline }) => deadline <= clock.wall())) return
    const { stop, answered } = await pendingAnswers(log, id, open)
    if (stop !== undefined || answered.size > 0) return
    const reason = `The conversation was closed: nothing happened in it for ${inWords(closeAfterMs)}.`
    await log.post(id, 'stop', { reason, closed: true })
    await reconcile(id, 'hint')
  }

  return {
    watch() {
      if (closeAfterMs === Infinity) return
      const every = Math.max(50, Math.min(hour, closeAfterMs / 10))
      void (async () => {
        for (; !shutdown.aborted; await pause(every, shutdown, { background: true })) {
          // A failed sweep is retried.
          await sweep().catch(() => undefined)
        }
      })()
    },
  }
}

function inWords(ms: number): string {
  const [count, unit] =
    ms >= 48 * hour
      ? [Math.round(ms / (24 * hour)), 'days']
      : ms >= 2 * hour
        ? [Math.round(ms / hour), 'hours']
        : [Math.round(ms / 1000), 'seconds']
  return `${count} ${unit}`
}
