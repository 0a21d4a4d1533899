/** Totals and percentiles over many runs, from the tables. */
import type { Store, RunRow } from '../part/log.ts'
import { type Used, sumUsed } from '../fold/usage-fold.ts'
import { MillraceError, toErrorValue } from '../part/error.ts'
import type { QueryOptions, Records } from '../part/records.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { OwnerFilter } from '../part/principal.ts'
import type { Count, Percentiles, StatsQuery, Totals, UsageOf, UsageSum } from '../part/stats.ts'
import { readView } from '../fold/read-view.ts'
import type { RunView, StepView } from '../fold/run-view.ts'
import { unlessDamaged } from '../fold/unless-damaged.ts'

export type { Percentiles, StatsQuery, UsageSum } from '../part/stats.ts'

export interface Stats extends Totals {
  since: number
  until: number
}

const named = (table: string) => `(:agent IS NULL OR ${table}.agent = :agent)`
/** The fields of a filter, as parameters of a query. */
export function filterParameters({ owner, tenant }: OwnerFilter): Record<string, string> {
  return omitUndefined({ owner, tenant }) as Record<string, string>
}
/** A condition on the runs of an owner or a tenant, or on what happened in them, for the rows of a table. */
export function shown(table: string, filter: OwnerFilter): string {
  return Object.keys(filterParameters(filter))
    .map((name) => ` AND ${table}.${name} = :${name}`)
    .join('')
}
export const runsIn = (filter: OwnerFilter) =>
  `runs r WHERE r.started_at >= :since AND r.started_at < :until AND ${named('r')}${shown('r', filter)}`
/** What a fork shares is counted once, where it happened. */
export const within = (table: string, time: string, filter: OwnerFilter) =>
  `${table} t WHERE t.shared = 0 AND t.${time} >= :since AND t.${time} < :until AND ${named('t')}${shown('t', filter)}`

export const usageSums = `count(DISTINCT t.run || ' ' || t.step) AS calls, count(*) AS reports,
  sum(input_tokens) AS inputTokens, sum(output_tokens) AS outputTokens,
  sum(cached_input_tokens) AS cachedInputTokens, sum(reasoning_tokens) AS reasoningTokens,
  coalesce(max(source = 'estimated'), 0) AS estimated,
  coalesce(sum(t.cost), 0) AS knownCost, count(*) - count(t.cost) AS unpriced`

/** The count and the percentiles of a value, for each name. */
export function percentiles(name: string, value: string, from: string): string {
  return `WITH v AS (SELECT ${name} AS name, ${value} AS value FROM ${from}),
    o AS (SELECT name, value, row_number() OVER w AS i, count(*) OVER (PARTITION BY name) AS n
      FROM v WHERE value IS NOT NULL WINDOW w AS (PARTITION BY name ORDER BY value))
    SELECT name, max(n) AS count, min(value) FILTER (WHERE i >= n * 0.5) AS p50,
      min(value) FILTER (WHERE i >= n * 0.95) AS p95, min(value) FILTER (WHERE i >= n * 0.99) AS p99
    FROM o GROUP BY name ORDER BY count DESC`
}

/**
 * Statistics over the runs of a store. One without tables keeps so few runs that they are added up instead; times to the first token
 * are not known then.
 */
export async function readStats(store: Pick<Store, 'log' | 'runs' | 'records'>, query: StatsQuery): Promise<Stats> {
  const { records } = store
  if (records === undefined) return addUpStats(store, query)
  await records.settle()
  const { since, until } = query
  return { since, until, ...(await records.totals(query)) }
}

/* Sums of usage in SQL, over the table `usage` as `t`. */

export function toUsed(sum: UsageSum): Used {
  const { calls, inputTokens, outputTokens, cachedInputTokens, reasoningTokens, estimated, knownCost, unpriced } = sum
  const tokens = { inputTokens, outputTokens, cachedInputTokens, reasoningTokens }
  const known = Object.fromEntries(Object.entries(tokens).filter(([, count]) => count !== null))
  const usage = { ...known, source: estimated === 1 ? 'estimated' : 'reported' } as const
  return { calls, usage, ...(unpriced === 0 ? { cost: knownCost } : undefined), knownCost, unpriced }
}

/**
 * Runs a query of Millrace's own and returns its rows as objects. It asks for what every database has, so that the database is to blame
 * for whatever is wrong: rejects with `store-failed`, and the words of the database in `detail`.
 */
