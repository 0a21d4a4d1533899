/** Totals and percentiles over many runs. */
import type { OwnerFilter } from './principal.ts'

/** Which runs count: those that started in this time, of this agent. Times are epoch ms. */
export interface StatsQuery extends OwnerFilter {
  since: number
  until: number
  agent?: string | undefined
}

/** How often something was. */
export interface Count {
  name: string
  count: number
}

/** Durations in ms. */
export interface Percentiles extends Count {
  p50: number
  p95: number
  p99: number
}

/** An unknown price is not 0: `knownCost` is what those with a known price have cost, in USD. */
export interface UsageSum {
  /** Model calls that reported for the first time. */
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

export interface UsageOf extends UsageSum {
  name: string
}

/** Each list has at most a thousand rows, the most frequent first. */
export interface Totals {
  outcomes: Count[]
  errors: Count[]
  agents: Count[]
  days: Count[]
  duration: Percentiles | null
  usage: UsageSum | null
  usageByModel: UsageOf[]
  usageByAgent: UsageOf[]
  usageByDay: UsageOf[]
  usageByThread: UsageOf[]
  modelCalls: Percentiles[]
  firstToken: Percentiles[]
  toolCalls: Percentiles[]
}
