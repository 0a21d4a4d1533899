/** Sums of usage in SQL, over the table `usage` as `t`. */
import type { Used } from '../fold/usage-fold.ts'

/** An unknown price is not 0: `knownCost` is what those with a known price have cost, in USD. */
export interface UsageSum {
  calls: number
  /** Model calls, and the pieces in which CLI agents report. */
  reports: number
  inputTokens: number | null
  outputTokens: number | null
  cachedInputTokens: number | null
  reasoningTokens: number | null
  /** 1: some of it was estimated. */
  estimated: number
  knownCost: number
  unpriced: number
}

export const usageSums = `count(DISTINCT t.run || ' ' || t.step) AS calls, count(*) AS reports,
  sum(input_tokens) AS inputTokens, sum(output_tokens) AS outputTokens,
  sum(cached_input_tokens) AS cachedInputTokens, sum(reasoning_tokens) AS reasoningTokens,
  coalesce(max(source = 'estimated'), 0) AS estimated,
  coalesce(sum(t.cost), 0) AS knownCost, count(*) - count(t.cost) AS unpriced`

export function toUsed(sum: UsageSum): Used {
  const { calls, inputTokens, outputTokens, cachedInputTokens, reasoningTokens, estimated, knownCost, unpriced } = sum
  const tokens = { inputTokens, outputTokens, cachedInputTokens, reasoningTokens }
  const known = Object.fromEntries(Object.entries(tokens).filter(([, count]) => count !== null))
  const usage = { ...known, source: estimated === 1 ? 'estimated' : 'reported' } as const
  return { calls, usage, ...(unpriced === 0 ? { cost: knownCost } : undefined), knownCost, unpriced }
}
