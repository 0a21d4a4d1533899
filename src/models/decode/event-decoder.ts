/** What the decoders have in common: from bytes to chunks, and parts that wait until the package would have resolved `doStream`. */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { DecoderOptions, StreamDecoder } from './decoder.ts'
import { createEventStream } from './event-stream.ts'
import type { Chunk } from './read-json.ts'
import { createShortcut, type Shortcut } from './shortcut.ts'

export type Emit = (part: LanguageModelV4StreamPart) => void

export interface EventDecoderOptions<T> {
  options: Pick<DecoderOptions, 'who' | 'limits' | 'includeRawChunks'>
  emit: Emit
  read: (data: string) => Chunk<T>
  /** Reads a chunk. Calls `learn` if nothing but its text matters to the next one. */
  onChunk(chunk: Chunk<T>, learn: Learn): void
  /** The body ended. */
  onEnd(): void
  /** Whether the rest is not read. */
  isOver?: () => boolean
}

/** The text is the field `key`, found by `textOf`. `apply` does for a text what the chunk did. */
export type Learn = (
  key: string,
  textOf: (chunk: unknown) => unknown,
  apply: (text: string) => void,
  ignored?: readonly string[],
) => void

export function createEventDecoder<T>(decoder: EventDecoderOptions<T>): StreamDecoder {
  const { options, emit, read, onChunk, onEnd, isOver } = decoder
  const { who, limits, includeRawChunks } = options
  const shortcut: Shortcut | undefined = includeRawChunks === true ? undefined : createShortcut()
  let isBroken = false

  const events = createEventStream({
    who,
    limits,
    shortcut: shortcut?.read,
    onData(data, source, from, to) {
      shortcut?.forget()
      if (isOver?.() === true) return
      const chunk = read(data)
      if (includeRawChunks === true) emit({ type: 'raw', rawValue: chunk.raw })
      onChunk(chunk, (key, textOf, apply, ignored) => {
        if (from < 0 || shortcut === undefined) return
        const event = source.slice(from, to)
        shortcut.learn({ event, data, value: chunk.raw, key, textOf, ignored }, apply)
      })
    },
  })

  /** Like the package's stream, a decoder that has failed reads nothing more. */
  function guarded(act: () => void): void {
    if (isBroken) return
    try {
      act()
    } catch (error) {
      isBroken = true
      throw error
    }
  }

  return {
    push: (bytes) => guarded(() => events.push(bytes)),
    end() {
      guarded(onEnd)
      isBroken = true
    },
  }
}

export interface Gate {
  emit: Emit
  /** Emits what has waited, and everything from now on at once. */
  open(): void
  isOpen(): boolean
}

export function createGate(emit: Emit): Gate {
  let waiting: LanguageModelV4StreamPart[] | undefined = []
  return {
    emit(part) {
      if (waiting === undefined) emit(part)
      else waiting.push(part)
    },
    open() {
      const parts = waiting ?? []
      waiting = undefined
      for (const part of parts) emit(part)
    },
    isOpen: () => waiting === undefined,
  }
}
