/** `GET /api/stats`: totals and percentiles over many runs. */
import { readStats } from '../../record/stats.ts'
import type { HandlerContext } from '../handler.ts'
import { readQuery, toTime } from '../http/query.ts'

const week = 7 * 24 * 60 * 60 * 1000

/** Default: the last seven days. */
export async function getStats({ runtime }: HandlerContext, url: URL): Promise<Response> {
  const { since, until, agent } = readQuery(url, { since: 40, until: 40, agent: 256 })
  const end = until === undefined ? Date.now() + 1 : toTime(until, 'until')
  const start = since === undefined ? end - week : toTime(since, 'since')
  return Response.json(await readStats(runtime.store, { since: start, until: end, agent }))
}
