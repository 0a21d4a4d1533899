/**
 * Timers for the open requests of suspended runs. Within one process they use the steady clock, so setting the wall clock neither
 * shortens nor extends a client's time.
 */
import type { EntryOf } from '../part/entry.ts'
import type { Clock } from '../engine/run-clock.ts'

export interface Deadlines {
  /**
   * Sets the run's timers to exactly these requests. A request that already has a timer keeps it, even if the run was resumed
   * and suspended again. `now`: epoch ms by the clock of the run's log, or by the wall clock after a restart.
   */
  keep(run: string, requests: ReadonlyMap<string, EntryOf<'request'>>, now: number): void
  clear(run: string): void
  close(): void
}

/** `setTimeout` takes 31 bits of ms and fires at once for more. For later deadlines the timer is set again. */
const longest = 2 ** 31 - 1

export function createDeadlines({ steady }: Clock, expired: (run: string, requestId: string) => void): Deadlines {
  const timers = new Map<string, Map<string, ReturnType<typeof setTimeout>>>()

  function start(run: string, requestId: string, end: number): void {
    const left = Math.max(0, end - steady())
    const timer = setTimeout(
      () => {
        if (left > longest) return start(run, requestId, end)
        timers.get(run)?.delete(requestId)
        expired(run, requestId)
      },
      Math.min(left, longest),
    )
    timer.unref?.()
    const ofRun = timers.get(run) ?? new Map<string, ReturnType<typeof setTimeout>>()
    timers.set(run, ofRun.set(requestId, timer))
  }

  function clear(run: string): void {
    for (const timer of timers.get(run)?.values() ?? []) clearTimeout(timer)
    timers.delete(run)
  }

  return {
    keep(run, requests, now) {
      const ofRun = timers.get(run)
      for (const [requestId, timer] of ofRun ?? []) {
        if (requests.has(requestId)) continue
        clearTimeout(timer)
        ofRun!.delete(requestId)
      }
      for (const [requestId, { deadline, timestamp }] of requests) {
        if (ofRun?.has(requestId)) continue
        // If the clock was set back, the client must not get more time than the whole deadline.
        const left = Math.min(deadline - now, deadline - timestamp)
        start(run, requestId, steady() + left)
      }
    },
    clear,
    close() {
      for (const run of timers.keys()) clear(run)
    },
  }
}
