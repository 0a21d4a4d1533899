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
import { createMessage } from './message.ts'
import type { AnthropicEvent, EventOf } from './event-schema.ts'
import { createState } from './state.ts'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import { createEventDecoder, type Learn } from '../event-decoder.ts'
import { createGate } from '../gate.ts'
import type { Chunk } from '../read-json.ts'

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>

export function createAnthropicDecoder(
  options: DecoderOptions & { request: RequestFacts; facts: AnthropicFacts },
): StreamDecoder {
  const { facts, request, generateId = defaultGenerateId } = options
  // The package reads the first part before `doStream` resolves: an error there rejects the request.
  const gate = createGate(options.emit)
  let hasOutput = false
  let hasError = false
  let lastFinish: Finish | undefined
  let isOver = false

  function emit(part: LanguageModelV4StreamPart): void {
    if (!gate.isOpen() && part.type !== 'stream-start' && part.type !== 'ping') {
      if (part.type === 'error') throw refusalOf(part.error, request)
      gate.open()
    }
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-input-delta':
        if (part.delta !== '') hasOutput = true
        break
      case 'tool-call':
        hasOutput = true
        break
      case 'finish':
        lastFinish = part
        hasOutput = false
        break
      case 'response-metadata':
        hasOutput = false
        break
      case 'error':
        hasError = true
        break
      default:
    }
    gate.emit(part)
  }

  const state = createState(emit, generateId, facts)
  const message = createMessage(state)

  function onChunk({ value: event, error }: Chunk<AnthropicEvent>, learn: Learn): void {
    if (event === undefined) return emit({ type: 'error', error })
    switch (event.type) {
      case 'ping':
        if (facts.includePings) emit({ type: 'ping' })
        return
      case 'content_block_start':
        return startBlock(state, event.index, event.content_block)
      case 'content_block_stop':
        return stopBlock(state, event.index)
      case 'content_block_delta':
        return readDelta(state, event, learn)
      case 'message_start':
        isOver = !message.start(event)
        return
      case 'message_delta':
        return message.delta(event)
      case 'message_stop':
        return message.stop()
      case 'error':
        return emit({ type: 'error', error: streamErrorOf(event.error) })
    }
  }

  const decoder = createEventDecoder({
    options,
    check: checkEvent,
    reader: {
      onChunk,
      isDone: () => isOver,
      onEnd() {
        gate.open()
        if (!hasOutput || hasError) return
        const metadata = lastFinish?.providerMetadata
        gate.emit({
          type: 'finish',
          finishReason: { unified: 'interrupted', raw: undefined },
          usage: lastFinish?.usage ?? createNullLanguageModelUsage(),
          ...(metadata && { providerMetadata: metadata }),
        })
      },
    },
  })
  emit({ type: 'stream-start', warnings: options.warnings })
  return decoder
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
