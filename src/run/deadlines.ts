/**
 * Timers for the open requests of runs that are or were suspended. Within one process they count time with the steady clock:
 * setting the wall clock neither shortens nor extends what a client was given.
 */
import type { EntryOf } from '../part/entry.ts'
import type { Clock } from './run-clock.ts'

export interface Deadlines {
  /**
   * From now on the run has timers for these requests and for no others. A request that has a timer keeps it, also when its
   * run went on and was suspended again. `now`: epoch ms by the clock of the run's log; after a restart, by the wall clock.
   */
  keep(run: string, requests: ReadonlyMap<string, EntryOf<'request'>>, now: number): void
  clear(run: string): void
  close(): void
}

/** `setTimeout` takes 31 bits of ms and fires at once for more: a later deadline is checked again then. */
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
        // A clock that was set back must not give a client more time than it had.
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
