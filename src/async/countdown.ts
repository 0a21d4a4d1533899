/**
 * Time limits of all runs of a process on one shared timer. A timer and an abort signal for each open stream would use too much
 * memory. Here a limit is one small object, and checking ten thousand takes less than a millisecond.
 */

export interface Countdown {
  /** ms from `since` until it expires. `Infinity` waits for `restart`. */
  ms: number
  /** How often to check it, in ms. It is checked at least once a second. */
  every?: number
  /** `performance.now()`. */
  since: number
  /** Set it to start again at the next sweep. Cheap enough to do for every delta. */
  restart: boolean
  /** Called by the sweep that finds `restart` set, before it starts again. */
  restarted?(): void
  /** Called once, after the countdown has been removed. */
  expire(): void
}

/** Most ms between two sweeps, so no limit is exceeded by more. */
const longestPause = 1000

const countdowns = new Set<Countdown>()
let timer: ReturnType<typeof setTimeout> | undefined
/** When the next sweep is due. */
let due = Infinity

/** Starts a countdown. It runs until it expires or is removed. */
export function addCountdown(countdown: Countdown): void {
  countdowns.add(countdown)
  schedule(countdown.since + Math.min(countdown.ms, countdown.every ?? longestPause, longestPause))
}

export function removeCountdown(countdown: Countdown): void {
  countdowns.delete(countdown)
  if (countdowns.size > 0) return
  // Without a timer the process can exit.
  clearTimeout(timer)
  timer = undefined
  due = Infinity
}

function schedule(at: number): void {
  if (at >= due) return
  clearTimeout(timer)
  due = at
  timer = setTimeout(sweep, Math.max(1, at - performance.now()))
}

function sweep(): void {
  const now = performance.now()
  // While the process was paused (a debugger, a sleeping laptop) nothing could arrive, so that time does not count.
  const heldUp = now - due > longestPause ? now - due : 0
  timer = undefined
  due = Infinity
  let next = now + longestPause
  for (const countdown of countdowns) {
    if (countdown.restart) {
      countdown.restarted?.()
      countdown.restart = false
      countdown.since = now
    } else countdown.since += heldUp
    const end = countdown.since + countdown.ms
    if (end > now) next = Math.min(next, end, now + (countdown.every ?? longestPause))
    else {
      countdowns.delete(countdown)
      countdown.expire()
    }
  }
  if (countdowns.size > 0) schedule(next)
}
