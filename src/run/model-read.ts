/**
 * The token path: one reader over a model's stream and one synchronous call per part. Per part it costs the promise of
 * `reader.read()` and nothing else; every `pipeThrough` or async generator here would cost more than all of our own work.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { MillraceError } from '../part/error.ts'
import { recordable } from '../part/json.ts'
import type { ModelPart } from '../part/part.ts'
import { incompleteError, toModelError, type NamedModel } from './model-error.ts'

/** ms that a stream may stay open after `finish` before it is closed from our side. */
const graceAfterFinish = 1000

export interface Reading {
  /** Ends when the answer is complete; rejects as `streamModel` does. */
  done: Promise<void>
  /** No part is handed on after this; the provider is told to stop. `done` may then never settle. */
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
  // What the consumer throws is its own and must not be taken for the provider's.
  let consumer: { error: unknown } | undefined

  function cancel(reason: unknown): void {
    over = true
    clearTimeout(grace)
    // A stream that is already broken rejects its cancellation with the same error: nobody needs it twice.
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
      // After `finish` everything has been said: how the connection ends then changes nothing.
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

/** V4 → ours: files in V3's form, `ping` dropped, everything else as it is (a copy only where a field changes). */
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
      // A model of one's own may give the arguments as a value.
      return typeof part.input === 'string' ? part : { ...part, input: JSON.stringify(recordable(part.input)) ?? '' }
    case 'stream-start':
      // V4's warnings know one more type (`deprecated`), which is kept.
      return part as ModelPart
    default:
      return part
  }
}
