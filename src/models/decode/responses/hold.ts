/**
 * An error that comes before any output is a refusal of the request: `doStream` rejects with it. So the first parts are held back
 * until an event proves that the answer has begun.
 *
 * `response.in_progress` proves half of it: the package then waits 50 ms for each further event before it hands out its stream.
 * Here the time is looked at when bytes come; pushing no bytes looks at it too.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { RequestFacts } from '../decoder.ts'
import { openAIRefusal } from '../openai-stream-error.ts'
import type { Chunk } from './chunk-schema.ts'

export interface Hold {
  emit(part: LanguageModelV4StreamPart): void
  /** To be called with each event before it is read; undefined for an invalid one. Throws the refusal. */
  check(chunk: Chunk | undefined): void
  tick(): void
  release(): void
}

/** ms, from the package. */
const grace = 50

export function createHold({
  emit,
  request,
  now = () => performance.now(),
}: {
  emit(part: LanguageModelV4StreamPart): void
  request: RequestFacts
  now?: () => number
}): Hold {
  let held: LanguageModelV4StreamPart[] | undefined = []
  /** When the last event came, once the request is known to be accepted. */
  let acceptedAt: number | undefined

  function release(): void {
    const parts = held ?? []
    held = undefined
    for (const part of parts) emit(part)
  }

  return {
    emit(part) {
      if (held === undefined) emit(part)
      else held.push(part)
    },
    check(chunk) {
      if (held === undefined) return
      if (chunk === undefined) return release()
      switch (chunk.type) {
        case 'error':
          throw openAIRefusal(chunk, request)
        case 'response.failed': {
          const { error } = chunk.response
          if (error !== null && error !== undefined) throw openAIRefusal(chunk, request)
          break
        }
        case 'response.in_progress':
          acceptedAt = now()
          return
        case 'response.created':
        case 'unknown_chunk':
          break
        default:
          return release()
      }
      if (acceptedAt !== undefined) acceptedAt = now()
    },
    tick() {
      if (held !== undefined && acceptedAt !== undefined && now() - acceptedAt > grace) release()
    },
    release,
  }
}
