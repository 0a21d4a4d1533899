/** Timers that tests replace. */

/** Calls back after so many ms, at most 2^31 - 1. Returns a function that stops it. */
export type StartTimer = (ms: number, ring: () => void) => () => void

/** Does not keep the process alive. */
export const startTimer: StartTimer = (ms, ring) => {
  const timer = setTimeout(ring, ms)
  timer.unref?.()
  return () => clearTimeout(timer)
}
