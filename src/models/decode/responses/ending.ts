/** How an answer of OpenAI's ends: its reason, usage and metadata. */
import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from '@ai-sdk/provider'
import { createNullLanguageModelUsage } from '@ai-sdk/provider-utils'
import { openAIStreamError } from '../openai-stream-error.ts'
import type { ChunkOf, Usage } from './chunk-schema.ts'
import { emitCitedSources } from './sources.ts'
import type { State } from './state.ts'

export function readFinished(state: State, { response }: ChunkOf<'response.completed'>): void {
  const reason = response.incomplete_details?.reason
  if (!state.hasError) {
    state.finishReason = { unified: unifiedOf(reason, state, state.hasRefusal), raw: reason ?? undefined }
  }
  state.usage = response.usage ?? undefined
  state.diagnostics = response.prompt_cache_diagnostics ?? undefined
  if (typeof response.service_tier === 'string') state.serviceTier = response.service_tier
  state.reasoningContext = response.reasoning?.context ?? state.reasoningContext
}

export function readFailed(state: State, chunk: ChunkOf<'response.failed'>): void {
  const { response, sequence_number } = chunk
  const { error, incomplete_details, service_tier } = response
  const reason = incomplete_details?.reason
  state.diagnostics = response.prompt_cache_diagnostics ?? undefined
  state.finishReason = { unified: reason ? unifiedOf(reason, state, false) : 'error', raw: reason ?? 'error' }
  state.usage = response.usage ?? undefined
  state.reasoningContext = response.reasoning?.context ?? state.reasoningContext
  if (state.hasError || error === null || error === undefined) return
  state.hasError = true
  const frame = {
    type: 'response.failed',
    sequence_number,
    response: { error, incomplete_details, service_tier },
  }
  state.emit({ type: 'error', error: openAIStreamError(frame) ?? frame })
}

export function readError(state: State, chunk: ChunkOf<'error'>): void {
  state.hasError = true
  state.finishReason = { unified: 'error', raw: 'error' }
  state.emit({ type: 'error', error: openAIStreamError(chunk) ?? chunk })
}

export function emitEnd(state: State): void {
  emitCitedSources(state)
  for (const call of Object.values(state.calls)) {
    if (!call?.withheld) continue
    const { toolCallId: id, toolName } = call
    state.emit({ type: 'tool-input-start', id, toolName })
    for (const delta of call.withheld) state.emit({ type: 'tool-input-delta', id, delta })
  }
  const { responseId, logprobs, serviceTier, reasoningContext, diagnostics } = state
  const metadata = {
    responseId,
    ...(logprobs.length > 0 && { logprobs }),
    ...(serviceTier !== undefined && { serviceTier }),
    ...(reasoningContext !== undefined && { reasoningContext }),
    ...(diagnostics !== undefined && { promptCacheDiagnostics: diagnostics }),
  }
  state.emit({
    type: 'finish',
    finishReason: state.finishReason,
    usage: usageOf(state.usage),
    providerMetadata: { [state.metadataKey]: metadata },
  })
}

function unifiedOf(
  reason: string | undefined,
  { hasFunctionCall }: State,
  hasRefusal: boolean,
): LanguageModelV4FinishReason['unified'] {
  switch (reason) {
    case undefined:
      // The tools run even if the model refuses: the refusal stays in the text.
      if (hasFunctionCall) return 'tool-calls'
      return hasRefusal ? 'content-filter' : 'stop'
    case 'max_output_tokens':
      return 'length'
    case 'content_filter':
      return 'content-filter'
    default:
      return hasFunctionCall ? 'tool-calls' : 'other'
  }
}

function usageOf(raw: Usage | undefined): LanguageModelV4Usage {
  if (raw === undefined) return createNullLanguageModelUsage()
  const { input_tokens: input, output_tokens: output } = raw
  const cached = raw.input_tokens_details?.cached_tokens ?? 0
  const written = raw.input_tokens_details?.cache_write_tokens ?? undefined
  const reasoning = raw.output_tokens_details?.reasoning_tokens ?? 0
  return {
    inputTokens: { total: input, noCache: input - cached - (written ?? 0), cacheRead: cached, cacheWrite: written },
    outputTokens: { total: output, text: output - reasoning, reasoning },
    raw,
  }
}
