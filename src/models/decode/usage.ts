/** Token counts of the four protocols. A count that is not a number is ignored. */
import type { JSONObject, LanguageModelV4Usage } from '@ai-sdk/provider'
import { ownValue } from '../../part/own-value.ts'
import { fieldsOf, listOf, numberOf, type Fields } from './fields.ts'

const countIn = (fields: unknown, key: string): number | undefined => numberOf(ownValue(fieldsOf(fields), key))

interface Counts {
  /** All input tokens. */
  input: number
  cacheRead: number
  cacheWrite?: number | undefined
  output: number
  /** Undefined if unknown, and then so is the text's share of the output. */
  reasoning: number | undefined
}

function usageWith(raw: Fields | undefined, counts: Counts): LanguageModelV4Usage {
  const { input, cacheRead, cacheWrite, output, reasoning } = counts
  const text = reasoning === undefined ? undefined : Math.max(0, output - reasoning)
  return {
    inputTokens: { total: input, noCache: input - cacheRead - (cacheWrite ?? 0), cacheRead, cacheWrite },
    outputTokens: { total: output, text, reasoning },
    raw: raw as JSONObject,
  }
}

/** For both protocols. */
export function openAIUsage(raw: Fields): LanguageModelV4Usage {
  const isChat = 'prompt_tokens' in raw || 'completion_tokens' in raw
  const [input, output] = isChat ? ['prompt_tokens', 'completion_tokens'] : ['input_tokens', 'output_tokens']
  const details = raw[`${input}_details`]
  return usageWith(raw, {
    input: countIn(raw, input!) ?? 0,
    cacheRead: countIn(details, 'cached_tokens') ?? 0,
    // Chat servers include them in the others.
    cacheWrite: isChat ? undefined : countIn(details, 'cache_write_tokens'),
    output: countIn(raw, output!) ?? 0,
    reasoning: countIn(raw[`${output}_details`], 'reasoning_tokens') ?? 0,
  })
}

/** The totals of a message leave out compaction's tokens. They include a fallback's answer. */
export function anthropicUsage(raw: Fields, counts: Fields): LanguageModelV4Usage {
  const iterations = listOf(counts['iterations'])
  const hasFallback = iterations.some(({ type }) => type === 'fallback_message')
  const own = iterations.filter(({ type }) => !hasFallback && (type === 'compaction' || type === 'message'))
  const total = (key: string) =>
    (own.length === 0 ? [counts] : own).reduce((sum, each) => sum + (countIn(each, key) ?? 0), 0)
  const cacheWrite = countIn(counts, 'cache_creation_input_tokens') ?? 0
  const cacheRead = countIn(counts, 'cache_read_input_tokens') ?? 0
  return usageWith(raw, {
    input: total('input_tokens') + cacheWrite + cacheRead,
    cacheRead,
    cacheWrite,
    output: total('output_tokens'),
    reasoning: countIn(counts['output_tokens_details'], 'thinking_tokens'),
  })
}

export function googleUsage(raw: Fields): LanguageModelV4Usage {
  const reasoning = countIn(raw, 'thoughtsTokenCount') ?? 0
  return usageWith(raw, {
    input: (countIn(raw, 'promptTokenCount') ?? 0) + (countIn(raw, 'toolUsePromptTokenCount') ?? 0),
    cacheRead: countIn(raw, 'cachedContentTokenCount') ?? 0,
    output: (countIn(raw, 'candidatesTokenCount') ?? 0) + reasoning,
    reasoning,
  })
}

/** For an answer that took several requests: adds counts, in lists by modality. Other values are taken from the later one. */
export function addedUsage(a: Fields | undefined, b: Fields | undefined): Fields | undefined {
  if (a === undefined || b === undefined) return b ?? a
  const sums = Object.entries(b).map(([key, value]) => [key, sumOf(ownValue(a, key), value)])
  return { ...a, ...Object.fromEntries(sums) }
}

function sumOf(a: unknown, b: unknown): unknown {
  if (typeof a === 'number' && typeof b === 'number') return a + b
  if (!Array.isArray(a) || !Array.isArray(b)) return b ?? a
  const counts = new Map<unknown, number>()
  for (const { modality, tokenCount } of listOf([...a, ...b])) {
    counts.set(modality, (counts.get(modality) ?? 0) + (numberOf(tokenCount) ?? 0))
  }
  return [...counts].map(([modality, tokenCount]) => ({ modality, tokenCount }))
}
