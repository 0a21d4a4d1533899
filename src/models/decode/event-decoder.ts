/** What the decoders have in common: from bytes to events, and from events to chunks. */
import type { ReadLimits } from '../outside/read-limits.ts'
import type { DecoderOptions, StreamDecoder } from './decoder.ts'
import { createEventStream, type EventStream, type EventStreamOptions } from './event-stream.ts'
import type { Choose } from './json-places.ts'
import { readJson, type Checked, type Chunk } from './read-json.ts'
import { createShortcut, type Repeated } from './shortcut.ts'

export interface EventDecoderOptions<T> {
  options: Pick<DecoderOptions, 'who' | 'limits'>
  check: (value: unknown) => Checked<T>
  reader: ChunkReader<T>
}

/** What differs from one protocol to another. */
export interface ChunkReader<T> {
  /** Calls `learn` if nothing but its text matters to the next chunk. */
  onChunk(chunk: Chunk<T>, learn: Learn): void
  /** The body ended. */
  onEnd(): void
  /** Whether the rest is not read. */
  isDone?(): boolean
}

export type Learn = (choose: Choose, apply: Repeated['apply'], onLast?: Repeated['onLast']) => void

export interface EventDecoder extends StreamDecoder {
  /** Another body follows. */
  reopen(): void
}

export function createEventDecoder<T>(options: EventDecoderOptions<T>): EventDecoder {
  return new ChunkDecoder(options)
}

/** Also what its event stream calls. A class, because its functions would cost each open answer more than what it knows. */
class ChunkDecoder<T> implements EventDecoder, EventStreamOptions {
  readonly who: string
  readonly limits: ReadLimits | undefined
  readonly shortcut = createShortcut()
  readonly #check: (value: unknown) => Checked<T>
  readonly #reader: ChunkReader<T>
  #body: EventStream
  #isOver = false

  constructor({ options, check, reader }: EventDecoderOptions<T>) {
    this.who = options.who
    this.limits = options.limits
    this.#check = check
    this.#reader = reader
    this.#body = createEventStream(this)
  }

  onData(data: string, source: string, from: number, to: number): void {
    this.shortcut.forget()
    if (this.#reader.isDone?.() === true) return
    this.#reader.onChunk(readJson(data, this.#check), (choose, apply, onLast) => {
      if (from >= 0) this.shortcut.learn(source.slice(from, to), data, { choose, apply, onLast })
    })
  }

  // Like the package's stream, a decoder that has failed reads nothing more.
  push(bytes: Uint8Array): void {
    if (this.#isOver) return
    try {
      this.#body.push(bytes)
    } catch (error) {
      this.#isOver = true
      throw error
    }
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#reader.onEnd()
  }

  reopen(): void {
    this.#body = createEventStream(this)
  }
}