export async function queryRows<Row>(
  records: Records,
  what: string,
  sql: string,
  options: QueryOptions,
): Promise<Row[]> {
  try {
    const { columns, rows } = await records.query(sql, options)
    return rows.map((values) => Object.fromEntries(columns.map((name, i) => [name, values[i]])) as Row)
  } catch (cause) {
    const { code, message: detail } = toErrorValue(cause)
    if (code !== 'bad-query') throw cause
    throw new MillraceError('store-failed', `cannot ${what}: the store failed`, { status: 503, detail, cause })
  }
}

/** Statistics of a store without tables, from the views of its runs. */
type LogAndRuns = Pick<Store, 'log' | 'runs'>

async function addUpStats(store: LogAndRuns, query: StatsQuery): Promise<Stats> {
  const { since, until, agent, owner, tenant } = query
  const rows = await store.runs.list({ since, until, limit: 1000, ...omitUndefined({ agent, owner, tenant }) })
  const read = rows.map(({ id }) => unlessDamaged(() => readView(store, id)))
  const views = (await Promise.all(read)).filter((view) => view !== undefined)
  const steps = views.flatMap((view) => view.steps)
  const ended = rows.flatMap(({ startedAt, endedAt }) => (endedAt === undefined ? [] : endedAt - startedAt))
  const used = views.flatMap(({ usageByModel }) => usageByModel)
  const by = (name: (view: RunView) => string) =>
    usageOf(views.flatMap((view) => view.usageByModel.map((each) => [name(view), each] as const)))
  return {
    since,
    until,
    outcomes: counts(rows.map(({ status }) => status)),
    errors: counts(rows.flatMap(({ error }) => error?.code ?? [])),
    agents: counts(rows.map((row) => row.agent)),
    days: counts(rows.map(dayOf)).sort(byName),
    duration: percentilesOf(ended.map((value) => ['all', value]))[0] ?? null,
    usage: sumOf(used),
    usageByModel: usageOf(used.map((each) => [each.model, each])),
    usageByAgent: usageOf(views.flatMap(({ usageByAgent }) => usageByAgent.map((each) => [each.agent, each] as const))),
    usageByDay: by(dayOf).sort(byName),
    usageByThread: by(({ threadId }) => threadId),
    modelCalls: percentilesOf(steps.flatMap((step) => durationOf(step, step.kind === 'model-call', step.model))),
    firstToken: [],
    toolCalls: percentilesOf(steps.flatMap((step) => durationOf(step, isTool(step), step.toolName))),
  }
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)

function dayOf({ startedAt }: Pick<RunRow, 'startedAt'>): string {
  return new Date(startedAt).toISOString().slice(0, 10)
}

/** Those of the client take the time of whoever replies. */
function isTool({ kind }: StepView): boolean {
  return kind === 'tool-call'
}

function durationOf({ duration }: StepView, isOne: boolean, name: string | undefined): [string, number][] {
  return isOne && name !== undefined && duration !== undefined ? [[name, duration]] : []
}

function groups<T>(all: readonly (readonly [name: string, value: T])[]): [name: string, values: T[]][] {
  const found = new Map<string, T[]>()
  for (const [name, value] of all) {
    const values = found.get(name)
    if (values === undefined) found.set(name, [value])
    else values.push(value)
  }
  return [...found]
}

function counts(names: readonly string[]): Count[] {
  return groups(names.map((name) => [name, name]))
    .map(([name, { length }]) => ({ name, count: length }))
    .sort((a, b) => b.count - a.count)
}

function percentilesOf(all: readonly (readonly [name: string, value: number])[]): Percentiles[] {
  return groups(all)
    .map(([name, values]) => {
      const sorted = values.toSorted((a, b) => a - b)
      const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1]!
      return { name, count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    })
    .sort((a, b) => b.count - a.count)
}

function usageOf(all: readonly (readonly [name: string, Used])[]): UsageOf[] {
  return groups(all)
    .map(([name, values]) => ({ name, ...sumOf(values) }))
    .sort((a, b) => b.reports - a.reports)
}

function sumOf(all: readonly Used[]): UsageSum {
  const { calls, usage, knownCost, unpriced } = sumUsed(all)
  const { inputTokens = null, outputTokens = null, cachedInputTokens = null, reasoningTokens = null, source } = usage
  const tokens = { inputTokens, outputTokens, cachedInputTokens, reasoningTokens }
  return { calls, reports: calls, ...tokens, estimated: source === 'estimated' ? 1 : 0, knownCost, unpriced }
}
