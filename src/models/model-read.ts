/**
 * The hot path for tokens: every part of an answer passes it, synchronously. A `pipeThrough` or an async generator here would cost more than all of
 * our own work.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { MillraceError } from '../part/error.ts'
import { recordable } from '../part/json.ts'
import type { ModelPart } from '../part/model-part.ts'
import { FailedEnd, failedEndError, incompleteError, toModelError, type NamedModel } from './model-error.ts'
import type { PartSink } from './part-sink.ts'

/** ms that a stream may stay open after `finish` before we cancel it. */
const graceAfterFinish = 1000

export interface Reading extends PartSink {
  /** Resolves when the answer is complete. Rejects like `streamModel`. */
  readonly done: Promise<void>
  /** Delivers no more parts and stops the source. `done` may then never settle. */
  cancel(reason: unknown): void
}

export interface ModelListener {
  onPart(part: ModelPart): void
  ready?: (() => Promise<void> | undefined) | undefined
  /** The model shows that it is working, without content. */
  onAlive?: (() => void) | undefined
}

/** `stop` ends the source: called once, when no more parts are needed. */
export function createReading(model: NamedModel, listener: ModelListener, stop: (reason: unknown) => void): Reading {
  return new ModelReading(model, listener, stop)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class ModelReading implements Reading {
  readonly done: Promise<void>
  readonly #resolve: () => void
  readonly #reject: (error: unknown) => void
  readonly #model: NamedModel
  readonly #listener: ModelListener
  readonly #stop: (reason: unknown) => void
  #over = false
  #grace: ReturnType<typeof setTimeout> | undefined = undefined
  #finish: Extract<ModelPart, { type: 'finish' }> | undefined = undefined
  #reported: MillraceError | undefined = undefined
  /** The answer has a text, a call or a file. */
  #hasContent = false

  constructor(model: NamedModel, listener: ModelListener, stop: (reason: unknown) => void) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.done = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#model = model
    this.#listener = listener
    this.#stop = stop
  }

  cancel(reason: unknown): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#grace)
    this.#stop(reason)
  }

  /** An error of the consumer must not be reported as the provider's. */
  readonly #onConsumerError = (error: unknown): void => {
    if (this.#over) return
    this.cancel(error)
    this.#reject(error)
  }

  /** The answer ended, or `graceAfterFinish` is over. */
  end(): void {
    if (this.#over) return
    this.cancel('the answer is complete')
    const { unified, raw } = this.#finish?.finishReason ?? {}
    if (unified === undefined || unified === 'interrupted') this.#reject(this.#reported ?? incompleteError(this.#model))
    else if (unified === 'error' || (unified === 'other' && raw !== undefined && !this.#hasContent)) {
      this.#reject(this.#reported ?? failedEndError(this.#model, new FailedEnd(raw, undefined)))
    } else this.#resolve()
  }

  part(given: LanguageModelV4StreamPart): void {
    if (this.#over) return
    const part = toModelPart(given)
    if (part === undefined) return this.#listener.onAlive?.()
    this.#hasContent ||= says(part)
    if (part.type === 'error') {
      part.error = toModelError(part.error, 'part', this.#model)
      this.#reported ??= part.error as MillraceError
    } else if (part.type === 'finish' && this.#finish === undefined) {
      this.#finish = part
      this.#grace = setTimeout(() => this.end(), graceAfterFinish)
    }
    try {
      this.#listener.onPart(part)
    } catch (error) {
      this.#onConsumerError(error)
    }
  }

  ready(): Promise<void> | undefined {
    if (this.#over) return undefined
    try {
      return this.#listener.ready?.()?.catch(this.#onConsumerError)
    } catch (error) {
      this.#onConsumerError(error)
      return undefined
    }
  }

  isOver(): boolean {
    return this.#over
  }

  fail(error: unknown, place: 'request' | 'stream' | 'part'): void {
    if (this.#over) return
    // After `finish` the answer is complete, however the connection ends.
    if (this.#finish !== undefined) return this.end()
    this.cancel(error)
    this.#reject(this.#reported ?? toModelError(error, place, this.#model))
  }
}

/** Whether the part is content of an answer. */
export function says(part: ModelPart): boolean {
  switch (part.type) {
    case 'text-delta':
      return part.delta !== ''
    case 'tool-input-start':
    case 'tool-call':
    case 'tool-result':
    case 'file':
    case 'source':
      return true
    default:
      return false
  }
}

/** Reads a package's stream. The only cost per part is the promise of `reader.read()`. Returns the function that cancels it. */
export function readStream(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  sink: PartSink,
): (reason: unknown) => void {
  const reader = stream.getReader()
  async function read(): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read()
      if (done || sink.isOver()) return sink.end()
      sink.part(value)
      const wait = sink.ready()
      if (wait !== undefined) await wait
      if (sink.isOver()) return
    }
  }
  read().catch((error: unknown) => sink.fail(error, 'stream'))
  // A broken stream rejects its cancellation with the error that was already reported.
  return (reason) => void reader.cancel(reason).catch(() => undefined)
}

/** Converts a V4 part to ours: files take V3's form, `ping` is dropped. Copies a part only if a field changes. */
function toModelPart(part: LanguageModelV4StreamPart): ModelPart | undefined {
  switch (part.type) {
    case 'ping':
      return undefined
    case 'error':
      return { type: 'error', error: part.error }
    case 'file':
    case 'reasoning-file': {
      const { data } = part
      return { ...part, data: data.type === 'data' ? data.data : { type: 'url', url: String(data.url) } }
    }
    case 'tool-call':
      // A user's own model may return the arguments as a value.
      return typeof part.input === 'string' ? part : { ...part, input: JSON.stringify(recordable(part.input)) ?? '' }
    case 'stream-start':
      // V4 has one more type of warnings (`deprecated`), which is kept.
      return part as ModelPart
    default:
      return part
  }
}
