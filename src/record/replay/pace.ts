/** When a replayed entry is due: as far apart as the recorded ones, faster or slower, without long pauses. */
import { pause } from '../../async/pause.ts'

/** A clock that can wait. Tests bring their own. */
export interface ReplayClock {
  /** ms, steady. */
  now(): number
  /** Resolves after so many ms, or when the signal aborts. */
  wait(ms: number, signal: AbortSignal | undefined): Promise<void>
}

export const steadyClock: ReplayClock = {
  now: () => performance.now(),
  wait: (ms, signal) => pause(ms, signal ?? new AbortController().signal),
}

/** The longest pause of a replay in ms: a run may have waited for an answer for days. */
export const longestPause = 5000

export interface Pace {
  /** The next entry has this timestamp. */
  next(timestamp: number): void
  /** ms until it is due; 0 or less if it is due now. */
  left(): number
}

/** `speed`: 1 is as recorded, 10 is ten times as fast, Infinity is at once. */
export function createPace(speed: number, clock: ReplayClock): Pace {
  let last: number | undefined
  let due = 0
  return {
    next(timestamp) {
      if (speed === Infinity) return
      if (last === undefined) due = clock.now()
      // The moments are added up, so that the time for sending does not slow the replay down.
      else due += Math.min(Math.max(0, timestamp - last) / speed, longestPause)
      last = Math.max(timestamp, last ?? 0)
    },
    left: () => (speed === Infinity ? 0 : due - clock.now()),
  }
}
