/** Decoder of OpenAI's responses stream: emits what `doStream` of `@ai-sdk/openai` would. */
import { TypeValidationError, type LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { generateId as defaultGenerateId } from '@ai-sdk/provider-utils'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import { createEventDecoder, type ChunkReader, type EventDecoder, type Learn } from '../event-decoder.ts'
import { textAt } from '../json-places.ts'
import type { Chunk as Read } from '../read-json.ts'
import { checkChunk, type Chunk } from './chunk-schema.ts'
import { emitEnd } from './ending.ts'
import { factsOfResponses } from './facts.ts'
import { createHold, type Hold } from './hold.ts'
import { readChunk } from './read-chunk.ts'
import { createState, type State } from './state.ts'
import { isChatChunk, toMismatch } from './mismatch.ts'

export interface ResponsesDecoderOptions extends DecoderOptions {
  /** The model's: `openai.responses`. */
  provider: string
  call: Pick<LanguageModelV4CallOptions, 'tools' | 'prompt' | 'providerOptions'>
  request: RequestFacts
  /** ms. Default: the system's clock. See `hold.ts`. */
  now?: () => number
}

/** Events that an answer consists of: all have one `delta`. */
const repeated: ReadonlySet<Chunk['type']> = new Set([
  'response.output_text.delta',
  'response.function_call_arguments.delta',
  'response.reasoning_summary_text.delta',
  'response.custom_tool_call_input.delta',
  'response.code_interpreter_call_code.delta',
])

/** Nothing reads the number of an event, or the characters that hide the length of its text. */
const places = textAt('delta', 'sequence_number', 'obfuscation')

export function createResponsesDecoder(options: ResponsesDecoderOptions): StreamDecoder {
  return new ResponsesDecoder(options)
}

/** A class, because its functions would cost each open answer more than what it knows. */
class ResponsesDecoder implements StreamDecoder, ChunkReader<Chunk> {
  readonly #hold: Hold
  readonly #state: State
  readonly #decoder: EventDecoder

  constructor(options: ResponsesDecoderOptions) {
    const { emit, warnings, request, now } = options
    const generateId = options.generateId ?? defaultGenerateId
    const facts = factsOfResponses(options.provider, options.call)
    this.#hold = createHold({ emit, request, ...(now && { now }) })
    this.#state = createState({ ...facts, request, generateId }, this.#hold.emit)
    this.#decoder = createEventDecoder({ options, check: checkChunk, reader: this })
    this.#hold.emit({ type: 'stream-start', warnings })
  }

  push(bytes: Uint8Array): void {
    this.#hold.tick()
    this.#decoder.push(bytes)
  }

  end(): void {
    this.#decoder.end()
  }

  onChunk({ value: chunk, error }: Read<Chunk>, learn: Learn): void {
    this.#hold.check(chunk)
    if (chunk === undefined) return this.#fail(error)
    const state = this.#state
    readChunk(state, chunk)
    if (!repeated.has(chunk.type)) return
    const repeat = chunk as Chunk & { delta: string }
    learn(places, (delta) => {
      repeat.delta = delta
      readChunk(state, repeat)
    })
  }

  onEnd(): void {
    this.#hold.open()
    emitEnd(this.#state)
  }

  #fail(error: unknown): void {
    const state = this.#state
    const value = TypeValidationError.isInstance(error) ? error.value : undefined
    state.hasError = true
    state.finishReason = { unified: 'error', raw: undefined }
    state.emit({ type: 'error', error: isChatChunk(value) ? toMismatch(value, error, state.request) : error })
  }
}
