/** OpenAI's chat completions, as `@ai-sdk/openai` reads them (`openai.chat`). */
import type { LanguageModelV4FinishReason, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { generateId as defaultGenerateId, StreamingToolCallTracker } from '@ai-sdk/provider-utils'
import {
  argumentsPlaces,
  checkOpenAIChunk,
  contentPlaces,
  type ChatChunk,
  type ChatDelta,
  type ChatToolCall,
  type ChatUsage,
} from './chunk.ts'
import { finishReasonOf, responseMetadata, usageOf } from './parts.ts'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import { createEventDecoder, type Learn } from '../event-decoder.ts'
import { createGate } from '../gate.ts'
import { openAIRefusal, openAIStreamError } from '../openai-stream-error.ts'
import type { Chunk } from '../read-json.ts'

export function createOpenAIChatDecoder(options: DecoderOptions & { request: RequestFacts }): StreamDecoder {
  const { warnings, generateId = defaultGenerateId } = options
  // The package reads ahead until there is output: an error before that rejects the request.
  const gate = createGate(options.emit)
  const { emit } = gate
  const calls = new StreamingToolCallTracker({ enqueue: emit }, { generateId, typeValidation: 'if-present' })

  let finishReason: LanguageModelV4FinishReason = { unified: 'interrupted', raw: undefined }
  let rawReason: string | undefined
  let usage: ChatUsage | undefined
  let hasMetadata = false
  let hasText = false
  let hasRefusal = false
  let logprobs: unknown[] | undefined
  const metadata: Record<string, unknown> = {}

  function fail(error: unknown): void {
    finishReason = { unified: 'error', raw: undefined }
    rawReason = undefined
    emit({ type: 'error', error })
  }

  function peek({ value }: Chunk<ChatChunk>): void {
    if (value === undefined || !('error' in value)) {
      if (value === undefined || value.choices.some(({ delta }) => isOutput(delta))) gate.open()
    } else if (value.error !== null && value.error !== undefined) throw openAIRefusal(value.error, options.request)
  }

  function onChunk(chunk: Chunk<ChatChunk>, learn: Learn): void {
    if (!gate.isOpen()) peek(chunk)
    const { value } = chunk
    if (value === undefined) return fail(chunk.error)
    if ('error' in value) return fail(openAIStreamError(value.error) ?? value.error)
    if (!hasMetadata) {
      const part = responseMetadata(value)
      if (part !== undefined) emit(part)
      hasMetadata = part !== undefined
    }
    if (value.usage !== null && value.usage !== undefined) readUsage(value.usage)
    const [choice] = value.choices
    if (choice === undefined) return
    if (typeof choice.finish_reason === 'string') rawReason = choice.finish_reason
    const { content, refusal } = choice.logprobs ?? {}
    if (content || refusal) (logprobs ??= []).push(...(content ?? []), ...(refusal ?? []))
    if (choice.delta) readDelta(choice.delta, choice.logprobs, learn)
  }

  function readUsage(read: ChatUsage): void {
    usage = read
    const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } =
      read.completion_tokens_details ?? {}
    if (typeof accepted === 'number') metadata['acceptedPredictionTokens'] = accepted
    if (typeof rejected === 'number') metadata['rejectedPredictionTokens'] = rejected
  }

  function emitText(delta: string): void {
    emit({ type: 'text-delta', id: '0', delta })
  }

  function readDelta(delta: ChatDelta, logs: unknown, learn: Learn): void {
    const content = delta.content as string | null | undefined
    const { refusal, tool_calls: toolCalls, annotations } = delta
    if (refusal) hasRefusal = true
    const texts = [content, refusal].filter((text): text is string => typeof text === 'string' && text !== '')
    if (texts.length === 0 && content === '') texts.push('')
    for (const text of texts) {
      if (!hasText) emit({ type: 'text-start', id: '0' })
      hasText = true
      emitText(text)
    }
    for (const call of toolCalls ?? []) calls.processDelta(knownCall(call))
    for (const { url_citation: cited } of annotations ?? []) {
      const { url, title } = cited
      emit({ type: 'source', sourceType: 'url', id: generateId(), url, title })
    }
    if (logs || annotations?.length) return
    const [call, another] = toolCalls ?? []
    if (content && !refusal && call === undefined) learn(contentPlaces, emitText)
    else if (texts.length === 0 && call?.function.arguments && another === undefined) {
      const again = (text: string) => calls.processDelta(knownCall(call, text))
      learn(argumentsPlaces, again)
    }
  }

  const decoder = createEventDecoder({
    options,
    check: checkOpenAIChunk,
    onChunk,
    onEnd() {
      gate.open()
      if (hasText) emit({ type: 'text-end', id: '0' })
      calls.flush()
      if (rawReason !== undefined) finishReason = finishReasonOf(rawReason, hasRefusal)
      if (logprobs !== undefined) metadata['logprobs'] = logprobs
      const providerMetadata = { openai: metadata } as SharedV4ProviderMetadata
      emit({ type: 'finish', finishReason, usage: usageOf(usage, true), providerMetadata })
    },
  })
  emit({ type: 'stream-start', warnings })
  return decoder
}

function isOutput(delta: ChatDelta | null | undefined): boolean {
  if (!delta) return false
  const { content, refusal, tool_calls: calls, annotations } = delta
  return [content, refusal, calls, annotations].some((list) => list && list.length > 0)
}

/** Without fields that the schema removes: an error about the call has it as its data. */
function knownCall({ index, id, type, function: named }: ChatToolCall, text = named.arguments): ChatToolCall {
  return { index, id, type, function: { name: named.name, arguments: text } }
}
