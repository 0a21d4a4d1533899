/** Which runs the list shows: read from the URL, asked of the server, and checked for runs that begin meanwhile. */
import type { RunRow } from '../../../src/part/log.ts'
import { readStatuses, statusesOf, writeStatuses, type StateWord } from '../../kit/status-words.ts'

export interface RunFilter {
  /** Of the API; the address has the words of the page. */
  status: readonly string[]
  agent: string | undefined
  /** Whose runs: the id of a user. */
  user: string | undefined
  q: string | undefined
  /** `15m`, `24h`, `7d`, epoch ms or ISO 8601. */
  since: string | undefined
}

export const sinceChoices: readonly (readonly [value: string, label: string])[] = [
  ['', 'Any time'],
  ['15m', 'Last 15 min'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 h'],
  ['7d', 'Last 7 days'],
]

export function readFilter(get: (name: string) => string | undefined): RunFilter {
  return {
    status: readStatuses(get('status')),
    agent: get('agent'),
    user: get('user'),
    q: get('q')?.trim() || undefined,
    since: get('since'),
  }
}

export function isFiltered({ status, agent, user, q, since }: RunFilter): boolean {
  return status.length > 0 || agent !== undefined || user !== undefined || q !== undefined || since !== undefined
}

/** The status of the URL when a chip is pressed. `undefined`: all. */
export function withToggled(status: readonly string[], word: StateWord): string | undefined {
  const group: readonly string[] = statusesOf(word)
  const rest = status.filter((each) => !group.includes(each))
  return writeStatuses(isChosen(status, word) ? rest : [...rest, ...group])
}

export function isChosen(status: readonly string[], word: StateWord): boolean {
  return statusesOf(word).every((each) => status.includes(each))
}

/** Epoch ms; undefined if the text is no time. */
export function sinceTime(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined
  const found = /^(\d+)([mhd])$/u.exec(text)
  if (found !== null) return now - Number(found[1]) * units[found[2] as keyof typeof units]
  const time = /^\d+$/u.test(text) ? Number(text) : Date.parse(text)
  return Number.isFinite(time) ? time : undefined
}

const units = { m: 60_000, h: 3_600_000, d: 86_400_000 }

export function listPath(filter: RunFilter, page: { before: string | undefined; limit: number }, now: number): string {
  const query = new URLSearchParams({ limit: String(page.limit) })
  const { status, agent, user, q, since } = filter
  if (status.length > 0) query.set('status', status.join(','))
  if (agent !== undefined) query.set('agent', agent)
  if (user !== undefined) query.set('user', user)
  if (q !== undefined) query.set('q', q)
  // What is no time is sent as it is: the server says what it should be.
  if (since !== undefined) query.set('since', String(sinceTime(since, now) ?? since))
  if (page.before !== undefined) query.set('before', page.before)
  return `/api/runs?${query}`
}

/** Whether a run that has begun or changed belongs to the list. Of its texts only the first words are known here. */
export function fits({ status, agent, user, q, since }: RunFilter, row: RunRow, now: number): boolean {
  if (status.length > 0 && !status.includes(row.status)) return false
  if (agent !== undefined && row.agent !== agent) return false
  if (user !== undefined && row.owner !== user) return false
  const from = sinceTime(since, now)
  if (from !== undefined && row.startedAt < from) return false
  const title = row.title?.toLowerCase() ?? ''
  return (
    q === undefined ||
    q
      .toLowerCase()
      .split(/\s+/u)
      .every((word) => title.includes(word))
  )
}

/** Newest first. */
export function compareRuns(a: RunRow, b: RunRow): number {
  return b.startedAt - a.startedAt
}
