/** Timers for open requests of suspended runs: one timer per request, none while a run has an owner. */
export interface Deadlines {
  set(run: string, requestId: string, deadline: number): void
  clear(run: string): void
  close(): void
}

/** setTimeout takes 31 bits of ms; a later deadline is looked at again then. */
const longest = 2 ** 31 - 1

export function createDeadlines(now: () => number, expired: (run: string, requestId: string) => void): Deadlines {
  const timers = new Map<string, Map<string, ReturnType<typeof setTimeout>>>()

  function set(run: string, requestId: string, deadline: number): void {
    const wait = Math.max(0, deadline - now())
    const timer = setTimeout(
      () => {
        if (deadline > now()) set(run, requestId, deadline)
        else {
          timers.get(run)?.delete(requestId)
          expired(run, requestId)
        }
      },
      Math.min(wait, longest),
    )
    timer.unref?.()
    const ofRun = timers.get(run) ?? new Map<string, ReturnType<typeof setTimeout>>()
    clearTimeout(ofRun.get(requestId))
    ofRun.set(requestId, timer)
    timers.set(run, ofRun)
  }

  function clear(run: string): void {
    for (const timer of timers.get(run)?.values() ?? []) clearTimeout(timer)
    timers.delete(run)
  }

  return {
    set,
    clear,
    close() {
      for (const run of timers.keys()) clear(run)
    },
  }
}
