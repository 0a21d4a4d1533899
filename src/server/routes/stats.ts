/** `GET /api/stats`: totals and percentiles over many runs. */
import { timeOf } from '../../part/log.ts'
import { readStats } from '../../record/stats.ts'
import { readWindow } from '../../record/window-stats.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { OwnerFilter } from '../../part/principal.ts'
import type { RequestContext } from '../handler-context.ts'
import { bad, readQuery, toTime } from '../http/query.ts'

const hour = 60 * 60 * 1000
const week = 7 * 24 * hour
const windows = new Map([
  ['1h', hour],
  ['24h', 24 * hour],
  ['7d', week],
])

/** Default: the last seven days. With `window` also per time slice. */
export async function getStats({ server: { runtime }, filter }: RequestContext, url: URL): Promise<Response> {
  const { since, until, agent, window } = readQuery(url, { since: 40, until: 40, agent: 256, window: 10 })
  if (window !== undefined)
    return getWindow(runtime, window, { agent, filter, isAlone: since === undefined && until === undefined })
  const end = until === undefined ? timeOf(runtime.store) + 1 : toTime(until, 'until')
  const start = since === undefined ? end - week : toTime(since, 'since')
  return Response.json(await readStats(runtime.store, { since: start, until: end, agent, ...filter }))
}

async function getWindow(
  { store }: Runtime,
  window: string,
  { agent, filter, isAlone }: { agent: string | undefined; filter: OwnerFilter; isAlone: boolean },
): Promise<Response> {
  const length = windows.get(window)
  if (length === undefined) throw bad('window', `one of ${[...windows.keys()].join(', ')}`)
  if (!isAlone) throw bad('window', 'alone, without since and until')
  const until = timeOf(store) + 1
  const query = { since: until - length, until, agent, ...filter }
  const [stats, sliced] = await Promise.all([readStats(store, query), readWindow(store, query)])
  return Response.json({ ...stats, window, ...sliced })
}
