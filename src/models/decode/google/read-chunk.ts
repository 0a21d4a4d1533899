/** One chunk of Google's generate-content stream → parts. */
import type { LanguageModelV4FinishReason } from '@ai-sdk/provider'
import { createProviderStreamError, type ProviderStreamError } from '@ai-sdk/provider-utils'
import type { Candidate, Chunk } from './chunk-schema.ts'
import { readPart } from './part.ts'
import { emitSources } from './sources.ts'
import type { State } from './state.ts'
import { addUsage } from './usage.ts'

export function readChunk(state: State, chunk: Chunk): void {
  if (chunk.error) {
    state.finishReason = { unified: 'error', raw: undefined }
    return state.emit({ type: 'error', error: toProviderError(chunk.error) })
  }
  const { responseId, usageMetadata } = chunk
  if (!state.hasResponseId && responseId !== null && responseId !== undefined) {
    state.hasResponseId = true
    state.emit({ type: 'response-metadata', id: responseId })
  }
  if (usageMetadata) state.usage = usageMetadata
  if (chunk.promptFeedback && state.blockReason === undefined) {
    state.promptFeedback = chunk.promptFeedback
    const { blockReason } = chunk.promptFeedback
    if (isConfirmed(blockReason)) {
      state.blockReason = blockReason
      state.finishReason = { unified: 'content-filter', raw: blockReason }
    }
  }
  const candidate = chunk.candidates?.[0]
  if (candidate === undefined) return
  state.grounding = candidate.groundingMetadata ?? state.grounding
  state.urlContext = candidate.urlContextMetadata ?? state.urlContext
  state.safetyRatings = candidate.safetyRatings ?? state.safetyRatings
  state.finishMessage = candidate.finishMessage ?? state.finishMessage
  state.continuationToken = candidate.continuationToken ?? state.continuationToken
  // A blocked prompt has no answer, but what comes later may tell more of it.
  if (state.blockReason === undefined) readCandidate(state, candidate)
}

function readCandidate(state: State, { groundingMetadata, content, finishReason }: Candidate): void {
  const { generateId, emit, sources: known } = state
  if (groundingMetadata) emitSources(groundingMetadata, { generateId, emit, known })
  for (const part of content?.parts ?? []) readPart(state, part)
  if (finishReason === 'CONTINUATION') {
    // The next request counts its own tokens.
    if (state.earlierUsage === undefined) state.firstPromptTokens = state.usage?.promptTokenCount
    state.earlierUsage = addUsage(state.earlierUsage, state.usage)
    state.usage = undefined
  }
  if (finishReason !== null && finishReason !== undefined) {
    state.finishReason = { unified: unifiedOf(finishReason, state.hasToolCalls), raw: finishReason }
  }
}

function isConfirmed(reason: string | null | undefined): reason is string {
  return Boolean(reason) && reason !== 'BLOCK_REASON_UNSPECIFIED' && reason !== 'BLOCKED_REASON_UNSPECIFIED'
}

function unifiedOf(reason: string, hasToolCalls: boolean): LanguageModelV4FinishReason['unified'] {
  switch (reason) {
    case 'STOP':
      return hasToolCalls ? 'tool-calls' : 'stop'
    case 'MAX_TOKENS':
    case 'CONTINUATION':
      return 'length'
    case 'IMAGE_SAFETY':
    case 'RECITATION':
    case 'SAFETY':
    case 'BLOCKLIST':
    case 'PROHIBITED_CONTENT':
    case 'SPII':
      return 'content-filter'
    case 'MALFORMED_FUNCTION_CALL':
      return 'error'
    default:
      return 'other'
  }
}

function toProviderError(error: NonNullable<Chunk['error']>): ProviderStreamError {
  const statusCode = error.code ?? statuses.get(error.status)
  const isRetryable = statusCode !== undefined && (passing.has(statusCode) || statusCode >= 500)
  return createProviderStreamError({
    message: error.message,
    type: error.status,
    ...(error.code !== null && { code: error.code }),
    ...(statusCode !== undefined && { statusCode }),
    isRetryable,
    data: error,
  })
}

const passing = new Set([408, 409, 429])
const statuses = new Map(
  Object.entries({
    CANCELLED: 499,
    INVALID_ARGUMENT: 400,
    FAILED_PRECONDITION: 400,
    OUT_OF_RANGE: 400,
    DEADLINE_EXCEEDED: 504,
    NOT_FOUND: 404,
    ALREADY_EXISTS: 409,
    ABORTED: 409,
    PERMISSION_DENIED: 403,
    UNAUTHENTICATED: 401,
    RESOURCE_EXHAUSTED: 429,
    UNIMPLEMENTED: 501,
    UNKNOWN: 500,
    INTERNAL: 500,
    DATA_LOSS: 500,
    UNAVAILABLE: 503,
  }),
)
