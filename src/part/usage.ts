import type { LanguageModelV3Usage } from '@ai-sdk/provider'

/**
 * Token counts. Reasoning tokens are included in output, cached and cache-write tokens in input. Counts that were not
 * reported are absent, never 0. `source` is `estimated` if any summand is an estimate (4 characters per token).
 */
export interface Usage {
  inputTokens?: number
  outputTokens?: number
  totalTokens?: number
  reasoningTokens?: number
  cachedInputTokens?: number
  cacheWriteInputTokens?: number
  source: 'reported' | 'estimated'
}

const counts = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
  'cacheWriteInputTokens',
] as const

/** Converts a provider's usage; `undefined` if the provider reported neither input nor output. Expects anything: providers' packages differ. */
export function toUsage(reported: LanguageModelV3Usage | undefined): Usage | undefined {
  const { inputTokens: given, outputTokens: made } = (reported ?? {}) as Partial<LanguageModelV3Usage>
  const input = finite(given?.total)
  const output = finite(made?.total)
  if (input === undefined && output === undefined) return undefined
  const result: Usage = { source: 'reported' }
  set(result, 'inputTokens', input)
  set(result, 'outputTokens', output)
  set(result, 'totalTokens', (input ?? 0) + (output ?? 0))
  set(result, 'reasoningTokens', finite(made?.reasoning))
  set(result, 'cachedInputTokens', finite(given?.cacheRead))
  set(result, 'cacheWriteInputTokens', finite(given?.cacheWrite))
  return result
}

/** Estimates the usage of a call that ended without a report: 4 characters per token, rounded up. */
export function estimateUsage(inputCharacters: number, outputCharacters: number): Usage {
  const inputTokens = Math.ceil(inputCharacters / 4)
  const outputTokens = Math.ceil(outputCharacters / 4)
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, source: 'estimated' }
}

/** The sum. A count that only one of the two has is kept. */
export function addUsage(a: Usage | undefined, b: Usage): Usage {
  if (a === undefined) return { ...b }
  const sum: Usage = { source: a.source === 'estimated' || b.source === 'estimated' ? 'estimated' : 'reported' }
  for (const key of counts) {
    if (a[key] !== undefined || b[key] !== undefined) sum[key] = (a[key] ?? 0) + (b[key] ?? 0)
  }
  return sum
}

/** The usage of a run without model calls. */
export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0, source: 'reported' }

function finite(value: number | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function set(usage: Usage, key: (typeof counts)[number], value: number | undefined): void {
  if (value !== undefined) usage[key] = value
}
