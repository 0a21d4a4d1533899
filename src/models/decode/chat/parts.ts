/** Parts of OpenAI's chat completions. */
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { createNullLanguageModelUsage } from '@ai-sdk/provider-utils'
import type { ChatChunk, ChatUsage } from './chunk.ts'

/** Undefined while no chunk has said anything about the response. */
export function responseMetadata({ id, model, created }: ChatChunk): LanguageModelV4StreamPart | undefined {
  // Some servers send 0 for "not known".
  const timestamp = created ? new Date(created * 1000) : undefined
  if (!id && !model && timestamp === undefined) return undefined
  return { type: 'response-metadata', id: id ?? undefined, modelId: model ?? undefined, timestamp }
}

export function finishReasonOf(raw: string, hasRefusal: boolean): LanguageModelV4FinishReason {
  return { unified: unifiedReason(raw, hasRefusal), raw }
}

function unifiedReason(raw: string, hasRefusal: boolean): LanguageModelV4FinishReason['unified'] {
  switch (raw) {
    case 'stop':
      return hasRefusal ? 'content-filter' : 'stop'
    case 'length':
      return 'length'
    case 'content_filter':
      return 'content-filter'
    case 'function_call':
    case 'tool_calls':
      return 'tool-calls'
    default:
      return 'other'
  }
}

export function usageOf(usage: ChatUsage | null | undefined): LanguageModelV4Usage {
  if (usage === null || usage === undefined) return createNullLanguageModelUsage()
  const input = usage.prompt_tokens ?? 0
  const output = usage.completion_tokens ?? 0
  const cacheRead = usage.prompt_tokens_details?.cached_tokens ?? 0
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0
  return {
    inputTokens: { total: input, noCache: input - cacheRead, cacheRead, cacheWrite: undefined },
    outputTokens: { total: output, text: Math.max(0, output - reasoning), reasoning },
    raw: usage as NonNullable<LanguageModelV4Usage['raw']>,
  }
}
