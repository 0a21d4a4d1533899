/** Decoder of OpenAI's responses stream: emits what `doStream` of `@ai-sdk/openai` would. */
import { TypeValidationError, type LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { generateId as defaultGenerateId } from '@ai-sdk/provider-utils'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import { createEventDecoder, type Learn } from '../event-decoder.ts'
import { textAt } from '../json-places.ts'
import type { Chunk as Read } from '../read-json.ts'
import { checkChunk, type Chunk } from './chunk-schema.ts'
import { emitEnd } from './ending.ts'
import { factsOfResponses } from './facts.ts'
import { createHold } from './hold.ts'
import { readChunk } from './read-chunk.ts'
import { createState } from './state.ts'
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
  const { emit, warnings, request, now } = options
  const generateId = options.generateId ?? defaultGenerateId
  const facts = factsOfResponses(options.provider, options.call)
  const hold = createHold({ emit, request, ...(now && { now }) })
  const state = createState({ ...facts, request, generateId }, hold.emit)

  function onChunk({ value: chunk, error }: Read<Chunk>, learn: Learn): void {
    hold.check(chunk)
    if (chunk === undefined) return fail(error)
    readChunk(state, chunk)
    if (!repeated.has(chunk.type)) return
    const repeat = chunk as Chunk & { delta: string }
    learn(places, (delta) => {
      repeat.delta = delta
      readChunk(state, repeat)
    })
  }

  function fail(error: unknown): void {
    const value = TypeValidationError.isInstance(error) ? error.value : undefined
    state.hasError = true
    state.finishReason = { unified: 'error', raw: undefined }
    state.emit({ type: 'error', error: isChatChunk(value) ? toMismatch(value, error, request) : error })
  }

  const decoder = createEventDecoder({
    options,
    check: checkChunk,
    reader: {
      onChunk,
      onEnd() {
        hold.open()
        emitEnd(state)
      },
    },
  })
  hold.emit({ type: 'stream-start', warnings })
  return {
    push(bytes) {
      hold.tick()
      decoder.push(bytes)
    },
    end: () => decoder.end(),
  }
}
