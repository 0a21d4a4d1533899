/** Totals and percentiles over many runs, from the tables. */
import type { Store } from '../part/log.ts'
import { addUpStats } from './add-up-stats.ts'
import { queryRows } from './own-query.ts'
import { usageSums, type UsageSum } from './usage-sums.ts'

/** Which runs count: those that started in this time, of this agent. Times are epoch ms. */
export interface StatsQuery {
  since: number
  until: number
  agent?: string | undefined
}

/** How often something was. */
export interface Count {
  name: string
  count: number
}

/** Durations in ms. */
export interface Percentiles extends Count {
  p50: number
  p95: number
  p99: number
}

export interface UsageOf extends UsageSum {
  name: string
}

/** Each list has at most a thousand rows, the most frequent first. */
export interface Stats {
  since: number
  until: number
  outcomes: Count[]
  errors: Count[]
  agents: Count[]
  days: Count[]
  duration: Percentiles | null
  usage: UsageSum | null
  usageByModel: UsageOf[]
  usageByAgent: UsageOf[]
  usageByDay: UsageOf[]
  usageByThread: UsageOf[]
  modelCalls: Percentiles[]
  firstToken: Percentiles[]
  toolCalls: Percentiles[]
}

const named = (table: string) => `(:agent IS NULL OR ${table}.agent = :agent)`
export const runsIn = `runs r WHERE r.started_at >= :since AND r.started_at < :until AND ${named('r')}`
/** What a fork shares is counted once, where it happened. */
export const within = (table: string, time: string) =>
  `${table} t WHERE t.shared = 0 AND t.${time} >= :since AND t.${time} < :until AND ${named('t')}`

const usageBy = (name: string, order = 'reports DESC') =>
  `SELECT ${name} AS name, ${usageSums} FROM ${within('usage', 'timestamp')} GROUP BY 1 ORDER BY ${order}`

/** The count and the percentiles of a value, for each name. */
export function percentiles(name: string, value: string, from: string): string {
  return `WITH v AS (SELECT ${name} AS name, ${value} AS value FROM ${from}),
    o AS (SELECT name, value, row_number() OVER w AS i, count(*) OVER (PARTITION BY name) AS n
      FROM v WHERE value IS NOT NULL WINDOW w AS (PARTITION BY name ORDER BY value))
    SELECT name, max(n) AS count, min(value) FILTER (WHERE i >= n * 0.5) AS p50,
      min(value) FILTER (WHERE i >= n * 0.95) AS p95, min(value) FILTER (WHERE i >= n * 0.99) AS p99
    FROM o GROUP BY name ORDER BY count DESC`
}

const queries = {
  outcomes: `SELECT status AS name, count(*) AS count FROM ${runsIn} GROUP BY status ORDER BY count DESC`,
  errors: `SELECT error ->> '$.code' AS name, count(*) AS count FROM ${runsIn} AND error IS NOT NULL GROUP BY 1 ORDER BY count DESC`,
  agents: `SELECT agent AS name, count(*) AS count FROM ${runsIn} GROUP BY agent ORDER BY count DESC`,
  days: `SELECT strftime('%Y-%m-%d', started_at / 1000, 'unixepoch') AS name, count(*) AS count FROM ${runsIn} GROUP BY 1 ORDER BY 1`,
  duration: percentiles(`'all'`, 'r.ended_at - r.started_at', runsIn),
  usage: `SELECT ${usageSums} FROM ${within('usage', 'timestamp')}`,
  usageByModel: usageBy('t.model'),
  usageByAgent: usageBy('t.agent'),
  usageByDay: usageBy(`strftime('%Y-%m-%d', t.timestamp / 1000, 'unixepoch')`, '1'),
  usageByThread: usageBy('(SELECT thread_id FROM runs WHERE id = t.run)'),
  modelCalls: percentiles('t.model', 't.duration', within('model_calls', 'started_at')),
  firstToken: percentiles('t.model', 't.time_to_first_token', within('model_calls', 'started_at')),
  toolCalls: percentiles('t.tool_name', 't.duration', within('tool_calls', 'called_at')),
}

/**
 * Statistics over the runs of a store. One without tables keeps so few runs that they are added up instead; times to the first token
 * are not known then.
 */
export async function readStats(store: Pick<Store, 'log' | 'runs' | 'records'>, query: StatsQuery): Promise<Stats> {
  const { records } = store
  if (records === undefined) return addUpStats(store, query)
  await records.settle()
  const { since, until, agent } = query
  const options = { parameters: { since, until, agent: agent ?? null }, limit: 1000 }
  const found = await Promise.all(
    Object.entries(queries).map(async ([name, sql]) => [
      name,
      await queryRows(records, 'read statistics', sql, options),
    ]),
  )
  const { duration, usage, ...lists } = Object.fromEntries(found) as Record<keyof typeof queries, unknown[]>
  return { since, until, duration: duration[0] ?? null, usage: usage[0] ?? null, ...lists } as Stats
}
