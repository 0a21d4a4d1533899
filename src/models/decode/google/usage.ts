/** Token counts of Google's models, added up when one answer took several requests. */
import type { LanguageModelV4Usage } from '@ai-sdk/provider'
import { createNullLanguageModelUsage } from '@ai-sdk/provider-utils'
import type { Usage } from './chunk-schema.ts'

type Count = number | null | undefined
type Details = Usage['promptTokensDetails']

export function toUsage(raw: Usage | undefined): LanguageModelV4Usage {
  if (raw === undefined) return createNullLanguageModelUsage()
  const input = (raw.promptTokenCount ?? 0) + (raw.toolUsePromptTokenCount ?? 0)
  const text = raw.candidatesTokenCount ?? 0
  const cached = raw.cachedContentTokenCount ?? 0
  const reasoning = raw.thoughtsTokenCount ?? 0
  return {
    inputTokens: { total: input, noCache: input - cached, cacheRead: cached, cacheWrite: undefined },
    outputTokens: { total: text + reasoning, text, reasoning },
    raw: raw as NonNullable<LanguageModelV4Usage['raw']>,
  }
}

/** What is not a count is taken from the later request. */
export function addUsage(a: Usage | undefined, b: Usage | undefined): Usage | undefined {
  if (a === undefined || b === undefined) return b ?? a
  return {
    ...a,
    ...b,
    promptTokenCount: add(a.promptTokenCount, b.promptTokenCount),
    candidatesTokenCount: add(a.candidatesTokenCount, b.candidatesTokenCount),
    toolUsePromptTokenCount: add(a.toolUsePromptTokenCount, b.toolUsePromptTokenCount),
    totalTokenCount: add(a.totalTokenCount, b.totalTokenCount),
    cachedContentTokenCount: add(a.cachedContentTokenCount, b.cachedContentTokenCount),
    thoughtsTokenCount: add(a.thoughtsTokenCount, b.thoughtsTokenCount),
    promptTokensDetails: addDetails(a.promptTokensDetails, b.promptTokensDetails),
    cacheTokensDetails: addDetails(a.cacheTokensDetails, b.cacheTokensDetails),
    candidatesTokensDetails: addDetails(a.candidatesTokensDetails, b.candidatesTokensDetails),
    toolUsePromptTokensDetails: addDetails(a.toolUsePromptTokensDetails, b.toolUsePromptTokensDetails),
  }
}

function add(a: Count, b: Count): Count {
  const isNone = (a ?? undefined) === undefined && (b ?? undefined) === undefined
  return isNone ? (b ?? a) : (a ?? 0) + (b ?? 0)
}

function addDetails(a: Details, b: Details): Details {
  if (!a || !b) return b ?? a
  const counts = new Map<string, number>()
  for (const { modality, tokenCount } of [...a, ...b]) counts.set(modality, (counts.get(modality) ?? 0) + tokenCount)
  return [...counts].map(([modality, tokenCount]) => ({ modality, tokenCount }))
}
