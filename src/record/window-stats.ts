/** Statistics in slices of time, for charts. */
import { readView } from '../fold/read-view.ts'
import { unlessDamaged } from '../fold/unless-damaged.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { RunRow, RunStatus, Store } from '../part/log.ts'
import type { OwnerFilter } from '../part/principal.ts'
import type { StatsBucket, ToolStats, WindowStats } from '../part/window-stats.ts'
import { filterParameters, queryRows, percentiles, runsIn, shown, within, type StatsQuery } from './stats.ts'

type StatsStores = Pick<Store, 'log' | 'runs' | 'records'>

const usualSlices = 60
const failures: ReadonlySet<RunStatus> = new Set(['failed', 'timed-out', 'budget-exceeded', 'interrupted'])
const failed = `status IN (${[...failures].map((status) => `'${status}'`).join(', ')})`

const queriesFor = (filter: OwnerFilter) => ({
  runs: `SELECT CAST((r.started_at - :since) / :slice AS INTEGER) AS bucket, count(*) AS runs,
      count(*) FILTER (WHERE ${failed}) AS failed FROM ${runsIn(filter)} GROUP BY 1`,
  used: `SELECT CAST((t.timestamp - :since) / :slice AS INTEGER) AS bucket,
      sum(coalesce(total_tokens, coalesce(input_tokens, 0) + coalesce(output_tokens, 0))) AS tokens,
      coalesce(sum(t.cost), 0) AS cost FROM ${within('usage', 'timestamp', filter)} GROUP BY 1`,
  first: percentiles('CAST((r.started_at - :since) / :slice AS INTEGER)', 'r.first_token_ms', runsIn(filter)),
  tools: `SELECT t.tool_name AS name, count(*) AS calls, count(*) FILTER (WHERE t.outcome = 'failed') AS errors
      FROM ${within('tool_calls', 'called_at', filter)} GROUP BY 1`,
  took: percentiles('t.tool_name', 't.duration', within('tool_calls', 'called_at', filter)),
  waited: percentiles('t.tool_name', 't.waited', within('tool_calls', 'called_at', filter)),
})

interface Rows {
  runs: { bucket: number; runs: number; failed: number }[]
  used: { bucket: number; tokens: number; cost: number }[]
  first: { name: number; p50: number; p95: number }[]
  tools: { name: string; calls: number; errors: number }[]
  took: { name: string; p50: number; p95: number }[]
  waited: { name: string; p50: number; p95: number }[]
}

export async function readWindow(store: StatsStores, query: StatsQuery, slices = usualSlices): Promise<WindowStats> {
  const { since, until } = query
  const slice = Math.max(1, Math.ceil((until - since) / slices))
  const [{ runs, used, first, tools, took, waited }, active] = await Promise.all([
    store.records === undefined ? addUp(store, query, slice) : select(store.records, query, slice),
    countActive(store, query),
  ])
  const buckets = Array.from({ length: Math.ceil((until - since) / slice) }, (_, i): StatsBucket => {
    return { at: since + i * slice, runs: 0, failed: 0, tokens: 0, cost: 0, firstToken: null }
  })
  for (const { bucket, ...counts } of runs) Object.assign(buckets[bucket] ?? {}, counts)
  for (const { bucket, ...sums } of used) Object.assign(buckets[bucket] ?? {}, sums)
  for (const { name, p50, p95 } of first) Object.assign(buckets[name] ?? {}, { firstToken: { p50, p95 } })
  const times = new Map(took.map(({ name, p50, p95 }) => [name, { p50, p95 }]))
  const waits = new Map(waited.map(({ name, p50, p95 }) => [name, { p50, p95 }]))
  const timed = tools.map((tool): ToolStats => {
    const { p50, p95 } = times.get(tool.name) ?? { p50: null, p95: null }
    return { ...tool, p50, p95, waited: waits.get(tool.name) ?? null }
  })
  return { slice, buckets, tools: timed.toSorted((a, b) => (b.p95 ?? -1) - (a.p95 ?? -1)), ...active }
}

async function select(records: NonNullable<Store['records']>, query: StatsQuery, slice: number): Promise<Rows> {
  const { since, until, agent } = query
  const parameters = { since, until, slice, agent: agent ?? null, ...filterParameters(query) }
  const found = await Promise.all(
    Object.entries(queriesFor(query)).map(async ([name, sql]) => {
      const { slice: _, ...others } = parameters
      const named = sql.includes(':slice') ? parameters : others
      return [name, await queryRows(records, 'read statistics', sql, { parameters: named, limit: 1000 })]
    }),
  )
  return Object.fromEntries(found) as unknown as Rows
}

/** Only so many are counted where there are no tables. */
const most = 1000

