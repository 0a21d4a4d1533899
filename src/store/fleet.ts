/** Reports the runs that need an owner, within one process: first those in the store, then announced ones and deadlines. */
import type { DueRun, Fleet } from '../part/log.ts'

export interface FleetSource {
  /** Runs that need an owner now: see `Fleet.wanted`. */
  left(): string[]
  /** See `RunIndex.due`. */
  due(before: number, limit: number): DueRun[]
  /** Whether the inbox of a run has more than `seen` messages. */
  hasMore(run: string, seen: number): boolean
}

export interface LocalFleet extends Fleet {
  /** Call this when a run is claimed: it no longer has a deadline. */
  claimed(run: string): void
  /** Ends `wanted` and all timers. */
  close(): void
}

/** Polling interval in ms for deadlines of an earlier process, which are not announced. */
const lookEvery = 3_600_000
/** `setTimeout` takes 31 bits of ms and fires at once for more. */
const longest = 2 ** 31 - 1

interface Watcher {
  runs: Set<string>
  wake(): void
}

/** `now`: epoch ms by the clock of the store. */
export function createFleet({ left, due, hasMore }: FleetSource, now: () => number = () => Date.now()): LocalFleet {
  const watchers = new Set<Watcher>()
  /** Announced without a watcher. */
  const unread = new Set<string>()
  const timers = new Map<string, ReturnType<typeof setTimeout>>()
  const readers = new Map<string, number>()
  let looking: ReturnType<typeof setTimeout> | undefined
  let closed = false

  function announce(run: string): void {
    if (watchers.size === 0) unread.add(run)
    for (const watcher of watchers) {
      watcher.runs.add(run)
      watcher.wake()
    }
  }

  function clear(run: string): void {
    clearTimeout(timers.get(run))
    timers.delete(run)
  }

  function arm(run: string, at: number): void {
    const delay = at - now()
    const timer = setTimeout(
      () => {
        timers.delete(run)
        if (delay > longest) arm(run, at)
        else announce(run)
      },
      Math.min(Math.max(0, delay), longest),
    )
    timer.unref?.()
    timers.set(run, timer)
  }

  /** Arms the deadlines from `from` until the next poll. */
  function armDue(from: number): void {
    looking = setTimeout(() => armDue(0), lookEvery)
    looking.unref?.()
    try {
      for (const { id, dueAt } of due(now() + lookEvery, Infinity)) {
        if (dueAt > from && !timers.has(id)) arm(id, dueAt)
      }
    } catch {
      // A failing store is polled again later.
    }
  }

  function hasUnseen(run: string, seen: number | undefined): boolean {
    try {
      return seen !== undefined && hasMore(run, seen)
    } catch {
      // The code that reconciles the run asks the store again, until it responds.
      return true
    }
  }

  return {
    shared: false,
    async *wanted(signal) {
      if (closed) return
      let asleep: PromiseWithResolvers<void> | undefined
      const wake = () => asleep?.resolve()
      const watcher: Watcher = { runs: new Set([...left(), ...unread]), wake }
      unread.clear()
      // Passed deadlines are in the first batch.
      if (looking === undefined) armDue(now())
      watchers.add(watcher)
      signal.addEventListener('abort', wake)
      try {
        for (let first = true; !signal.aborted && !closed; first = false) {
          if (first || watcher.runs.size > 0) {
            const runs = [...watcher.runs]
            watcher.runs.clear()
            yield runs
          } else {
            asleep = Promise.withResolvers()
            await asleep.promise
          }
        }
      } finally {
        watchers.delete(watcher)
        signal.removeEventListener('abort', wake)
      }
    },
    async want(run, at, seen) {
      if (closed) return
      clear(run)
      if (at === undefined || hasUnseen(run, seen)) announce(run)
      else arm(run, at)
    },
    attend(run) {
      readers.set(run, (readers.get(run) ?? 0) + 1)
      let reads = true
      return () => {
        const count = readers.get(run) ?? 0
        if (!reads) return
        reads = false
        if (count > 1) readers.set(run, count - 1)
        else readers.delete(run)
      }
    },
    attended: async (run) => readers.has(run),
    claimed(run) {
      clear(run)
      unread.delete(run)
    },
    close() {
      closed = true
      clearTimeout(looking)
      for (const run of timers.keys()) clear(run)
      for (const { wake } of watchers) wake()
    },
  }
}
