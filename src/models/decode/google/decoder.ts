/** Decoder of Google's generate-content stream: emits what `doStream` of `@ai-sdk/google` would. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { createToolNameMapping, generateId as defaultGenerateId } from '@ai-sdk/provider-utils'
import type { DecoderOptions, RequestFacts, StreamDecoder } from '../decoder.ts'
import { createEventDecoder, type Learn } from '../event-decoder.ts'
import type { Choose } from '../json-places.ts'
import { readJson, type Chunk as Read } from '../read-json.ts'
import { checkChunk, type Chunk } from './chunk-schema.ts'
import { createContinuation } from './continuation.ts'
import { jsonToolIn, readJsonTool } from './json-tool.ts'
import { readChunk } from './read-chunk.ts'
import { createState, endBlocks, interrupted } from './state.ts'
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
  const { warnings, request } = options
  const { tools = [] } = options.call
  const jsonTool = jsonToolIn(request.body, tools)
  const emit = jsonTool === undefined ? options.emit : readJsonTool(jsonTool, options.emit)
  const keys = options.provider.includes('vertex') ? ['googleVertex', 'vertex'] : ['google']
  const providerToolNames = { 'google.code_execution': 'code_execution' }
  const metadata = (payload: Record<string, unknown>) =>
    Object.fromEntries(keys.map((key) => [key, payload])) as ReturnType<typeof state.metadata>
  const state = createState({
    emit,
    generateId: options.generateId ?? defaultGenerateId,
    metadata,
    toCustomToolName: createToolNameMapping({ tools, providerToolNames }).toCustomToolName,
  })
  const continuation = createContinuation()
  /** A chunk that was only compared with the one before. Its counts differ, and the last ones are needed at the end. */
  let unparsed: string | undefined

  emit({ type: 'stream-start', warnings })

  function read(chunk: Chunk): void {
    continuation.note(chunk.candidates?.[0])
    readChunk(state, chunk)
  }

  function onChunk({ value: chunk, error }: Read<Chunk>, learn: Learn): void {
    settleUsage()
    if (chunk === undefined) return fail(error)
    read(chunk)
    const part = onlyText(chunk)
    if (part === undefined) return
    const onText = (text: string) => {
      part.text = text
      read(chunk)
    }
    learn(placeOf, onText, chunk.usageMetadata ? (data) => (unparsed = data) : undefined)
  }

  function settleUsage(): void {
    if (unparsed === undefined) return
    const { value } = readJson(unparsed, checkChunk)
    unparsed = undefined
    if (value?.usageMetadata) state.usage = value.usageMetadata
  }

  function fail(error: unknown): void {
    if (state.finishReason.unified === 'interrupted') state.finishReason = { unified: 'error', raw: undefined }
    emit({ type: 'error', error })
  }

  function onEnd(): void {
    settleUsage()
    const usage = addUsage(state.earlierUsage, state.usage)
    endBlocks(state)
    const { finishReason, continuationToken, firstPromptTokens } = state
    const isCutShort = finishReason.raw === 'MAX_TOKENS' || finishReason.raw === 'CONTINUATION'
    emit({
      type: 'finish',
      finishReason,
      usage: toUsage(usage),
      providerMetadata: metadata({
        promptFeedback: state.promptFeedback,
        groundingMetadata: state.grounding,
        ...continuation.groundings(),
        urlContextMetadata: state.urlContext,
        safetyRatings: state.safetyRatings,
        usageMetadata: usage ?? null,
        finishMessage: state.finishMessage,
        serviceTier: usage?.serviceTier ?? request.responseHeaders?.['x-gemini-service-tier'] ?? null,
        ...(continuationToken !== null && isCutShort && { continuationToken }),
        ...(firstPromptTokens !== null &&
          firstPromptTokens !== undefined && { initialPromptTokenCount: firstPromptTokens }),
      }),
    })
  }

  const decoder = createEventDecoder({ options, check: checkChunk, reader: { onChunk, onEnd } })
  return {
    push: (bytes) => decoder.push(bytes),
    end: () => decoder.end(),
    continuation: continuation.token,
    continued() {
      settleUsage()
      continuation.next()
      state.finishReason = interrupted
      decoder.reopen()
    },
    failed(error) {
      continuation.drop()
      fail(error)
    },
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
