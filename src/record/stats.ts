/** Totals and percentiles over many runs, from the tables. */
import type { Records } from '../part/records.ts'

/** Which runs count: those that started in this time, of this agent. Times are epoch ms. */
export interface StatsQuery {
  since: number
  until: number
  agent?: string | undefined
}

type Row = Record<string, unknown>

const named = (table: string) => `(:agent IS NULL OR ${table}.agent = :agent)`
const runsIn = `runs r WHERE r.started_at >= :since AND r.started_at < :until AND ${named('r')}`
const within = (table: string, time: string) =>
  `${table} t WHERE t.${time} >= :since AND t.${time} < :until AND ${named('t')}`

const usageSums = `count(*) AS reports, sum(input_tokens) AS inputTokens, sum(output_tokens) AS outputTokens,
  sum(cached_input_tokens) AS cachedInputTokens, sum(reasoning_tokens) AS reasoningTokens,
  coalesce(sum(cost), 0) AS knownCost, count(*) - count(cost) AS unpriced`

/** The count and the percentiles of a value, for each name. */
function percentiles(name: string, value: string, from: string): string {
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
  usageByModel: `SELECT model AS name, ${usageSums} FROM ${within('usage', 'timestamp')} GROUP BY model ORDER BY reports DESC`,
  usageByAgent: `SELECT agent AS name, ${usageSums} FROM ${within('usage', 'timestamp')} GROUP BY agent ORDER BY reports DESC`,
  modelCalls: percentiles('t.model', 't.duration', within('model_calls', 'started_at')),
  firstToken: percentiles('t.model', 't.time_to_first_token', within('model_calls', 'started_at')),
  toolCalls: percentiles('t.tool_name', 't.duration', within('tool_calls', 'called_at')),
}

/** Each list has at most a thousand rows, the most frequent first. Durations are in ms. */
export async function readStats(records: Records, { since, until, agent }: StatsQuery) {
  await records.settle()
  const parameters = { since, until, agent: agent ?? null }
  const rows = async (sql: string): Promise<Row[]> => {
    const { columns, rows: values } = await records.query(sql, { parameters, limit: 1000 })
    return values.map((each) => Object.fromEntries(columns.map((column, i) => [column, each[i]])))
  }
  const found = await Promise.all(Object.entries(queries).map(async ([name, sql]) => [name, await rows(sql)] as const))
  const { duration = [], usage = [], ...lists } = Object.fromEntries(found)
  return { since, until, duration: duration[0] ?? null, usage: usage[0] ?? null, ...lists }
}
