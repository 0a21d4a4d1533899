/**
 * A model that plays a script, for tests: each call plays its list of parts and can be held on latches, made to fail and
 * asked afterwards what it was told and how it was treated.
 *
 *     const gate = latch()
 *     const model = createScriptedModel([[text('Hel', 'lo'), gate, finish()], [throws(new Error('busy'))]])
 */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'

/** The model waits here until a test opens it. */
export interface Latch {
  open(): void
  opened: Promise<void>
  /** Resolves when a model has come to the latch. */
  reached: Promise<void>
  arrive(): void
}

export type ScriptStep = LanguageModelV4StreamPart | Latch | Fault | ScriptStep[]
interface Fault {
  fault: 'throw' | 'drop'
  error: unknown
}

export interface PlayedCall {
  options: LanguageModelV4CallOptions
  /** Whether the call's signal has fired. */
  readonly aborted: boolean
  /** Whether the reader has cancelled the stream. */
  readonly cancelled: boolean
}

export interface ScriptedModel extends LanguageModelV4 {
  readonly calls: PlayedCall[]
}

/** `deaf`: does not notice its signal, as providers that wrap their own client. */
export function createScriptedModel(script: ScriptStep[][], { deaf = false } = {}): ScriptedModel {
  const calls: PlayedCall[] = []
  return {
    specificationVersion: 'v4',
    provider: 'scripted',
    modelId: 'script',
    supportedUrls: {},
    calls,
    doGenerate: () => Promise.reject(new Error('the scripted model only streams')),
    async doStream(options) {
      const state = { cancelled: false }
      calls.push({
        options,
        get aborted() {
          return options.abortSignal?.aborted === true
        },
        get cancelled() {
          return state.cancelled
        },
      })
      const steps = script[calls.length - 1]?.flat(10) as Exclude<ScriptStep, ScriptStep[]>[] | undefined
      if (steps === undefined) throw new Error(`the script has no call ${calls.length}`)
      const first = steps[0]
      if (first !== undefined && 'fault' in first && first.fault === 'throw') throw first.error
      return { stream: play(steps, deaf ? undefined : options.abortSignal, () => (state.cancelled = true)) }
    },
  }
}

function play(
  steps: Exclude<ScriptStep, ScriptStep[]>[],
  signal: AbortSignal | undefined,
  onCancel: () => void,
): ReadableStream<LanguageModelV4StreamPart> {
  let at = 0
  let blocks = 0
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      start(controller) {
        signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true })
      },
      async pull(controller) {
        for (;;) {
          const step = steps[at++]
          if (step === undefined) return controller.close()
          if ('opened' in step) {
            step.arrive()
            await step.opened
            if (signal?.aborted) return
            continue
          }
          if ('fault' in step) return controller.error(step.error)
          if (step.type === 'text-start' || step.type === 'reasoning-start') blocks++
          return controller.enqueue('id' in step && step.id === '' ? { ...step, id: `block-${blocks}` } : step)
        }
      },
      cancel: onCancel,
    },
    { highWaterMark: 0 },
  )
}

export function latch(): Latch {
  const opening = Promise.withResolvers<void>()
  const arriving = Promise.withResolvers<void>()
  return { open: opening.resolve, opened: opening.promise, reached: arriving.promise, arrive: arriving.resolve }
}

/** One text block, a delta each. Block ids are given as it is played. */
export function text(...deltas: string[]): ScriptStep[] {
  return block('text', deltas)
}

export function reasoning(...deltas: string[]): ScriptStep[] {
  return block('reasoning', deltas)
}

function block(type: 'text' | 'reasoning', deltas: string[]): LanguageModelV4StreamPart[] {
  const id = ''
  return [
    { type: `${type}-start`, id },
    ...deltas.map((delta) => ({ type: `${type}-delta` as const, id, delta })),
    { type: `${type}-end`, id },
  ]
}

/** A whole call: its input streamed in two deltas, then the call. `input` is a value, or the model's own text. */
export function toolCall(id: string, toolName: string, input: unknown = {}): ScriptStep[] {
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

type Reason = Extract<LanguageModelV4StreamPart, { type: 'finish' }>['finishReason']['unified']

/** The last part. `usage`: tokens in and out; default 10 and 5. */
export function finish(reason: Reason = 'stop', usage: { in?: number; out?: number } = {}): LanguageModelV4StreamPart {
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

/** An error that the model reports in its stream. */
export function errorPart(error: unknown): LanguageModelV4StreamPart {
  return { type: 'error', error }
}

/** `doStream` rejects: the provider refused. First and only step of a call. */
export function throws(error: unknown): ScriptStep {
  return { fault: 'throw', error }
}

/** The connection breaks, as `fetch` reports it. */
export function drop(error: unknown = new TypeError('terminated')): ScriptStep {
  return { fault: 'drop', error }
}
