/** What quotas count, in which time (UTC), and for whom. */
import type { RunUser } from '../part/principal.ts'
import type { Quota, QuotasConfig } from '../part/quota.ts'
import type { Usage } from '../part/usage.ts'

export type QuotaUnit = 'tokens' | 'usd'
export type QuotaWindow = 'minute' | 'day' | 'month'

export interface QuotaKind {
  name: keyof Quota
  unit: QuotaUnit
  window: QuotaWindow
}

export const spentKinds: readonly QuotaKind[] = [
  { name: 'tokensPerMinute', unit: 'tokens', window: 'minute' },
  { name: 'tokensPerDay', unit: 'tokens', window: 'day' },
  { name: 'tokensPerMonth', unit: 'tokens', window: 'month' },
  { name: 'usdPerMinute', unit: 'usd', window: 'minute' },
  { name: 'usdPerDay', unit: 'usd', window: 'day' },
  { name: 'usdPerMonth', unit: 'usd', window: 'month' },
]

/** USD are counted in billionths, as whole numbers: sums of fractions are not exact. */
export const nanoUsd = 1e9

/** What a quota counts as: tokens, or billionths of a USD. */
export function inUnits(unit: QuotaUnit, limit: number): number {
  return unit === 'usd' ? Math.round(limit * nanoUsd) : limit
}

export function fromUnits(unit: QuotaUnit, units: number): number {
  return unit === 'usd' ? units / nanoUsd : units
}

/** The window of a time: from `start` until before `end`, epoch ms. */
export function windowOf(window: QuotaWindow, time: number): { start: number; end: number } {
  if (window === 'month') {
    const date = new Date(time)
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
    return { start: Date.UTC(year, month, 1), end: Date.UTC(year, month + 1, 1) }
  }
  const length = window === 'minute' ? 60_000 : 86_400_000
  const start = Math.floor(time / length) * length
  return { start, end: start + length }
}

/** Whole tokens of a report. Negative ones correct an earlier report. */
export function tokensOf({ totalTokens, inputTokens = 0, outputTokens = 0 }: Usage): number {
  return Math.round(totalTokens ?? inputTokens + outputTokens)
}

/** Somebody whom a quota limits. */
export interface Holder {
  kind: keyof QuotasConfig
  /** Unique in the tenant. */
  name: string
  quota: Quota
}

/** The holders that a user's requests count for, and that the config limits: the key, the user, the tenant. */
export function holdersOf(
  { perUser, perTenant, perKey }: QuotasConfig,
  { id, key }: Pick<RunUser, 'id' | 'key'>,
): Holder[] {
  const found: Holder[] = []
  if (perKey !== undefined && key !== undefined) found.push({ kind: 'perKey', name: `key:${key}`, quota: perKey })
  if (perUser !== undefined && id !== '') found.push({ kind: 'perUser', name: `user:${id}`, quota: perUser })
  if (perTenant !== undefined && id !== '') found.push({ kind: 'perTenant', name: 'tenant', quota: perTenant })
  return found
}

/** The book of the ledger that has the sums of a user. */
export function bookOf({ tenant = '' }: Pick<RunUser, 'tenant'>): string {
  return `quota:${tenant}`
}

/** The name of a sum in its book. The holder is last, because its name may have any character. */
export function sumKey({ unit, window }: QuotaKind, start: number, holder: string): string {
  return `${unit}:${window}:${start}:${holder}`
}
