/** Default time limits of model calls and runs. */
import { MillraceError } from '../part/error.ts'
import { formatLimit } from '../part/format-limit.ts'
import type { TimeLimit, Timeouts } from '../pipeline/pipeline.ts'
import { addCountdown, removeCountdown, type Countdown } from '../async/countdown.ts'

/** Milliseconds. */
export const defaultTimeouts = { firstToken: 120_000, idle: 120_000, run: 900_000 } as const

/** For calls with `reasoning`, whose models may think for minutes before their first content, and for the first token of a local server. */
export const reasoningSilence = 600_000

/** Timeouts for agents that set none. A missing key means the built-in default. */
export type DefaultTimeouts = Pick<Timeouts, 'firstToken' | 'idle' | 'run'>

export type SilenceLimits = Pick<Timeouts, 'firstToken' | 'idle'>

/** Both limits at once: the shorter one where both are set, else the one that is set. */
export function stricter(a: SilenceLimits, b: SilenceLimits): SilenceLimits {
  const shorter = (x: TimeLimit | undefined, y: TimeLimit | undefined) => {
    if (x === undefined || x === 'none') return y ?? x
    return y === undefined || y === 'none' ? x : Math.min(x, y)
  }
  return { firstToken: shorter(a.firstToken, b.firstToken), idle: shorter(a.idle, b.idle) }
}

export function msOf(limit: TimeLimit): number | undefined {
  return limit === 'none' ? undefined : limit
}

/**
 * Starts the default time limit of a run. It counts only while the run is active in this process: not while it waits for its turn
 * in a thread or for an answer, and not during a restart. Returns a function that ends the limit.
 */
export function limitUnsetRun(
  { timeouts, defaults }: { timeouts?: Timeouts | undefined; defaults: DefaultTimeouts },
  expire: (error: MillraceError) => void,
): (() => void) | undefined {
  const ms = timeouts?.run === undefined ? msOf(defaults.run ?? defaultTimeouts.run) : undefined
  if (ms === undefined) return undefined
  const countdown: Countdown = {
    ms,
    since: performance.now(),
    restart: false,
    expire: () => expire(timedOut(`The run took longer than ${formatLimit(ms)}.`, 'run')),
  }
  addCountdown(countdown)
  return () => removeCountdown(countdown)
}

/** Clients see the limit. The log also says how to change a default. */
export function timedOut(message: string, key?: keyof DefaultTimeouts): MillraceError {
  const cure = `This is the default. To change it, set timeouts.${key} in the agent or in the config ("none" removes it).`
  return new MillraceError('timed-out', message, key === undefined ? {} : { detail: cure })
}
