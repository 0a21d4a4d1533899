/**
 * A model that plays a script, for tests. Each model call plays one list of steps; `calls` records the options of each call and
 * whether it was aborted or cancelled.
 */
import {
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4StreamPart,
  APICallError,
  type LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { toGenerated } from './generated.ts'

/** A call to the scripted model. */
export interface PlayedCall {
  /** Prompt, tools and settings, as the AI SDK passes them to a model. */
  options: LanguageModelV4CallOptions
  /** Whether the signal of the call has fired. */
  readonly aborted: boolean
  /** Whether the reader has cancelled the stream. */
  readonly cancelled: boolean
}

/** A model for `models.providers` of a runtime or a config. */
export interface ScriptedModel extends LanguageModelV4 {
  /** All calls so far, oldest first. */
  readonly calls: PlayedCall[]
}

/** The steps of each call in order. For parallel calls, a function of the call and its number (from 1). */
export type Script = ScriptStep[][] | ((call: PlayedCall, n: number) => ScriptStep[])

/** How the script is played. */
export interface ScriptedOptions {
  /** Add a missing `finish` to each call. With `false`, an answer without one counts as cut off. Default true. */
  autoFinish?: boolean
  /** Ignore the signal of the call, as some providers do. Default false. */
  deaf?: boolean
}

/**
 * A model that plays a script: `createScriptedModel([[toolCall('weather', { city: 'Rome' })], [text('It is ', 'sunny.')]])`.
 * Calls beyond the end of the script fail.
 */
export function createScriptedModel(
  script: Script,
  { autoFinish = true, deaf = false }: ScriptedOptions = {},
): ScriptedModel {
  const calls: PlayedCall[] = []

  function stepsOf(call: PlayedCall): PlainStep[] {
    const n = calls.push(call)
    const steps = typeof script === 'function' ? script(call, n) : script[n - 1]
    if (steps === undefined) throw new Error(`this is call ${n}, but the script has only ${script.length} call(s)`)
    const plain = named(steps.flat(10) as PlainStep[], n)
    return autoFinish ? finished(plain) : plain
  }

  const model: ScriptedModel = {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'script',
    supportedUrls: {},
    calls,
    async doStream(options) {
      const state = { cancelled: false }
      const steps = stepsOf({
        options,
        get aborted() {
          return options.abortSignal?.aborted === true
        },
        get cancelled() {
          return state.cancelled
        },
      })
      const signal = deaf ? undefined : options.abortSignal
      const first = steps.find((step) => !isWait(step))
      if (first !== undefined && 'fault' in first && first.fault === 'throw') {
        for (const step of steps) if (isWait(step)) await pass(step, signal)
        throw first.error
      }
      return { stream: play(steps, signal, () => (state.cancelled = true)) }
    },
    async doGenerate(options) {
      const { stream } = await model.doStream(options)
      const parts: LanguageModelV4StreamPart[] = []
      for await (const part of stream) parts.push(part)
      const result = toGenerated(parts)
      if (result === undefined) throw new Error('the scripted answer has no finish()')
      return result
    },
  }
  return model
}

/** Adds missing ids to blocks and tool calls. */
function named(steps: PlainStep[], n: number): PlainStep[] {
  let blocks = 0
  let tools = 0
  return steps.map((step) => {
    if (!('type' in step)) return step
    if (step.type === 'text-start' || step.type === 'reasoning-start') blocks++
    if (step.type === 'tool-input-start') tools++
    if (step.type === 'tool-call') return step.toolCallId === '' ? { ...step, toolCallId: `call_${n}_${tools}` } : step
    if (!('id' in step) || step.id !== '') return step
    return { ...step, id: step.type.startsWith('tool-') ? `call_${n}_${tools}` : `block-${blocks}` }
  })
}

function finished(steps: PlainStep[]): PlainStep[] {
  const isEnd = (step: PlainStep) => 'fault' in step || ('type' in step && ['finish', 'error'].includes(step.type))
  if (steps.some(isEnd)) return steps
  const callsTools = steps.some((step) => 'type' in step && step.type === 'tool-call')
  return [...steps, finish(callsTools ? 'tool-calls' : 'stop')]
}

function isWait(step: PlainStep): step is Latch | Delay {
  return 'opened' in step || 'delayMs' in step
}

async function pass(step: Latch | Delay, signal: AbortSignal | undefined): Promise<void> {
  if ('opened' in step) {
    step.arrive()
    return step.opened
  }
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, step.delayMs)
  signal?.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
}

function play(
  steps: readonly PlainStep[],
  signal: AbortSignal | undefined,
  onCancel: () => void,
): ReadableStream<LanguageModelV4StreamPart> {
  let at = 0
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      start(controller) {
        signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true })
      },
      async pull(controller) {
        for (;;) {
          const step = steps[at++]
          if (step === undefined) return controller.close()
          if (isWait(step)) {
            await pass(step, signal)
            if (signal?.aborted) return
            continue
          }
          return 'fault' in step ? controller.error(step.error) : controller.enqueue(step)
        }
      },
      cancel: onCancel,
    },
    // No read-ahead: a latch is reached only when the reader gets there.
    { highWaterMark: 0 },
  )
}

