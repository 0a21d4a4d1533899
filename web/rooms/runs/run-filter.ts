/** Which runs the list shows: read from the URL, asked of the server, and checked for runs that begin meanwhile. */
import { omitUndefined } from '../../../src/part/omit-undefined.ts'
import { runSorts, type RunRow, type RunSort } from '../../../src/part/log.ts'
import { compareBy, isWithin } from '../../../src/part/run-values.ts'
import { readStatuses, statusesOf, writeStatuses, type StateWord } from '../../kit/status-words.ts'
import { readRange, type Range } from './ranges.ts'

export interface RunFilter {
  /** Of the API; the address has the words of the page. */
  status: readonly string[]
  agent: string | undefined
  /** Whose runs: the id of a user. */
  user: string | undefined
  q: string | undefined
  /** `15m`, `24h`, `7d`, epoch ms or ISO 8601. */
  since: string | undefined
  until: string | undefined
  model: string | undefined
  /** The protocol. */
  client: string | undefined
  /** USD. */
  cost: Range
  /** ms. */
  took: Range
  sort: RunSort | undefined
  order: 'asc' | 'desc'
}

export const sinceChoices: readonly (readonly [value: string, label: string])[] = [
  ['', 'Any time'],
  ['15m', 'Last 15 min'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 h'],
  ['7d', 'Last 7 days'],
]

/** The names of the address, but for the order of the list. */
export const filterNames = [
  'status',
  'agent',
  'user',
  'q',
  'since',
  'until',
  'model',
  'client',
  'cost',
  'took',
] as const

export function readFilter(get: (name: string) => string | undefined): RunFilter {
  return {
    status: readStatuses(get('status')),
    agent: get('agent'),
    user: get('user'),
    q: get('q')?.trim() || undefined,
    since: get('since'),
    until: get('until'),
    model: get('model'),
    client: get('client'),
    cost: readRange(get('cost'), 'usd'),
    took: readRange(get('took'), 'time'),
    sort: runSorts.find((each) => each === get('sort')),
    order: get('order') === 'asc' ? 'asc' : 'desc',
  }
}

export function isFiltered({ status, q, agent, user, since, until, model, client, cost, took }: RunFilter): boolean {
  const texts = [q, agent, user, since, until, model, client, cost.min, cost.max, took.min, took.max]
  return status.length > 0 || texts.some((text) => text !== undefined)
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

/** What is no time and no number is sent as it is: the server says what it should be. */
function queryOf(filter: RunFilter, now: number): URLSearchParams {
  const { status, agent, user, q, since, until, model, client, cost, took } = filter
  const query = new URLSearchParams()
  const add = (name: string, value: string | number | undefined) => {
    if (value !== undefined) query.set(name, String(value))
  }
  if (status.length > 0) query.set('status', status.join(','))
  add('agent', agent)
  add('user', user)
  add('q', q)
  add('since', sinceTime(since, now) ?? since)
  add('until', sinceTime(until, now) ?? until)
  add('model', model)
  add('protocol', client)
  add('minCost', cost.min)
  add('maxCost', cost.max)
  add('minMs', took.min)
  add('maxMs', took.max)
  return query
}

export function listPath(filter: RunFilter, page: { before: string | undefined; limit: number }, now: number): string {
  const query = queryOf(filter, now)
  query.set('limit', String(page.limit))
  if (filter.sort !== undefined) query.set('sort', filter.sort)
  if (filter.sort !== undefined && filter.order === 'asc') query.set('order', 'asc')
  if (page.before !== undefined) query.set('before', page.before)
  return `/api/runs?${query}`
}

/** What the timeline of the last `ms` asks for: what began in them, and what goes on or waits and may have begun long before. */
export function recentPaths(filter: RunFilter, ms: number, limit: number, now: number): string[] {
  const { status, since } = filter
  const from = String(Math.max(sinceTime(since, now) ?? 0, now - ms))
  const open = ['running', 'suspended'].filter((each) => status.length === 0 || status.includes(each))
  const asked = [{ ...filter, since: from }, ...(open.length === 0 ? [] : [{ ...filter, status: open }])]
  return asked.map((each) => listPath({ ...each, sort: undefined }, { before: undefined, limit }, now))
}

/** How many runs fit. */
export function countPath(filter: RunFilter, now: number): string {
  const query = queryOf(filter, now)
  query.set('count', '1')
  return `/api/runs?${query}`
}

/** Whether a run that has begun or changed belongs to the list. Of its texts only the first words are known here. */
export function fits(filter: RunFilter, row: RunRow, now: number): boolean {
  const { status, agent, user, q, since, until, model, client, cost, took } = filter
  if (status.length > 0 && !status.includes(row.status)) return false
  if (agent !== undefined && row.agent !== agent) return false
  if (user !== undefined && row.owner !== user) return false
  const [from, to] = [sinceTime(since, now), sinceTime(until, now)]
  if (from !== undefined && row.startedAt < from) return false
  if (to !== undefined && row.startedAt >= to) return false
  const within = {
    model,
    protocol: client,
    minCost: bound(cost.min),
    maxCost: bound(cost.max),
    minMs: bound(took.min),
    maxMs: bound(took.max),
  }
  if (!isWithin(row, omitUndefined(within))) return false
  const title = row.title?.toLowerCase() ?? ''
  return (
    q === undefined ||
    q
      .toLowerCase()
      .split(/\s+/u)
      .every((word) => title.includes(word))
  )
}

function bound(value: string | number | undefined): number | undefined {
  return value === undefined ? undefined : Number(value)
}

/** The order of the list. */
export function compareRuns({ sort, order }: Pick<RunFilter, 'sort' | 'order'>): (a: RunRow, b: RunRow) => number {
  return sort === undefined ? compareBy({}) : compareBy({ sort, order })
}
