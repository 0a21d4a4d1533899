/** `GET /api/usage`: what users, tenants, keys and agents have used, and the caller's quotas. */
import type { Quotas } from '../../access/quotas.ts'
import { timeOf, type Store } from '../../part/log.ts'
import type { OwnerFilter } from '../../part/principal.ts'
import type { QuotaUse } from '../../part/quota.ts'
import { usageGroups, type UsageGroup } from '../../part/usage-report.ts'
import { nearest } from '../../pipeline/nearest.ts'
import { readUsageReport } from '../../record/usage-report.ts'
import type { HandlerContext } from '../handler-context.ts'
import { bad, readQuery, toTime } from '../http/query.ts'
import type { Routes } from '../http/routes.ts'

/** `quotas`: of the server, if it has any. */
export function mountUsage(
  routes: Pick<Routes, 'get'>,
  server: Pick<HandlerContext, 'runtime'>,
  quotas?: Pick<Quotas, 'usesOf'>,
): void {
  routes.get('/api/usage', 'stats', ({ filter, principal }, { url }) => {
    const uses = quotas && (() => quotas.usesOf(principal))
    return getUsage({ store: server.runtime.store, visible: filter, ...(uses && { quotas: uses }) }, new URL(url))
  })
}

const month = 30 * 24 * 3_600_000

export interface UsageContext {
  store: Pick<Store, 'runs' | 'records' | 'now'>
  /** What the caller may see, as `visibleTo` says. */
  visible: OwnerFilter
  /** Those of the caller. */
  quotas?: () => Promise<QuotaUse[]>
}

/** Default: by user, the last 30 days. */
export async function getUsage({ store, visible, quotas }: UsageContext, url: URL): Promise<Response> {
  const { by = 'user', since, until } = readQuery(url, { by: 20, since: 40, until: 40 })
  if (!isGroup(by)) {
    const meant = nearest(by, usageGroups)
    throw bad('by', `one of ${usageGroups.join(', ')}${meant === undefined ? '' : ` (did you mean "${meant}"?)`}`)
  }
  const end = until === undefined ? timeOf(store) + 1 : toTime(until, 'until')
  const start = since === undefined ? end - month : toTime(since, 'since')
  if (start >= end) throw bad('since', 'a time before until')
  const [report, uses] = await Promise.all([
    readUsageReport(store, { by, since: start, until: end, ...visible }),
    quotas?.() ?? [],
  ])
  return Response.json({ ...report, quotas: uses }, { headers: { 'cache-control': 'no-store' } })
}

function isGroup(by: string): by is UsageGroup {
  return (usageGroups as readonly string[]).includes(by)
}
