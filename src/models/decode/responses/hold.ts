/**
 * An error that comes before any output is a refusal of the request: `doStream` rejects with it. So the first parts are held back
 * until an event proves that the answer has begun.
 *
 * `response.in_progress` proves half of it: the package then waits 50 ms for each further event before it hands out its stream.
 * Here the time is looked at when bytes come; pushing no bytes looks at it too.
 */
import type { RequestFacts } from '../decoder.ts'
import { createGate, type Emit, type Gate } from '../gate.ts'
import { openAIRefusal } from '../openai-stream-error.ts'
import type { Chunk } from './chunk-schema.ts'

export interface Hold extends Pick<Gate, 'emit' | 'open'> {
  /** To be called with each event before it is read; undefined for an invalid one. Throws the refusal. */
  check(chunk: Chunk | undefined): void
  tick(): void
}

/** ms, from the package. */
const grace = 50

export interface HoldOptions {
  emit: Emit
  request: RequestFacts
  now?: () => number
}

export function createHold({ emit, request, now = () => performance.now() }: HoldOptions): Hold {
  const gate = createGate(emit)
  /** When the last event came, once the request is known to be accepted. */
  let acceptedAt: number | undefined

  return {
    emit: gate.emit,
    open: gate.open,
    check(chunk) {
      if (gate.isOpen()) return
      if (chunk === undefined) return gate.open()
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
          return gate.open()
      }
      if (acceptedAt !== undefined) acceptedAt = now()
    },
    tick() {
      if (!gate.isOpen() && acceptedAt !== undefined && now() - acceptedAt > grace) gate.open()
    },
  }
}
