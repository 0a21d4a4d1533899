/** Stops a model call that sends nothing for too long, before its first content or between two parts of its answer. */
import type { MillraceError } from '../part/error.ts'
import { formatLimit } from '../part/format-limit.ts'
import { addCountdown, removeCountdown, type Countdown } from '../async/countdown.ts'
import {
  defaultTimeouts,
  msOf,
  reasoningSilence,
  timedOut,
  type DefaultTimeouts,
  type SilenceLimits,
} from './time-limits.ts'

export interface StallOptions {
  /** The agent's limits. */
  timeouts: SilenceLimits
  defaults: DefaultTimeouts
  /** Whether the step sets `reasoning`. */
  reasons: boolean
  /** A server of the user's own: it may load the model, and reads long prompts slowly. */
  isLocal?: boolean | undefined
  signal: AbortSignal
  /** Who is silent, for the error. Default: `The model`. */
  who?: string
}

/** Undefined if neither limit applies. */
export function createStallWatch(options: StallOptions): StallWatch | undefined {
  const { timeouts, defaults, reasons, isLocal, signal, who } = options
  const limitOf = (key: keyof SilenceLimits) => {
    const isSlow = reasons || (isLocal === true && key === 'firstToken')
    return msOf(timeouts[key] ?? defaults[key] ?? (isSlow ? reasoningSilence : defaultTimeouts[key]))
  }
  const firstToken = limitOf('firstToken')
  const idle = limitOf('idle')
  if (firstToken === undefined && idle === undefined) return undefined
  return new StallWatch(firstToken ?? Infinity, idle ?? Infinity, timeouts, signal, who)
}

/** One object for each open stream, without closures: there may be thousands. */
class StallWatch implements Countdown {
  ms: number
  readonly every: number
  since = performance.now()
  /** Set it with every piece of content. */
  restart = false
  /** The error, if this watch stopped the call rather than the run's signal. */
  expired: MillraceError | undefined = undefined
  readonly #own: SilenceLimits
  readonly #outer: AbortSignal
  readonly #controller = new AbortController()
  readonly #who: string
  #spoke = false

  constructor(firstToken: number, idle: number, own: SilenceLimits, outer: AbortSignal, who = 'The model') {
    this.ms = firstToken
    this.every = idle
    this.#own = own
    this.#who = who
    this.#outer = outer
    // Forwarded by hand: `AbortSignal.any` takes several times the memory.
    if (outer.aborted) this.#forward()
    else outer.addEventListener('abort', this.#forward)
    addCountdown(this)
  }

  /** Aborts with `timed-out`, or with the reason of the run's signal. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  readonly #forward = (): void => this.#controller.abort(this.#outer.reason)

  /** The model is at work: it reads the prompt. Before its first content that starts the time again. */
  alive(): void {
    if (!this.#spoke) this.since = performance.now()
  }

  restarted(): void {
    this.#spoke = true
    this.ms = this.every
  }

  expire(): void {
    const key = this.#spoke ? 'idle' : 'firstToken'
    const where = this.#spoke ? 'in the middle of its answer' : 'before its first token'
    const message = `${this.#who} said nothing for ${formatLimit(this.ms)} ${where}.`
    this.expired = timedOut(message, this.#own[key] === undefined ? key : undefined)
    this.#controller.abort(this.expired)
  }

  release(): void {
    removeCountdown(this)
    this.#outer.removeEventListener('abort', this.#forward)
  }
}
