/**
 * The hot path for tokens: what every part of an answer goes through, synchronously. A `pipeThrough` or an async generator here
 * would cost more than all of our own work.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { MillraceError } from '../part/error.ts'
import { recordable } from '../part/json.ts'
import type { ModelPart } from '../part/model-part.ts'
import { incompleteError, toModelError, type NamedModel } from './model-error.ts'
import type { PartSink } from './part-sink.ts'

/** ms that a stream may stay open after `finish` before we cancel it. */
const graceAfterFinish = 1000

export interface Reading {
  sink: PartSink
  /** Resolves when the answer is complete. Rejects like `streamModel`. */
  done: Promise<void>
  /** Delivers no more parts and stops the source. `done` may then never settle. */
  cancel(reason: unknown): void
}

/** `stop` ends the source: called once, when no more parts are needed. */
export function createReading(
  model: NamedModel,
  onPart: (part: ModelPart) => void,
  ready: (() => Promise<void> | undefined) | undefined,
  stop: (reason: unknown) => void,
): Reading {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  let over = false
  let grace: ReturnType<typeof setTimeout> | undefined
  let finish: Extract<ModelPart, { type: 'finish' }> | undefined
  let reported: MillraceError | undefined

  function cancel(reason: unknown): void {
    if (over) return
    over = true
    clearTimeout(grace)
    stop(reason)
  }

  /** An error of the consumer must not be reported as the provider's. */
  function onConsumerError(error: unknown): void {
    if (over) return
    cancel(error)
    reject(error)
  }

  /** The answer ended, or `graceAfterFinish` is over. */
  function end(): void {
    if (over) return
    cancel('the answer is complete')
    const reason = finish?.finishReason.unified
    if (reason === undefined || reason === 'interrupted') reject(reported ?? incompleteError(model))
    else if (reason === 'error' && reported !== undefined) reject(reported)
    else resolve()
  }

  const sink: PartSink = {
    part(given) {
      if (over) return
      const part = toModelPart(given)
      if (part === undefined) return
      if (part.type === 'error') {
        part.error = toModelError(part.error, 'part', model)
        reported ??= part.error as MillraceError
      } else if (part.type === 'finish' && finish === undefined) {
        finish = part
        grace = setTimeout(end, graceAfterFinish)
      }
      try {
        onPart(part)
      } catch (error) {
        onConsumerError(error)
      }
    },
    ready() {
      if (over) return undefined
      try {
        return ready?.()?.catch(onConsumerError)
      } catch (error) {
        onConsumerError(error)
        return undefined
      }
    },
    isOver: () => over,
    end,
    fail(error, place) {
      if (over) return
      // After `finish` the answer is complete, however the connection ends.
      if (finish !== undefined) return end()
      cancel(error)
      reject(reported ?? toModelError(error, place, model))
    },
  }
  return { sink, done, cancel }
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
