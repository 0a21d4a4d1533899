/** Time of the parts of MCP that wait. Tests have their own. */
export interface Clock {
  /** ms of a steady clock. */
  now(): number
  /** Calls back once after `ms`. Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    timer.unref?.()
    return () => clearTimeout(timer)
  },
}
