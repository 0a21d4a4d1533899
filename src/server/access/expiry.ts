/** Calls back when credentials end. One timer for all: it is set to the earliest end. */

export interface Expiry {
  /**
   * Calls `end` once, at a time in epoch ms, or soon if it has passed; never before `at` has returned. `end` must not throw. Returns a function that
   * stops waiting.
   */
  at(time: number, end: () => void): () => void
  close(): void
}

/** Calls back after so many ms. Returns a function that cancels it. */
export type Schedule = (run: () => void, ms: number) => () => void

/** Timers fire at once for longer delays: 24.8 days. */
const longest = 2 ** 31 - 1

export function createExpiry(now: () => number, schedule: Schedule = onTimer): Expiry {
  const waiting = new Map<number, Set<() => void>>()
  let earliest = Infinity
  let cancel: (() => void) | undefined

  function wait(time: number): void {
    cancel?.()
    earliest = time
    cancel = time === Infinity ? undefined : schedule(run, Math.min(Math.max(time - now(), 0), longest))
  }

  function run(): void {
    const due: (() => void)[] = []
    let next = Infinity
    for (const [time, ends] of waiting) {
      if (time <= now()) {
        due.push(...ends)
        waiting.delete(time)
      } else next = Math.min(next, time)
    }
    wait(next)
    for (const end of due) end()
  }

  return {
    at(time, end) {
      // The same function may wait twice.
      const own = () => {
        if (!isLeft) end()
      }
      let isLeft = false
      const ends = waiting.get(time) ?? new Set()
      waiting.set(time, ends.add(own))
      if (time < earliest) wait(time)
      return () => {
        isLeft = true
        ends.delete(own)
        if (ends.size === 0 && waiting.get(time) === ends) waiting.delete(time)
      }
    },
    close() {
      waiting.clear()
      wait(Infinity)
    },
  }
}

function onTimer(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms)
  // Not in browsers and workers, whose timers are numbers.
  ;(timer as { unref?: () => void }).unref?.()
  return () => clearTimeout(timer)
}
