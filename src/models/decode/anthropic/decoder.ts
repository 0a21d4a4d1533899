/**
 * Anthropic's messages, as `@ai-sdk/anthropic` reads them, for requests without provider tools and for the provider's usual name
 * (see `facts.ts`).
 */
import { APICallError, type LanguageModelV4StreamPart } from '@ai-sdk/provider'
import {
  createNullLanguageModelUsage,
  createProviderStreamError,
  generateId as defaultGenerateId,
  isProviderStreamError,
} from '@ai-sdk/provider-utils'
import { startBlock } from './block.ts'
import { readDelta, stopBlock } from './delta.ts'
import { checkEvent } from './event.ts'
import type { AnthropicFacts } from './facts.ts'
import { createMessage, type AnthropicMessage } from './message.ts'
import type { AnthropicEvent, EventOf } from './event-schema.ts'
import { createState, type AnthropicState } from './state.ts'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import { createEventDecoder, type ChunkReader, type Learn } from '../event-decoder.ts'
import { createGate, type Gate } from '../gate.ts'
import type { Chunk } from '../read-json.ts'

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>

interface AnthropicOptions extends DecoderOptions {
  request: RequestFacts
  facts: AnthropicFacts
}

export function createAnthropicDecoder(options: AnthropicOptions): StreamDecoder {
  const reader = new AnthropicReader(options)
  const decoder = createEventDecoder({ options, check: checkEvent, reader })
  reader.emit({ type: 'stream-start', warnings: options.warnings })
  return decoder
}

/** A class, because its functions would cost each open answer more than what it knows. */
class AnthropicReader implements ChunkReader<AnthropicEvent> {
  readonly #request: RequestFacts
  /** The package reads the first part before `doStream` resolves: an error there rejects the request. */
  readonly #gate: Gate
  readonly #state: AnthropicState
  readonly #message: AnthropicMessage
  #hasOutput = false
  #hasError = false
  #lastFinish: Finish | undefined = undefined
  #isOver = false

  constructor({ emit, request, facts, generateId = defaultGenerateId }: AnthropicOptions) {
    this.#request = request
    this.#gate = createGate(emit)
    this.#state = createState(this.emit, generateId, facts)
    this.#message = createMessage(this.#state)
  }

  readonly emit = (part: LanguageModelV4StreamPart): void => {
    if (!this.#gate.isOpen() && part.type !== 'stream-start' && part.type !== 'ping') {
      if (part.type === 'error') throw refusalOf(part.error, this.#request)
      this.#gate.open()
    }
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-input-delta':
        if (part.delta !== '') this.#hasOutput = true
        break
      case 'tool-call':
        this.#hasOutput = true
        break
      case 'finish':
        this.#lastFinish = part
        this.#hasOutput = false
        break
      case 'response-metadata':
        this.#hasOutput = false
        break
      case 'error':
        this.#hasError = true
        break
      default:
    }
    this.#gate.emit(part)
  }

  onChunk({ value: event, error }: Chunk<AnthropicEvent>, learn: Learn): void {
    if (event === undefined) return this.emit({ type: 'error', error })
    const state = this.#state
    switch (event.type) {
      case 'ping':
        if (state.facts.includePings) this.emit({ type: 'ping' })
        return
      case 'content_block_start':
        return startBlock(state, event.index, event.content_block)
      case 'content_block_stop':
        return stopBlock(state, event.index)
      case 'content_block_delta':
        return readDelta(state, event, learn)
      case 'message_start':
        this.#isOver = !this.#message.start(event)
        return
      case 'message_delta':
        return this.#message.delta(event)
      case 'message_stop':
        return this.#message.stop()
      case 'error':
        return this.emit({ type: 'error', error: streamErrorOf(event.error) })
    }
  }

  isDone(): boolean {
    return this.#isOver
  }

  onEnd(): void {
    this.#gate.open()
    if (!this.#hasOutput || this.#hasError) return
    const metadata = this.#lastFinish?.providerMetadata
    this.#gate.emit({
      type: 'finish',
      finishReason: { unified: 'interrupted', raw: undefined },
      usage: this.#lastFinish?.usage ?? createNullLanguageModelUsage(),
      ...(metadata && { providerMetadata: metadata }),
    })
  }
}

type SentError = EventOf<'error'>['error']
type ProviderStreamError = ReturnType<typeof createProviderStreamError>

function streamErrorOf(error: SentError): ProviderStreamError {
  const [status, isRetryable] = knownErrors.get(error.type) ?? []
  return createProviderStreamError({
    message: error.message,
    type: error.type,
    code: error.code ?? undefined,
    statusCode: error.statusCode ?? status,
    isRetryable: error.isRetryable ?? isRetryable,
    data: 'data' in error ? error.data : error,
  })
}

/** Status, and whether the same request may succeed later. */
const knownErrors: ReadonlyMap<string, readonly [number, boolean]> = new Map([
  ['api_error', [500, true]],
  ['overloaded_error', [529, true]],
  ['rate_limit_error', [429, true]],
  ['request_too_large', [413, false]],
  ['authentication_error', [401, false]],
  ['permission_error', [403, false]],
  ['not_found_error', [404, false]],
  ['billing_error', [400, false]],
  ['invalid_request_error', [400, false]],
])

/** An error in place of the answer: `doStream` rejects with it. */
function refusalOf(error: unknown, { url, body, responseHeaders }: RequestFacts): Error {
  if (!isProviderStreamError(error)) return new Error('Expected a normalized Anthropic stream error')
  const { message, statusCode, isRetryable, data } = error
  return new APICallError({
    message,
    url,
    requestBodyValues: body,
    statusCode: statusCode ?? 500,
    responseHeaders,
    responseBody: JSON.stringify(data),
    isRetryable: isRetryable ?? false,
  })
}
