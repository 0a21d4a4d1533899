/**
 * The ledger and the audit in Redis. A book is in the partition of its name, so that one script counts what it has. Keys: `T:sum:<book>:<key>` and
 * `T:mark:<book>:<key>`, which expire; `T:audit:<tenant>`, a stream of the last rows of a tenant; `T:audits`, the tenants of a partition.
 */
import {
  keptAuditRows,
  matchesAudit,
  toAuditRow,
  type Audit,
  type AuditRow,
  type NewAuditRow,
} from '../../part/audit.ts'
import { parseJson } from '../../part/json.ts'
import type { Ledger } from '../../part/ledger.ts'
import type { RedisConnection } from './connection.ts'
import { partitionOf } from './keys.ts'
import { createOperate, everyPartition } from './orphans.ts'
import { listed } from './script.ts'

/** Rows that are read at once to find some of them. */
const pageLength = 1000

export function createRedisLedger(connection: RedisConnection): Ledger {
  const operate = createOperate(connection)
  const numbers = (found: unknown) => (found as string[]).map(Number)
  return {
    async add(book, amounts, once) {
      const source = once === undefined ? ['', 0, 0] : [once.key, once.position, Math.ceil(once.until)]
      const given = amounts.flatMap(({ key, amount, until }) => [key, amount, Math.ceil(until)])
      return numbers(await operate(partitionOf(book), 'tally', book, ...source, ...given))
    },
    read: async (book, keys) => numbers(await operate(partitionOf(book), 'tallied', book, 'sum', ...listed(keys))),
    mark: async (book, key) => numbers(await operate(partitionOf(book), 'tallied', book, 'mark', ...listed([key])))[0]!,
  }
}

/** `keep`: about how many rows of each tenant stay. */
export function createRedisAudit(connection: RedisConnection, { keep = keptAuditRows } = {}): Audit {
  const operate = createOperate(connection)

  /** The newest rows of a tenant that match. */
  async function ofTenant(
    tenant: string,
    query: Parameters<Audit['list']>[0] = {},
    limit: number,
  ): Promise<AuditRow[]> {
    const found: AuditRow[] = []
    let before = query.before ?? Number.MAX_SAFE_INTEGER
    for (;;) {
      const page = (await operate(partitionOf(tenant), 'audited', tenant, before, pageLength)) as string[]
      for (let i = 0; i < page.length; i += 2) {
        before = Number(page[i])
        const row = { n: before, ...(parseJson(page[i + 1]!) as NewAuditRow) }
        if (matchesAudit(row, query)) found.push(row)
        if (found.length === limit) return found
      }
      if (page.length < 2 * pageLength) return found
    }
  }

  async function tenants(): Promise<string[]> {
    const found = await Promise.all(everyPartition.map((partition) => operate(partition, 'audits')))
    return (found as string[][]).flat()
  }

  return {
    async add(given) {
      const row = toAuditRow(given)
      await operate(partitionOf(row.tenant), 'audit', row.tenant, keep, JSON.stringify(row))
    },
    async list(query = {}) {
      const { tenant, limit = 100 } = query
      const names = tenant === undefined ? await tenants() : [tenant]
      const found = await Promise.all(names.map((name) => ofTenant(name, query, limit)))
      return found
        .flat()
        .sort((a, b) => b.n - a.n)
        .slice(0, limit)
    },
    async prune(before) {
      const names = await tenants()
      const counts = await Promise.all(
        names.map((name) => operate(partitionOf(name), 'unaudit', name, Math.max(0, Math.floor(before)) * 1000)),
      )
      return (counts as number[]).reduce((sum, count) => sum + count, 0)
    },
  }
}