async function countActive({ runs, records }: StatsStores, query: StatsQuery) {
  const { agent, owner, tenant } = query
  const sql = `SELECT status AS name, count(*) AS count FROM runs r
    WHERE status IN ('running', 'suspended') AND (:agent IS NULL OR r.agent = :agent)${shown('r', query)} GROUP BY 1`
  const options = { parameters: { agent: agent ?? null, ...filterParameters(query) }, limit: 10 }
  const found =
    records === undefined
      ? countBy(
          await runs.list({
            status: ['running', 'suspended'],
            limit: most,
            ...omitUndefined({ agent, owner, tenant }),
          }),
        )
      : await queryRows<{ name: string; count: number }>(records, 'read statistics', sql, options)
  const of = (status: RunStatus) => found.find(({ name }) => name === status)?.count ?? 0
  return { running: of('running'), waiting: of('suspended') }
}

function countBy(rows: readonly RunRow[]): { name: string; count: number }[] {
  const counts = new Map<string, number>()
  for (const { status } of rows) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([name, count]) => ({ name, count }))
}

/** Of a store without tables, which keeps few runs. */
async function addUp(store: StatsStores, query: StatsQuery, slice: number): Promise<Rows> {
  const { since, until, agent, owner, tenant } = query
  const rows = await store.runs.list({ since, until, limit: most, ...omitUndefined({ agent, owner, tenant }) })
  const of = <T>(read: (id: string) => Promise<T>) => Promise.all(rows.map(({ id }) => unlessDamaged(() => read(id))))
  const views = (await of((id) => readView(store, id))).filter((view) => view !== undefined)
  const calls = (await of((id) => readCalls(store.log, id))).flatMap((found) => found ?? [])
  const steps = views
    .flatMap((view) => view.steps)
    .filter(({ kind, toolName }) => kind === 'tool-call' && toolName !== undefined)
  const byTool = Map.groupBy(steps, ({ toolName }) => toolName!)
  const byBucket = Map.groupBy(rows, ({ startedAt }) => Math.floor((startedAt - since) / slice))
  const buckets = [...byBucket]
  return {
    runs: buckets.map(([bucket, all]) => {
      return { bucket, runs: all.length, failed: all.filter(({ status }) => failures.has(status)).length }
    }),
    used: buckets.map(([bucket, all]) => {
      const sum = (value: (row: RunRow) => number | undefined) =>
        all.reduce((total, row) => total + (value(row) ?? 0), 0)
      return { bucket, tokens: sum(({ usage }) => usage?.totalTokens), cost: sum(({ cost }) => cost) }
    }),
    first: buckets.flatMap(([name, all]) =>
      shares(
        name,
        all.flatMap(({ firstTokenMs }) => firstTokenMs ?? []),
      ),
    ),
    tools: [...Map.groupBy(calls, ({ name }) => name)].map(([name, all]) => {
      return {
        name,
        calls: all.filter(({ type }) => type === 'tool-call').length,
        errors: all.filter((each) => each.failed).length,
      }
    }),
    took: [...byTool].flatMap(([name, all]) =>
      shares(
        name,
        all.flatMap(({ duration }) => duration ?? []),
      ),
    ),
    waited: [...Map.groupBy(calls, ({ name }) => name)].flatMap(([name, all]) =>
      shares(
        name,
        all.flatMap(({ waited }) => waited ?? []),
      ),
    ),
  }
}

async function readCalls(log: Store['log'], run: string) {
  const calls: { name: string; type: string; failed: boolean; waited?: number }[] = []
  const asked = new Map<string, { call: string; at: number }>()
  /** Of calls without a result. */
  const waits = new Map<string, number>()
  for await (const batch of log.read(run, { types: ['tool-call', 'tool-result', 'request', 'response'] })) {
    for (const entry of batch) {
      if (entry.type === 'request' && entry.toolCallId !== undefined) {
        asked.set(entry.requestId, { call: entry.toolCallId, at: entry.timestamp })
      } else if (entry.type === 'response') {
        const { call, at } = asked.get(entry.requestId) ?? {}
        if (call !== undefined) waits.set(call, (waits.get(call) ?? 0) + entry.timestamp - at!)
      }
      if (entry.type !== 'tool-call' && (entry.type !== 'tool-result' || entry.preliminary === true)) continue
      const failed = entry.type === 'tool-result' && entry.isError === true && entry.outcome === undefined
      const waited = entry.type === 'tool-result' ? waits.get(entry.toolCallId) : undefined
      if (waited !== undefined) waits.delete(entry.toolCallId)
      calls.push({ name: entry.toolName, type: entry.type, failed, ...omitUndefined({ waited }) })
    }
  }
  return calls
}

function shares<T>(name: T, values: readonly number[]): { name: T; p50: number; p95: number }[] {
  if (values.length === 0) return []
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1]!
  return [{ name, p50: at(0.5), p95: at(0.95) }]
}
