/** What users, tenants, keys and agents have used. */
import type { OwnerFilter } from './principal.ts'

export const usageGroups = ['user', 'tenant', 'key', 'agent'] as const
export type UsageGroup = (typeof usageGroups)[number]

/** Runs that started, and usage that was reported, from `since` until before `until` (epoch ms). */
export interface UsageReportQuery extends OwnerFilter {
  by: UsageGroup
  since: number
  until: number
}

export interface UsageReportRow {
  /** Of `user` and `key`: its id. Empty: no one, the default tenant, or no key. */
  name: string
  /** Of `user` and `key`: its tenant. Empty: none. */
  tenant?: string
  runs: number
  /** Null: nobody has reported any. */
  inputTokens: number | null
  outputTokens: number | null
  totalTokens: number
  /** In USD: what has a known price. */
  cost: number
  /** How many reports have no known price. */
  unpriced: number
}

/** The rows with the most tokens first, at most 1000. */
export interface UsageReport {
  by: UsageGroup
  since: number
  until: number
  rows: UsageReportRow[]
}
