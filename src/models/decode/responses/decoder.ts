/**
 * Decoder of OpenAI's responses stream: emits what `doStream` of `@ai-sdk/openai` would.
 *
 * What remains different: (1) Parts before the answer's first event are emitted with it, not 50 ms after `response.in_progress`
 * (`hold.ts`): this has no clock of its own. (2) Where the package's own code throws in the middle of an answer, its stream drops the
 * parts that nobody has read yet. Here they have been emitted.
 */
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { generateId as defaultGenerateId } from '@ai-sdk/provider-utils'
import { readChunk as parseChunk } from '../checked.ts'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import { createEventStream } from '../event-stream.ts'
import { createRepeats } from '../repeats.ts'
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

export function createResponsesDecoder(options: ResponsesDecoderOptions): StreamDecoder {
  const { emit, warnings, includeRawChunks = false, who, limits, request, now } = options
  const generateId = options.generateId ?? defaultGenerateId
  const facts = factsOfResponses(options.provider, options.call)
  const hold = createHold({ emit, request, ...(now && { now }) })
  const state = createState({ ...facts, request, generateId }, (part: LanguageModelV4StreamPart) => hold.emit(part))
  hold.emit({ type: 'stream-start', warnings })

  const repeats = createRepeats(!includeRawChunks)

  function onData(data: string, source: string, from: number, to: number): void {
    const parsed = parseChunk(data, checkChunk)
    hold.check('value' in parsed ? parsed.value : undefined)
    if (includeRawChunks) state.emit({ type: 'raw', rawValue: parsed.raw })
    if ('error' in parsed) {
      const { raw, error } = parsed
      state.hasError = true
      state.finishReason = { unified: 'error', raw: undefined }
      return state.emit({ type: 'error', error: isChatChunk(raw) ? toMismatch(raw, error, request) : error })
    }
    const chunk = parsed.value
    readChunk(state, chunk)
    if (!repeated.has(chunk.type)) return
    const repeat = chunk as Chunk & { delta: string }
    repeats.learn({ data, source, from, to, placeOf }, (delta) => {
      repeat.delta = delta
      readChunk(state, repeat)
    })
  }

  const events = createEventStream({ onData, shortcut: repeats.read, who, ...(limits && { limits }) })
  return {
    push(bytes) {
      hold.tick()
      events.push(bytes)
    },
    end() {
      hold.release()
      emitEnd(state)
    },
  }
}

/** Nothing reads the number of an event, or the characters that hide the length of its text. */
function placeOf(path: string) {
  if (path === 'delta') return 'text'
  if (path === 'sequence_number') return 'number'
  return path === 'obfuscation' ? 'string' : undefined
}
