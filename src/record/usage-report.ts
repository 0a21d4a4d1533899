/** What users, tenants, keys and agents have used, from the tables; from the list of runs where there are none. */
import { keyPrincipal } from '../part/principal.ts'
import type { RunRow, Store } from '../part/log.ts'
import type { Records } from '../part/records.ts'
import type { UsageGroup, UsageReport, UsageReportQuery, UsageReportRow } from '../part/usage-report.ts'
import { queryRows } from './stats.ts'

const mostRows = 1000
/** Runs that are added up where there are no tables. */
const mostListed = 20_000

export async function readUsageReport(
  store: Pick<Store, 'runs' | 'records'>,
  query: UsageReportQuery,
): Promise<UsageReport> {
  const { by, since, until } = query
  await store.records?.settle()
  const rows = store.records === undefined ? await addUp(store, query) : await select(store.records, query)
  rows.sort((a, b) => b.totalTokens - a.totalTokens || b.runs - a.runs || (a.name < b.name ? -1 : 1))
  return { by, since, until, rows: rows.slice(0, mostRows) }
}

/** The names of a group: of a run `r`, and of what called a model. */
const groups: Record<UsageGroup, { run: string; usage: string; hasTenant: boolean; only?: string }> = {
  user: { run: 'r.owner', usage: 'r.owner', hasTenant: true },
  tenant: { run: 'r.tenant', usage: 'r.tenant', hasTenant: false },
  key: {
    run: `substr(r.owner, ${keyPrincipal.length + 1})`,
    usage: `substr(r.owner, ${keyPrincipal.length + 1})`,
    hasTenant: true,
    only: `r.owner >= '${keyPrincipal}' AND r.owner < '${keyPrincipal.slice(0, -1)};'`,
  },
  agent: { run: 'r.agent', usage: 'a.agent', hasTenant: false },
}

async function select(records: Records, query: UsageReportQuery): Promise<UsageReportRow[]> {
  const { by, since, until, owner, tenant } = query
  const { run, usage, hasTenant, only = 'TRUE' } = groups[by]
  const of = hasTenant ? 'r.tenant' : `''`
  const mine = `(:owner IS NULL OR r.owner = :owner) AND (:tenant IS NULL OR r.tenant = :tenant) AND ${only}`
  const parameters = { since, until, owner: owner ?? null, tenant: tenant ?? null }
  const options = { parameters, limit: 100_000 }
  const [runs, used] = await Promise.all([
    queryRows<{ name: string; tenant: string; runs: number }>(
      records,
      'read usage',
      `SELECT ${run} AS name, ${of} AS tenant, count(*) AS runs FROM runs r
       WHERE r.started_at >= :since AND r.started_at < :until AND ${mine} GROUP BY 1, 2`,
      options,
    ),
    queryRows<Omit<UsageReportRow, 'runs'>>(
      records,
      'read usage',
      // What a fork shares is counted once, where it happened.
      `SELECT ${usage} AS name, ${of} AS tenant, sum(u.input_tokens) AS inputTokens, sum(u.output_tokens) AS outputTokens,
         sum(coalesce(u.total_tokens, coalesce(u.input_tokens, 0) + coalesce(u.output_tokens, 0))) AS totalTokens,
         coalesce(sum(u.cost), 0) AS cost, count(*) - count(u.cost) AS unpriced
       FROM indexed_usage u JOIN runs r ON r.number = u.run JOIN indexed_agents a ON a.number = u.agent
         LEFT JOIN forks f ON f.run = r.id
       WHERE u.timestamp >= :since AND u.timestamp < :until AND u.seq > coalesce(f.seq, 0) AND ${mine} GROUP BY 1, 2`,
      options,
    ),
  ])
  const sums = createSums(hasTenant)
  for (const { name, tenant: of, runs: count } of runs) sums.of(name, of).runs += count
  for (const { name, tenant: of, ...found } of used) Object.assign(sums.of(name, of ?? ''), found)
  return sums.rows()
}

function createSums(hasTenant: boolean) {
  const all = new Map<string, UsageReportRow>()
  return {
    of(name: string, tenant: string): UsageReportRow {
      const id = JSON.stringify([name, tenant])
      let row = all.get(id)
      if (row === undefined) {
        const none = { inputTokens: null, outputTokens: null, totalTokens: 0, cost: 0, unpriced: 0 }
        all.set(id, (row = { name, ...(hasTenant && { tenant }), runs: 0, ...none }))
      }
      return row
    },
    rows: () => [...all.values()],
  }
}

/** Of a store without tables: what runs that started in this time have used so far. */
async function addUp({ runs }: Pick<Store, 'runs'>, query: UsageReportQuery): Promise<UsageReportRow[]> {
  const { by, since, until, owner, tenant } = query
  const { hasTenant } = groups[by]
  const sums = createSums(hasTenant)
  const filter = { since, ...(owner !== undefined && { owner }), ...(tenant !== undefined && { tenant }) }
  let before: string | undefined
  for (let listed = 0; listed < mostListed;) {
    const page = await runs.list({ ...filter, limit: 1000, ...(before !== undefined && { before }) })
    for (const row of page) {
      const name = nameOf(row, by)
      if (name === undefined || row.startedAt >= until || row.startedAt < since) continue
      const sum = sums.of(name, row.tenant ?? '')
      sum.runs++
      if (row.usage === undefined) continue
      const { inputTokens, outputTokens, totalTokens = (inputTokens ?? 0) + (outputTokens ?? 0) } = row.usage
      if (inputTokens !== undefined) sum.inputTokens = (sum.inputTokens ?? 0) + inputTokens
      if (outputTokens !== undefined) sum.outputTokens = (sum.outputTokens ?? 0) + outputTokens
      sum.totalTokens += totalTokens
      sum.cost += row.cost ?? 0
      if (row.cost === undefined) sum.unpriced++
    }
    listed += page.length
    before = page.at(-1)?.id
    if (page.length < 1000) break
  }
  return sums.rows()
}

/** Undefined if it is not of the group. */
function nameOf({ owner = '', tenant = '', agent }: RunRow, by: UsageGroup): string | undefined {
  switch (by) {
    case 'user':
      return owner
    case 'tenant':
      return tenant
    case 'agent':
      return agent
    default:
      return owner.startsWith(keyPrincipal) ? owner.slice(keyPrincipal.length) : undefined
  }
}
