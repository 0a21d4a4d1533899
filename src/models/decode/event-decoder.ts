/** What the decoders have in common: from bytes to events, and from events to chunks. */
import type { DecoderOptions, StreamDecoder } from './decoder.ts'
import { createEventStream } from './event-stream.ts'
import type { Choose } from './json-places.ts'
import { readJson, type Checked, type Chunk } from './read-json.ts'
import { createShortcut, type Repeated } from './shortcut.ts'

export interface EventDecoderOptions<T> {
  options: Pick<DecoderOptions, 'who' | 'limits'>
  check: (value: unknown) => Checked<T>
  /** Calls `learn` if nothing but its text matters to the next chunk. */
  onChunk(chunk: Chunk<T>, learn: Learn): void
  /** The body ended. */
  onEnd(): void
  /** Whether the rest is not read. */
  isDone?: () => boolean
}

export type Learn = (choose: Choose, apply: Repeated['apply'], onLast?: Repeated['onLast']) => void

export interface EventDecoder extends StreamDecoder {
  /** Another body follows. */
  reopen(): void
}

export function createEventDecoder<T>(decoder: EventDecoderOptions<T>): EventDecoder {
  const { options, check, onChunk, onEnd } = decoder
  const { who, limits } = options
  const shortcut = createShortcut()
  let isOver = false

  function onData(data: string, source: string, from: number, to: number): void {
    shortcut.forget()
    if (decoder.isDone?.() === true) return
    onChunk(readJson(data, check), (choose, apply, onLast) => {
      if (from >= 0) shortcut.learn(source.slice(from, to), data, { choose, apply, onLast })
    })
  }

  const openBody = () => createEventStream({ who, limits, shortcut: shortcut.read, onData })
  let body = openBody()

  // Like the package's stream, a decoder that has failed reads nothing more.
  return {
    push(bytes) {
      if (isOver) return
      try {
        body.push(bytes)
      } catch (error) {
        isOver = true
        throw error
      }
    },
    end() {
      if (isOver) return
      isOver = true
      onEnd()
    },
    reopen() {
      body = openBody()
    },
  }
}
