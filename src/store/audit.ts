/** An audit in memory: the last rows of each tenant. */
import { auditNumber, keptAuditRows, matchesAudit, toAuditRow, type Audit, type AuditRow } from '../part/audit.ts'

/** Number of tenants above which the one that was audited longest ago is dropped. */
const mostTenants = 1000

export function createAudit({ keep = keptAuditRows } = {}): Audit {
  /** By tenant, the oldest first. The tenant that was audited last is the last one. */
  const tenants = new Map<string, AuditRow[]>()
  let n = 0

  return {
    async add(given) {
      n = Math.max(n + 1, auditNumber(given.time))
      const row = { n, ...toAuditRow(given) }
      const rows = tenants.get(row.tenant) ?? []
      tenants.delete(row.tenant)
      tenants.set(row.tenant, rows)
      rows.push(row)
      // In steps, because each copies the list.
      if (rows.length > keep * 1.1) rows.splice(0, rows.length - keep)
      if (tenants.size > mostTenants) tenants.delete(tenants.keys().next().value!)
    },
    async list(query = {}) {
      const { tenant, limit = 100 } = query
      const all = tenant === undefined ? [...tenants.values()] : [tenants.get(tenant) ?? []]
      const found = all.flatMap((rows) => rows.slice(-keep).filter((row) => matchesAudit(row, query)))
      return found.sort((a, b) => b.n - a.n).slice(0, limit)
    },
    async prune(before) {
      let pruned = 0
      for (const [tenant, rows] of tenants) {
        const kept = rows.filter(({ time }) => time >= before)
        pruned += rows.length - kept.length
        if (kept.length === 0) tenants.delete(tenant)
        else tenants.set(tenant, kept)
      }
      return pruned
    },
  }
}
