/** The steps of a scripted model's script, and the functions that create them. */
import { APICallError, type LanguageModelV4StreamPart, type LanguageModelV4Usage } from '@ai-sdk/provider'

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

/** One step of a scripted call: what the functions of `millrace/testing` return, or any stream part of the AI SDK. Lists may be nested. */
export type ScriptStep = LanguageModelV4StreamPart | Latch | Delay | Fault | ScriptStep[]

/** A step that is not a list. */
export type PlainStep = Exclude<ScriptStep, ScriptStep[]>

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
