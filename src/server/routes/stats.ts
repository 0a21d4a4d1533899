/** `GET /api/stats`: totals and percentiles over many runs. */
import { timeOf } from '../../part/log.ts'
import { readStats } from '../../record/stats.ts'
import { readWindow } from '../../record/window-stats.ts'
import type { RequestContext } from '../handler-context.ts'
import { bad, readQuery, toTime, wholeNumber } from '../http/query.ts'

const hour = 60 * 60 * 1000
const week = 7 * 24 * hour
const windows = new Map([
  ['1h', hour],
  ['24h', 24 * hour],
  ['7d', week],
])

const mostSlices = 120
const longest = { since: 40, until: 40, agent: 256, window: 10, slices: 10 }

/** Default: the last seven days. With `window` or `slices` also per slice of time. */
export async function getStats({ server: { runtime }, filter }: RequestContext, url: URL): Promise<Response> {
  const { since, until, agent, window, slices } = readQuery(url, longest)
  const { store } = runtime
  const count = slices === undefined ? undefined : wholeNumber(slices, 'slices', 1, mostSlices)
  const length = window === undefined ? week : windows.get(window)
  if (length === undefined) throw bad('window', `one of ${[...windows.keys()].join(', ')}`)
  if (window !== undefined && (since ?? until) !== undefined) throw bad('window', 'alone, without since and until')
  const end = until === undefined ? timeOf(store) + 1 : toTime(until, 'until')
  const start = since === undefined ? end - length : toTime(since, 'since')
  const query = { since: start, until: end, agent, ...filter }
  if (window === undefined && count === undefined) return Response.json(await readStats(store, query))
  if (start >= end) throw bad('since', 'before until')
  const [stats, sliced] = await Promise.all([readStats(store, query), readWindow(store, query, count)])
  return Response.json({ ...stats, ...(window !== undefined && { window }), ...sliced })
}
