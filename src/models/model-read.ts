/**
 * The hot path for tokens: one reader over a model's stream and one synchronous call per part. The only cost per part is the
 * promise of `reader.read()`; a `pipeThrough` or an async generator here would cost more than all of our own work.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { MillraceError } from '../part/error.ts'
import { recordable } from '../part/json.ts'
import type { ModelPart } from '../part/model-part.ts'
import { incompleteError, toModelError, type NamedModel } from './model-error.ts'

/** ms that a stream may stay open after `finish` before we cancel it. */
const graceAfterFinish = 1000

export interface Reading {
  /** Resolves when the answer is complete. Rejects like `streamModel`. */
  done: Promise<void>
  /** Delivers no more parts and cancels the provider's stream. `done` may then never settle. */
  cancel(reason: unknown): void
}

export function readParts(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  model: NamedModel,
  onPart: (part: ModelPart) => void,
  ready?: () => Promise<void> | undefined,
): Reading {
  const reader = stream.getReader()
  let over = false
  let grace: ReturnType<typeof setTimeout> | undefined
  let finish: Extract<ModelPart, { type: 'finish' }> | undefined
  let reported: MillraceError | undefined
  // An error of the consumer must not be reported as the provider's.
  let consumer: { error: unknown } | undefined

  function cancel(reason: unknown): void {
    over = true
    clearTimeout(grace)
    // A broken stream rejects its cancellation with the error that was already reported.
    reader.cancel(reason).catch(() => {})
  }

  async function read(graceOver: () => void): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read()
      if (over || done) return
      const part = toModelPart(value)
      if (part === undefined) continue
      if (part.type === 'error') {
        part.error = toModelError(part.error, 'part', model)
        reported ??= part.error as MillraceError
      } else if (part.type === 'finish' && finish === undefined) {
        finish = part
        grace = setTimeout(graceOver, graceAfterFinish)
      }
      try {
        onPart(part)
        const wait = ready?.()
        if (wait !== undefined) await wait
      } catch (error) {
        consumer = { error }
        throw error
      }
      if (over) return
    }
  }

  async function run(): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => read(resolve).then(resolve, reject))
    } catch (error) {
      cancel(error)
      if (consumer) throw consumer.error
      // After `finish` the answer is complete, however the connection ends.
      if (finish === undefined) throw reported ?? toModelError(error, 'stream', model)
    }
    if (!over) cancel('the answer is complete')
    if (finish === undefined) throw reported ?? incompleteError(model)
    const { unified } = finish.finishReason
    if (unified === 'interrupted') throw reported ?? incompleteError(model)
    if (unified === 'error' && reported !== undefined) throw reported
  }

  return { done: run(), cancel }
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
