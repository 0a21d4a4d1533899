/** Decoder of Google's generate-content stream: emits what `doStream` of `@ai-sdk/google` would. */
import type { LanguageModelV4CallOptions, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { createToolNameMapping, generateId as defaultGenerateId } from '@ai-sdk/provider-utils'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import { createEventDecoder, type ChunkReader, type EventDecoder, type Learn } from '../event-decoder.ts'
import type { Choose } from '../json-places.ts'
import { readJson, type Chunk as Read } from '../read-json.ts'
import { checkChunk, type Chunk } from './chunk-schema.ts'
import { createContinuation } from './continuation.ts'
import { jsonToolIn, readJsonTool } from './json-tool.ts'
import { readChunk } from './read-chunk.ts'
import { createState, endBlocks, interrupted, type State } from './state.ts'
import type { TextPart } from './text.ts'
import { addUsage, toUsage } from './usage.ts'

export interface GoogleDecoderOptions extends DecoderOptions {
  /** The model's: `google.generative-ai`. */
  provider: string
  call: Pick<LanguageModelV4CallOptions, 'tools'>
  request: RequestFacts
}

/**
 * A long answer may take several requests. When a body has ended, `continuation` is the token for the next one, sent with the same
 * body and `continuationToken`. Then `continued` begins the next body; if the request fails, `failed` comes before `end`.
 */
export interface GoogleDecoder extends StreamDecoder {
  continuation(): string | undefined
  continued(): void
  failed(error: unknown): void
}

export function createGoogleDecoder(options: GoogleDecoderOptions): GoogleDecoder {
  return new ContentDecoder(options)
}

const providerToolNames = { 'google.code_execution': 'code_execution' }

const metadataUnder =
  (...keys: string[]): State['metadata'] =>
  (payload) =>
    Object.fromEntries(keys.map((key) => [key, payload])) as SharedV4ProviderMetadata
const googleMetadata = metadataUnder('google')
const vertexMetadata = metadataUnder('googleVertex', 'vertex')

/** A class, because its functions would cost each open answer more than what it knows. */
class ContentDecoder implements GoogleDecoder, ChunkReader<Chunk> {
  readonly #request: RequestFacts
  readonly #state: State
  readonly #continuation = createContinuation()
  readonly #decoder: EventDecoder
  /** A chunk that was only compared with the one before. Its counts differ, and the last ones are needed at the end. */
  #unparsed: string | undefined = undefined

  constructor(options: GoogleDecoderOptions) {
    const { warnings, request } = options
    const { tools = [] } = options.call
    const jsonTool = jsonToolIn(request.body, tools)
    const emit = jsonTool === undefined ? options.emit : readJsonTool(jsonTool, options.emit)
    this.#request = request
    this.#state = createState({
      emit,
      generateId: options.generateId ?? defaultGenerateId,
      metadata: options.provider.includes('vertex') ? vertexMetadata : googleMetadata,
      toCustomToolName: createToolNameMapping({ tools, providerToolNames }).toCustomToolName,
    })
    this.#decoder = createEventDecoder({ options, check: checkChunk, reader: this })
    emit({ type: 'stream-start', warnings })
  }

  push(bytes: Uint8Array): void {
    this.#decoder.push(bytes)
  }

  end(): void {
    this.#decoder.end()
  }

  continuation(): string | undefined {
    return this.#continuation.token()
  }

  continued(): void {
    this.#settleUsage()
    this.#continuation.next()
    this.#state.finishReason = interrupted
    this.#decoder.reopen()
  }

  failed(error: unknown): void {
    this.#continuation.drop()
    this.#fail(error)
  }

  #read(chunk: Chunk): void {
    this.#continuation.note(chunk.candidates?.[0])
    readChunk(this.#state, chunk)
  }

  onChunk({ value: chunk, error }: Read<Chunk>, learn: Learn): void {
    this.#settleUsage()
    if (chunk === undefined) return this.#fail(error)
    this.#read(chunk)
    const part = onlyText(chunk)
    if (part === undefined) return
    const onText = (text: string) => {
      part.text = text
      this.#read(chunk)
    }
    learn(placeOf, onText, chunk.usageMetadata ? (data) => (this.#unparsed = data) : undefined)
  }

  #settleUsage(): void {
    if (this.#unparsed === undefined) return
    const { value } = readJson(this.#unparsed, checkChunk)
    this.#unparsed = undefined
    if (value?.usageMetadata) this.#state.usage = value.usageMetadata
  }

  #fail(error: unknown): void {
    const state = this.#state
    if (state.finishReason.unified === 'interrupted') state.finishReason = { unified: 'error', raw: undefined }
    state.emit({ type: 'error', error })
  }

  onEnd(): void {
    this.#settleUsage()
    const state = this.#state
    const usage = addUsage(state.earlierUsage, state.usage)
    endBlocks(state)
    const { finishReason, continuationToken, firstPromptTokens } = state
    const isCutShort = finishReason.raw === 'MAX_TOKENS' || finishReason.raw === 'CONTINUATION'
    state.emit({
      type: 'finish',
      finishReason,
      usage: toUsage(usage),
      providerMetadata: state.metadata({
        promptFeedback: state.promptFeedback,
        groundingMetadata: state.grounding,
        ...this.#continuation.groundings(),
        urlContextMetadata: state.urlContext,
        safetyRatings: state.safetyRatings,
        usageMetadata: usage ?? null,
        finishMessage: state.finishMessage,
        serviceTier: usage?.serviceTier ?? this.#request.responseHeaders?.['x-gemini-service-tier'] ?? null,
        ...(continuationToken !== null && isCutShort && { continuationToken }),
        ...(firstPromptTokens !== null &&
          firstPromptTokens !== undefined && { initialPromptTokenCount: firstPromptTokens }),
      }),
    })
  }
}

/** Of a chunk in the middle of an answer. */
function onlyText({ candidates }: Chunk): TextPart | undefined {
  const [{ content, finishReason } = {}] = candidates?.length === 1 ? candidates : []
  const parts = finishReason ? undefined : content?.parts
  const part = parts?.length === 1 ? parts[0] : undefined
  return part !== undefined && 'text' in part && typeof part.text === 'string' ? part : undefined
}

/** The counts are read from the last chunk, which is parsed for that. */
const placeOf: Choose = (path) => {
  if (path === 'candidates.0.content.parts.0.text') return 'text'
  return path.startsWith('usageMetadata.') && path.endsWith('Count') ? 'unread' : undefined
}
