/** How the page writes numbers, times and money. */
import type { Usage } from '../../src/part/usage.ts'

export { duration } from '../../src/react/run-outline.tsx'

/** 950 → `950`, 12,345 → `12.3k`, 4,200,000 → `4.2M`. */
export function count(n: number): string {
  if (n < 10_000) return n.toLocaleString('en-US')
  return n < 999_950 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1e6).toFixed(1)}M`
}

/** All tokens of a usage. `–`: no call has reported any, as before the first one has ended. */
export function tokens({ inputTokens, outputTokens, totalTokens }: Partial<Usage> = {}): string {
  if (totalTokens !== undefined) return count(totalTokens)
  return inputTokens === undefined && outputTokens === undefined ? '–' : count((inputTokens ?? 0) + (outputTokens ?? 0))
}

/** The share of the input that a provider has read from its cache: `82%`. Undefined: it reported none. */
export function cachedShare({ inputTokens = 0, cachedInputTokens }: Partial<Usage>): string | undefined {
  if (cachedInputTokens === undefined || inputTokens <= 0) return undefined
  return `${Math.round((100 * Math.min(cachedInputTokens, inputTokens)) / inputTokens)}%`
}

/** Both sides: `2,000 in (82% from the cache), 130 out`. */
export function tokenSides(usage: Partial<Usage>): string {
  const { inputTokens = 0, outputTokens = 0, source } = usage
  const share = cachedShare(usage)
  const cached = share === undefined ? '' : ` (${share} from the cache)`
  return `${count(inputTokens)} in${cached}, ${count(outputTokens)} out${source === 'estimated' ? ', estimated' : ''}`
}

/** USD: `<$0.0001`, `$0.0012`, `$0.420`, `$12.35`. Absent: the price is unknown. */
export function cost(usd: number | undefined): string {
  if (usd === undefined) return '–'
  if (usd === 0) return '$0'
  if (usd < 0.0001) return '<$0.0001'
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(usd < 1 ? 3 : 2)}`
}

/** How long ago: `now`, `42s ago`, `5m ago`, `3h ago`, `2d ago`, then the date. */
export function ago(time: number, now = Date.now()): string {
  const seconds = Math.round((now - time) / 1000)
  if (seconds < 5) return 'now'
  if (seconds < 60) return `${seconds}s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h ago`
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)}d ago`
  return new Date(time).toISOString().slice(0, 10)
}

/** `2026-01-31 14:05:09.123` in the reader's time zone. */
export function moment(time: number): string {
  const local = new Date(time - new Date(time).getTimezoneOffset() * 60_000)
  return local.toISOString().replace('T', ' ').replace('Z', '')
}

/** 512 → `512 B`, 12,000 → `11.7 KB`, 3 MB. */
export function bytes(n: number): string {
  if (n < 1024) return `${n} B`
  return n < 1024 ** 2 ? `${(n / 1024).toFixed(1)} KB` : `${(n / 1024 ** 2).toFixed(1)} MB`
}

/** What tells an id from others: a name that somebody has chosen, or the end of a random one. */
export function shortId(id: string): string {
  const own = id.replace(/^(?:run|thread)_/u, '')
  const isChosen = own.length <= 14 && !/^[0-9a-f]*$/u.test(own)
  return id.length <= 10 ? id : isChosen ? own : id.slice(-6)
}
