/** Token counts of the four protocols. A count that is no number is none. */
import type { JSONObject, LanguageModelV4Usage } from '@ai-sdk/provider'
import { ownValue } from '../../part/own-value.ts'
import { fieldsOf, listOf, numberOf, type Fields } from './fields.ts'

const countIn = (fields: unknown, key: string): number | undefined => numberOf(ownValue(fieldsOf(fields), key))

interface Counts {
  /** All of it. */
  input: number
  cacheRead: number
  cacheWrite?: number | undefined
  output: number
  /** Undefined: not known, and so is how much of the output is text. */
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

export function chatUsage(raw: Fields): LanguageModelV4Usage {
  return usageWith(raw, {
    input: countIn(raw, 'prompt_tokens') ?? 0,
    cacheRead: countIn(raw['prompt_tokens_details'], 'cached_tokens') ?? 0,
    output: countIn(raw, 'completion_tokens') ?? 0,
    reasoning: countIn(raw['completion_tokens_details'], 'reasoning_tokens') ?? 0,
  })
}

export function responsesUsage(raw: Fields): LanguageModelV4Usage {
  const details = raw['input_tokens_details']
  return usageWith(raw, {
    input: countIn(raw, 'input_tokens') ?? 0,
    cacheRead: countIn(details, 'cached_tokens') ?? 0,
    cacheWrite: countIn(details, 'cache_write_tokens'),
    output: countIn(raw, 'output_tokens') ?? 0,
    reasoning: countIn(raw['output_tokens_details'], 'reasoning_tokens') ?? 0,
  })
}

/** The totals of a message leave out what compaction took. What a fallback answered is in them. */
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

/** Of an answer that took several requests: counts add up. What is no count is taken from the later one. */
export function addedUsage(a: Fields | undefined, b: Fields | undefined): Fields | undefined {
  if (a === undefined || b === undefined) return b ?? a
  const sums = Object.entries(b).map(([key, value]) => {
    const before = countIn(a, key)
    return [key, before !== undefined && typeof value === 'number' ? before + value : value]
  })
  return { ...a, ...Object.fromEntries(sums) }
}