/* The steps of a scripted model's script, and the functions that create them. */

/** The model waits here until a test calls `open()`. Made by {@link latch}. */
export interface Latch {
  open(): void
  opened: Promise<void>
  /** Resolves when a model has reached the latch. */
  reached: Promise<void>
  /** Called by the model. */
  arrive(): void
}

/** The model pauses. Made by {@link delay}. */
export interface Delay {
  delayMs: number
}

/** The call fails: before it answers (`throw`), or in the middle of its answer (`drop`). */
export interface Fault {
  fault: 'throw' | 'drop'
  error: unknown
}

/** One step of a scripted call: the result of a function of `millrace/testing`, or any stream part of the AI SDK. Lists may be nested. */
export type ScriptStep = LanguageModelV4StreamPart | Latch | Delay | Fault | ScriptStep[]

/** A step that is not a list. */
type PlainStep = Exclude<ScriptStep, ScriptStep[]>

/** Why a model stopped: `stop`, `length`, `content-filter`, `tool-calls`, `error`, `other`. */
export type FinishReason = Extract<LanguageModelV4StreamPart, { type: 'finish' }>['finishReason']['unified']

/** One block of text, emitted in these pieces. */
export function text(...deltas: string[]): ScriptStep[] {
  return block('text', deltas)
}

/** One block of reasoning, emitted in these pieces. */
export function reasoning(...deltas: string[]): ScriptStep[] {
  return block('reasoning', deltas)
}

function block(type: 'text' | 'reasoning', deltas: string[]): LanguageModelV4StreamPart[] {
  // The scripted model fills in the id.
  const id = ''
  return [
    { type: `${type}-start`, id },
    ...deltas.map((delta) => ({ type: `${type}-delta` as const, id, delta })),
    { type: `${type}-end`, id },
  ]
}

/**
 * A tool call: its input in two pieces, then the call. A string `input` is sent as it is, so it may be invalid JSON.
 * The default `id` is `call_<model call>_<tool call>`, both counted from 1.
 */
export function toolCall(toolName: string, input: unknown = {}, id = ''): ScriptStep[] {
  const json = typeof input === 'string' ? input : JSON.stringify(input)
  const half = Math.ceil(json.length / 2)
  return [
    { type: 'tool-input-start', id, toolName },
    { type: 'tool-input-delta', id, delta: json.slice(0, half) },
    { type: 'tool-input-delta', id, delta: json.slice(half) },
    { type: 'tool-input-end', id },
    { type: 'tool-call', toolCallId: id, toolName, input: json },
  ]
}

/** The last part of a complete answer. `usage`: tokens in and out, default 10 and 5. */
export function finish(
  reason: FinishReason = 'stop',
  usage: { in?: number; out?: number } = {},
): LanguageModelV4StreamPart {
  return {
    type: 'finish',
    finishReason: { unified: reason, raw: reason },
    usage: tokens(usage.in ?? 10, usage.out ?? 5),
  }
}

function tokens(input: number, output: number): LanguageModelV4Usage {
  return {
    inputTokens: { total: input, noCache: input, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: output, text: output, reasoning: undefined },
  }
}

/** The provider rejects the request with an HTTP status. `retryAfter` is in seconds. Only delays and latches may precede it. */
export function refuse(status: number, message = 'refused', { retryAfter }: { retryAfter?: number } = {}): ScriptStep {
  const responseHeaders = retryAfter === undefined ? undefined : { 'retry-after': String(retryAfter) }
  return throws(
    new APICallError({ message, statusCode: status, url: 'http://scripted', requestBodyValues: {}, responseHeaders }),
  )
}

/** The call is rejected with this error before it answers. Only delays and latches may precede it. */
export function throws(error: unknown): ScriptStep {
  return { fault: 'throw', error }
}

/** The model reports an error in the middle of its answer. */
export function errorPart(error: unknown): LanguageModelV4StreamPart {
  return { type: 'error', error }
}

/** The connection breaks in the middle of the answer. */
export function drop(error: unknown = new TypeError('terminated')): ScriptStep {
  return { fault: 'drop', error }
}

/** A pause in milliseconds. Where the order of events matters, use a {@link latch} instead. */
export function delay(ms: number): Delay {
  return { delayMs: ms }
}

/** A gate in a script: the model waits there until the test opens it. `await gate.reached` waits for the model. */
export function latch(): Latch {
  const opening = Promise.withResolvers<void>()
  const arriving = Promise.withResolvers<void>()
  return { open: opening.resolve, opened: opening.promise, reached: arriving.promise, arrive: arriving.resolve }
}
