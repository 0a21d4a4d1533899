/**
 * OpenAI's chat completions, as `@ai-sdk/openai-compatible` reads them: Ollama, vLLM, llama.cpp, DeepSeek, gateways. Not for models
 * with a `metadataExtractor`, an `errorStructure` or a `convertUsage` of their own.
 */
import {
  InvalidResponseDataError,
  type LanguageModelV4FinishReason,
  type SharedV4ProviderMetadata,
} from '@ai-sdk/provider'
import { generateId as defaultGenerateId } from '@ai-sdk/provider-utils'
import { ownValue } from '../../../part/own-value.ts'
import {
  argumentsPlaces,
  checkCompatibleChunk,
  contentPlaces,
  reasoningContentPlaces,
  reasoningPlaces,
  type ChatChunk,
  type ChatDelta,
  type ChatToolCall,
  type ChatUsage,
} from './chunk.ts'
import { createCompatibleCalls, type CompatibleCalls } from './compatible-calls.ts'
import { blocksOf } from './compatible-content.ts'
import { finishReasonOf, responseMetadata, usageOf } from './parts.ts'
import type { DecoderOptions, StreamDecoder } from '../decoder.ts'
import { createEventDecoder, type Learn } from '../event-decoder.ts'
import type { Chunk } from '../read-json.ts'

export interface CompatibleFacts {
  /** The key of the provider metadata: see `metadataKeyOf`. */
  metadataKey: string
}

/** The provider's name, or in camel case if the request's provider options have that. `provider`: `my-server.chat`. */
export function metadataKeyOf(provider: string, providerOptions: Record<string, unknown> | undefined): string {
  const name = provider.split('.')[0]!.trim()
  const camel = name.replace(/[_-]([a-z])/g, (pair) => pair[1]!.toUpperCase())
  return camel !== name && (ownValue(providerOptions, camel) ?? undefined) !== undefined ? camel : name
}

const textId = 'txt-0'
const reasoningId = 'reasoning-0'

export function createCompatibleDecoder(options: DecoderOptions & CompatibleFacts): StreamDecoder {
  const { emit, warnings, metadataKey, generateId = defaultGenerateId } = options
  /** Made with the first tool call: most answers have none. */
  let calls: CompatibleCalls | undefined

  let finishReason: LanguageModelV4FinishReason | undefined
  let rawReason: string | undefined
  let usage: ChatUsage | undefined
  let hasMetadata = false
  let active: 'text' | 'reasoning' | undefined
  let hasRefusal = false

  function fail(error: unknown): void {
    finishReason = { unified: 'error', raw: undefined }
    rawReason = undefined
    emit({ type: 'error', error })
  }

  function onChunk(chunk: Chunk<ChatChunk>, learn: Learn): void {
    const { value } = chunk
    if (value === undefined) return fail(chunk.error)
    if ('error' in value) return fail(value.error)
    if (!hasMetadata) {
      const part = responseMetadata(value)
      if (part !== undefined) emit(part)
      hasMetadata = part !== undefined
    }
    if (value.usage) usage = value.usage
    const [choice] = value.choices
    if (typeof choice?.finish_reason === 'string') rawReason = choice.finish_reason
    if (choice?.delta) readDelta(choice.delta, learn)
  }

  function readCall(call: ChatToolCall): void {
    calls ??= createCompatibleCalls(emit, generateId, metadataKey)
    calls.read(call)
  }
  function endReasoning(): void {
    if (active === 'reasoning') emit({ type: 'reasoning-end', id: reasoningId })
  }
  function endText(): void {
    if (active === 'text') emit({ type: 'text-end', id: textId })
  }

  function emitReasoning(delta: string): void {
    if (active !== 'reasoning') {
      endText()
      emit({ type: 'reasoning-start', id: reasoningId })
      active = 'reasoning'
    }
    emit({ type: 'reasoning-delta', id: reasoningId, delta })
  }

  function emitText(delta: string): void {
    if (active !== 'text') {
      endReasoning()
      emit({ type: 'text-start', id: textId })
      active = 'text'
    }
    emit({ type: 'text-delta', id: textId, delta })
  }

  function readDelta(delta: ChatDelta, learn: Learn): void {
    const { content, reasoning_content: thought, reasoning, tool_calls: toolCalls } = delta
    const thoughts = thought ?? reasoning
    // The schema turns everything but a string into undefined; a usual chunk may have null.
    const refusal = delta.refusal ?? undefined
    if (thoughts) emitReasoning(thoughts)
    for (const { type, text } of blocksOf(content)) {
      if (type === 'reasoning') emitReasoning(text)
      else emitText(text)
    }
    if (refusal) {
      hasRefusal = true
      emitText(refusal)
    }
    const [call, another] = toolCalls ?? []
    if (call !== undefined && active === 'reasoning') {
      endReasoning()
      active = undefined
    }
    for (const each of toolCalls ?? []) readCall(each)

    if (refusal || another !== undefined) return
    if (call !== undefined) {
      if (thoughts || content || !call.function.arguments) return
      const { function: named, ...rest } = call
      const again = (text: string) => readCall({ ...rest, function: { ...named, arguments: text } })
      learn(argumentsPlaces, again)
    } else if (thoughts) {
      if (!content && thought) learn(reasoningContentPlaces, emitReasoning)
      else if (!content) learn(reasoningPlaces, emitReasoning)
    } else if (typeof content === 'string' && content !== '') learn(contentPlaces, emitText)
  }

  const decoder = createEventDecoder({
    options,
    check: checkCompatibleChunk,
    onChunk,
    onEnd() {
      endReasoning()
      endText()
      calls?.end()
      if (rawReason !== undefined) finishReason = finishReasonOf(rawReason, hasRefusal)
      if (finishReason === undefined) {
        const message = 'Response stream ended without a finish reason.'
        fail(new InvalidResponseDataError({ data: undefined, message }))
      }
      const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } =
        usage?.completion_tokens_details ?? {}
      const metadata: Record<string, number> = {}
      if (typeof accepted === 'number') metadata['acceptedPredictionTokens'] = accepted
      if (typeof rejected === 'number') metadata['rejectedPredictionTokens'] = rejected
      const providerMetadata: SharedV4ProviderMetadata = { [metadataKey]: metadata }
      emit({ type: 'finish', finishReason: finishReason!, usage: usageOf(usage), providerMetadata })
    },
  })
  emit({ type: 'stream-start', warnings })
  return decoder
}
