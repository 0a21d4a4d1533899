/** The time that is shown: the last hour, day or week, or one from and to a moment. All of it stands in the URL. */
import { moment } from '../../kit/format.ts'

export const windows = ['1h', '24h', '7d'] as const

export type WindowName = (typeof windows)[number]

export type TimeRange =
  | { kind: 'window'; name: WindowName; ms: number }
  /** Epoch ms. */
  | { kind: 'own'; since: number; until: number }

const hour = 3_600_000
const lengths: Record<WindowName, number> = { '1h': hour, '24h': 24 * hour, '7d': 168 * hour }
const words: Record<WindowName, string> = { '1h': 'in this hour', '24h': 'in these 24 hours', '7d': 'in these 7 days' }
/** Of a time that is chosen in a chart. */
export const shortest = 60_000

export function readTimeRange(get: (name: string) => string | undefined): TimeRange {
  const [since, until] = [toTime(get('since')), toTime(get('until'))]
  if (since !== undefined && until !== undefined && since < until) return { kind: 'own', since, until }
  const name = windows.find((each) => each === get('window')) ?? '1h'
  return { kind: 'window', name, ms: lengths[name] }
}

function toTime(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = /^\d+$/u.test(text) ? Number(text) : Date.parse(text)
  return Number.isFinite(time) ? time : undefined
}

/** What the address has of it. */
export function rangeQuery(range: TimeRange): Record<'window' | 'since' | 'until', string | undefined> {
  if (range.kind === 'window') return { window: range.name, since: undefined, until: undefined }
  return { window: undefined, since: String(range.since), until: String(range.until) }
}

/** Its parameters for the list of runs. */
export function runsIn(range: TimeRange): Record<string, string> {
  return range.kind === 'window' ? { since: range.name } : { since: String(range.since), until: String(range.until) }
}

/** From when to when it is now. */
export function boundsOf(range: TimeRange, now: number): { since: number; until: number } {
  return range.kind === 'window' ? { since: now - range.ms, until: now } : { since: range.since, until: range.until }
}

/** The time of the same length before it. */
export function timeBefore(range: TimeRange, now: number): { since: number; until: number } {
  const { since, until } = boundsOf(range, now)
  // There is no time before 1970.
  return { since: Math.max(0, since - (until - since)), until: since }
}

/** Whether what happens now is in it. */
export function isNow(range: TimeRange, now: number): boolean {
  return range.kind === 'window' || range.until > now
}

/** `in this hour`, `from 31 Jan 14:05 to 15:10`. */
export function sayRange(range: TimeRange): string {
  if (range.kind === 'window') return words[range.name]
  const [from, to] = [range.since, range.until].map((time) => moment(time).slice(0, 16))
  return `from ${from} to ${to!.slice(0, 10) === from!.slice(0, 10) ? to!.slice(11) : to}`
}
