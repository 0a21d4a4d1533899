/** Ends a model call that is silent for too long: before its first content, or between two parts of its answer. */
import { formatLimit } from '../part/format-limit.ts'
import type { StepTimeouts } from '../pipeline/pipeline.ts'
import { addCountdown, removeCountdown, type Countdown } from './countdown.ts'
import { defaultTimeouts, msOf, reasoningSilence, timedOut, type DefaultTimeouts } from './time-limits.ts'

export interface StallWatch {
  /** Aborts with `timed-out`, or with the reason of the run's signal. */
  readonly signal: AbortSignal
  /** Set it with every piece of content. */
  readonly countdown: Pick<Countdown, 'restart'>
  /** The call, and not the run, was ended. */
  readonly expired: unknown
  release(): void
}

type Silence = Pick<StepTimeouts, 'firstToken' | 'idle'>

export interface StallOptions {
  /** What the agent sets. */
  timeouts: Silence
  defaults: DefaultTimeouts
  /** The model was asked to think. */
  reasons: boolean
  signal: AbortSignal
}

/** Undefined when neither limit holds. */
export function createStallWatch({ timeouts, defaults, reasons, signal }: StallOptions): StallWatch | undefined {
  const limitOf = (key: keyof Silence) =>
    msOf(timeouts[key] ?? defaults[key] ?? (reasons ? reasoningSilence : defaultTimeouts[key]))
  const firstToken = limitOf('firstToken')
  const idle = limitOf('idle')
  if (firstToken === undefined && idle === undefined) return undefined
  // Forwarded by hand: `AbortSignal.any` takes several times the memory.
  const controller = new AbortController()
  const forward = () => controller.abort(signal.reason)
  if (signal.aborted) forward()
  else signal.addEventListener('abort', forward)

  let expired: unknown
  let spoke = false
  const countdown: Countdown = {
    ms: firstToken ?? Infinity,
    every: idle ?? Infinity,
    since: performance.now(),
    restart: false,
    restarted() {
      spoke = true
      countdown.ms = idle ?? Infinity
    },
    expire() {
      const key = spoke ? 'idle' : 'firstToken'
      const where = spoke ? 'in the middle of its answer' : 'before its first token'
      const message = `The model said nothing for ${formatLimit(countdown.ms)} ${where}.`
      expired = timedOut(message, timeouts[key] === undefined ? key : undefined)
      controller.abort(expired)
    },
  }
  addCountdown(countdown)
  return {
    signal: controller.signal,
    countdown,
    get expired() {
      return expired
    },
    release() {
      removeCountdown(countdown)
      signal.removeEventListener('abort', forward)
    },
  }
}
