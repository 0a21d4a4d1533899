/** Watches a model call: the answer's length, its budgets, silence and callbacks. One feed per attempt. */
import { MillraceError } from '../part/error.ts'
import type { Message } from '../part/message.ts'
import type { ModelPart } from '../part/model-part.ts'
import type { SourcePart } from '../part/part.ts'
import { parentPath } from '../part/path.ts'
import { toUsage, type Usage } from '../part/usage.ts'
import { createNormaliser, isContent } from '../fold/normalise.ts'
import { LazySet } from '../fold/lazy-map.ts'
import { answerTooLong, tooManyToolCalls } from '../models/limits/read-limits.ts'
import { says as isSaid } from '../models/model-read.ts'
import {
  type Speaking,
  defaultTimeouts,
  msOf,
  reasoningSilence,
  timedOut,
  type DefaultTimeouts,
  type SilenceLimits,
} from './limits.ts'
import type { Scope } from './scope.ts'
import { formatLimit } from '../part/limits.ts'
import { addCountdown, removeCountdown, type Countdown } from '../async/countdown.ts'

export interface FeedOptions {
  /** The name from the YAML file, to look up the price. */
  model: string
  messages: readonly Message[]
  /** Name of the callback for every piece of content. */
  onChunk?: string | undefined
  /** Called with each piece of the answer's text. */
  onText?: ((delta: string) => void) | undefined
  /** Set to restart with every piece of content. */
  silence?: { restart: boolean } | undefined
}

export function createFeed(scope: Scope, path: string, { onChunk, onText, messages, model, silence }: FeedOptions) {
  const { limits, answerChars, toolCalls, emit, newId } = scope
  const { open, callIds } = scope.state
  const normaliser = createNormaliser({ path, emit, newId, open, callIds })
  let length = 0
  let calls = 0
  const pricing = scope.registry.pricing?.get(model)
  const speaking: Speaking = {
    inputCharacters: limits.some(({ watches }) => watches) ? JSON.stringify(messages).length : 0,
    outputCharacters: 0,
    price: pricing && { input: pricing.input / 1e6, output: pricing.output / 1e6 },
  }
  scope.speaking.set(path, speaking)
  /** Calls whose arguments were counted as deltas. */
  const written = new LazySet<string>()
  let says = false
  let isOver = false
  const isEmpty = () => isOver && !says
  const feed = {
    normaliser,
    usage: undefined as Usage | undefined,
    error: undefined as unknown,
    part,
    isEmpty,
    reason: '',
  }

  function part(part: ModelPart): void {
    length += 'delta' in part ? part.delta.length : lengthOf(part, written)
    if (length > answerChars) throw answerTooLong(answerChars)
    if (beginsCall(part, written) && ++calls > toolCalls) throw tooManyToolCalls(toolCalls)
    if (part.type === 'error') {
      feed.error ??= part.error ?? new MillraceError('model-failed', 'The model reported an error without details.')
      return
    }
    says ||= isSaid(part)
    if (part.type === 'finish') {
      feed.usage = toUsage(part.usage)
      isOver = part.finishReason.unified === 'stop'
      feed.reason = part.finishReason.raw ?? ''
    }
    if (part.type === 'tool-input-start') written.add(part.id)
    if (isContent(part)) {
      if (silence !== undefined) silence.restart = true
      if (onChunk !== undefined && (part.type !== 'custom' || normaliser.hasContent)) {
        void scope.invoke(onChunk, { chunk: callIds.toLog(parentPath(path), part) })
      }
    }
    normaliser.part(part)
    if (!('delta' in part)) return
    if (part.type === 'text-delta') onText?.(part.delta)
    speaking.outputCharacters += part.delta.length
    for (const limit of limits) if (limit.watches) limit.check()
  }

  return feed
}

/** Whether this is the first part of a tool call. Its arguments may come before the call. */
function beginsCall(part: ModelPart, written: Pick<ReadonlySet<string>, 'has'>): boolean {
  return part.type === 'tool-input-start' || (part.type === 'tool-call' && !written.has(part.toolCallId))
}

/** The length that a part without a delta adds to the answer: its strings, including arguments and files. */
export function lengthOf(part: SourcePart, written: Pick<ReadonlySet<string>, 'has'>): number {
  // Its deltas are already counted.
  if (part.type === 'tool-call' && written.has(part.toolCallId)) return 1
  let length = 1 - part.type.length
  for (const value of Object.values(part as object) as unknown[]) if (typeof value === 'string') length += value.length
  return length
}

/** Stops a model call that is silent for too long, before its first content or between two parts of its answer. */
export interface StallOptions {
  /** The agent's limits. */
  timeouts: SilenceLimits
  defaults: DefaultTimeouts
  /** Whether the step sets `reasoning`. */
  reasons: boolean
  /** A local server: it may load the model, and reads long prompts slowly. */
  isLocal?: boolean | undefined
  signal: AbortSignal
  /** The silent party, for the error. Default: `The model`. */
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

  /** The model reads the prompt. Before its first content, this restarts the time. */
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
