/**
 * An error that comes before any output is a refusal of the request: `doStream` rejects with it. So the first parts are held back
 * until an event proves that the answer has begun.
 *
 * `response.in_progress` proves half of it: the package then waits 50 ms for each further event before it hands out its stream.
 * Here the time is looked at when bytes come; pushing no bytes looks at it too.
 */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { RequestFacts } from '../decoder.ts'
import { createGate, type Emit, type Gate } from '../gate.ts'
import { openAIRefusal } from '../openai-stream-error.ts'
import type { Chunk } from './chunk-schema.ts'

export interface Hold extends Pick<Gate, 'open'> {
  /** May be called detached. */
  emit: Emit
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

export function createHold(options: HoldOptions): Hold {
  return new RefusalHold(options)
}

const clock = () => performance.now()

/** A class, because its functions would cost each open answer more than what it knows. */
class RefusalHold implements Hold {
  readonly #gate: Gate
  readonly #request: RequestFacts
  readonly #now: () => number
  /** When the last event came, once the request is known to be accepted. */
  #acceptedAt: number | undefined = undefined

  constructor({ emit, request, now = clock }: HoldOptions) {
    this.#gate = createGate(emit)
    this.#request = request
    this.#now = now
  }

  readonly emit = (part: LanguageModelV4StreamPart): void => this.#gate.emit(part)

  open(): void {
    this.#gate.open()
  }

  check(chunk: Chunk | undefined): void {
    if (this.#gate.isOpen()) return
    if (chunk === undefined) return this.#gate.open()
    switch (chunk.type) {
      case 'error':
        throw openAIRefusal(chunk, this.#request)
      case 'response.failed': {
        const { error } = chunk.response
        if (error !== null && error !== undefined) throw openAIRefusal(chunk, this.#request)
        break
      }
      case 'response.in_progress':
        this.#acceptedAt = this.#now()
        return
      case 'response.created':
      case 'unknown_chunk':
        break
      default:
        return this.#gate.open()
    }
    if (this.#acceptedAt !== undefined) this.#acceptedAt = this.#now()
  }

  tick(): void {
    if (!this.#gate.isOpen() && this.#acceptedAt !== undefined && this.#now() - this.#acceptedAt > grace)
      this.#gate.open()
  }
}
