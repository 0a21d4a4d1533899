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
import { createEventDecoder, type ChunkReader, type Learn } from '../event-decoder.ts'
import type { Emit } from '../gate.ts'
import type { Chunk } from '../read-json.ts'

export interface CompatibleFacts {
  /** The key of the provider metadata: see `metadataKeyOf`. */
  metadataKey: string
}

/** The provider's name, or in camel case if the request's provider options have that. `provider`: `my-server.chat`. */
export function metadataKeyOf(provider: string, providerOptions: Record<string, unknown> | undefined): string {
  const { name, camel } = namesOf(provider)
  return camel !== name && (ownValue(providerOptions, camel) ?? undefined) !== undefined ? camel : name
}

let lastNames = { provider: '', name: '', camel: '' }

/** Those of the last provider are kept: a server asks few of them, again and again. */
function namesOf(provider: string): { name: string; camel: string } {
  if (lastNames.provider !== provider) {
    const name = provider.split('.')[0]!.trim()
    const camel = name.replace(/[_-]([a-z])/g, (pair) => pair[1]!.toUpperCase())
    lastNames = { provider, name, camel }
  }
  return lastNames
}

const textId = 'txt-0'
const reasoningId = 'reasoning-0'

export function createCompatibleDecoder(options: DecoderOptions & CompatibleFacts): StreamDecoder {
  const { emit, warnings } = options
  const reader = new CompatibleReader(options)
  const decoder = createEventDecoder({ options, check: checkCompatibleChunk, reader })
  emit({ type: 'stream-start', warnings })
  return decoder
}

/** A class, because its functions would cost each open answer more than what it knows. */
class CompatibleReader implements ChunkReader<ChatChunk> {
  readonly #emit: Emit
  readonly #generateId: () => string
  readonly #metadataKey: string
  /** Made with the first tool call: most answers have none. */
  #calls: CompatibleCalls | undefined = undefined

  #finishReason: LanguageModelV4FinishReason | undefined = undefined
  #rawReason: string | undefined = undefined
  #usage: ChatUsage | undefined = undefined
  #hasMetadata = false
  #active: 'text' | 'reasoning' | undefined = undefined
  #hasRefusal = false

  constructor({ emit, metadataKey, generateId = defaultGenerateId }: DecoderOptions & CompatibleFacts) {
    this.#emit = emit
    this.#generateId = generateId
    this.#metadataKey = metadataKey
  }

  #fail(error: unknown): void {
    this.#finishReason = { unified: 'error', raw: undefined }
    this.#rawReason = undefined
    this.#emit({ type: 'error', error })
  }

  onChunk(chunk: Chunk<ChatChunk>, learn: Learn): void {
    const { value } = chunk
    if (value === undefined) return this.#fail(chunk.error)
    if ('error' in value) return this.#fail(value.error)
    if (!this.#hasMetadata) {
      const part = responseMetadata(value)
      if (part !== undefined) this.#emit(part)
      this.#hasMetadata = part !== undefined
    }
    if (value.usage) this.#usage = value.usage
    const [choice] = value.choices
    if (typeof choice?.finish_reason === 'string') this.#rawReason = choice.finish_reason
    if (choice?.delta) this.#readDelta(choice.delta, learn)
  }

  #readCall(call: ChatToolCall): void {
    this.#calls ??= createCompatibleCalls(this.#emit, this.#generateId, this.#metadataKey)
    this.#calls.read(call)
  }

  #endReasoning(): void {
    if (this.#active === 'reasoning') this.#emit({ type: 'reasoning-end', id: reasoningId })
  }

  #endText(): void {
    if (this.#active === 'text') this.#emit({ type: 'text-end', id: textId })
  }

  // These two are what a template does for each of its texts.
  readonly #emitReasoning = (delta: string): void => {
    if (this.#active !== 'reasoning') {
      this.#endText()
      this.#emit({ type: 'reasoning-start', id: reasoningId })
      this.#active = 'reasoning'
    }
    this.#emit({ type: 'reasoning-delta', id: reasoningId, delta })
  }

  readonly #emitText = (delta: string): void => {
    if (this.#active !== 'text') {
      this.#endReasoning()
      this.#emit({ type: 'text-start', id: textId })
      this.#active = 'text'
    }
    this.#emit({ type: 'text-delta', id: textId, delta })
  }

  #readDelta(delta: ChatDelta, learn: Learn): void {
    const { content, reasoning_content: thought, reasoning, tool_calls: toolCalls } = delta
    const thoughts = thought ?? reasoning
    // The schema turns everything but a string into undefined; a usual chunk may have null.
    const refusal = delta.refusal ?? undefined
    if (thoughts) this.#emitReasoning(thoughts)
    for (const { type, text } of blocksOf(content)) {
      if (type === 'reasoning') this.#emitReasoning(text)
      else this.#emitText(text)
    }
    if (refusal) {
      this.#hasRefusal = true
      this.#emitText(refusal)
    }
    const [call, another] = toolCalls ?? []
    if (call !== undefined && this.#active === 'reasoning') {
      this.#endReasoning()
      this.#active = undefined
    }
    for (const each of toolCalls ?? []) this.#readCall(each)

    if (refusal || another !== undefined) return
    if (call !== undefined) {
      if (thoughts || content || !call.function.arguments) return
      const { function: named, ...rest } = call
      const again = (text: string) => this.#readCall({ ...rest, function: { ...named, arguments: text } })
      learn(argumentsPlaces, again)
    } else if (thoughts) {
      if (!content && thought) learn(reasoningContentPlaces, this.#emitReasoning)
      else if (!content) learn(reasoningPlaces, this.#emitReasoning)
    } else if (typeof content === 'string' && content !== '') learn(contentPlaces, this.#emitText)
  }

  onEnd(): void {
    this.#endReasoning()
    this.#endText()
    this.#calls?.end()
    if (this.#rawReason !== undefined) this.#finishReason = finishReasonOf(this.#rawReason, this.#hasRefusal)
    if (this.#finishReason === undefined) {
      const message = 'Response stream ended without a finish reason.'
      this.#fail(new InvalidResponseDataError({ data: undefined, message }))
    }
    const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } =
      this.#usage?.completion_tokens_details ?? {}
    const metadata: Record<string, number> = {}
    if (typeof accepted === 'number') metadata['acceptedPredictionTokens'] = accepted
    if (typeof rejected === 'number') metadata['rejectedPredictionTokens'] = rejected
    const providerMetadata: SharedV4ProviderMetadata = { [this.#metadataKey]: metadata }
    const finishReason = this.#finishReason!
    this.#emit({ type: 'finish', finishReason, usage: usageOf(this.#usage), providerMetadata })
  }
}
