/**
 * Conversations out of the tables, in one query: which threads are on the page is decided by the index of runs alone; the
 * counts are read for those.
 */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { parseJson } from '../../part/json.ts'
import type { OwnerFilter } from '../../part/principal.ts'
import type { Records, SearchHit } from '../../part/records.ts'
import { keptVersion } from '../../fold/kept-run.ts'
import { queryWords } from '../../store/run-query.ts'
import { modelsOfThread, toolCallsOfThread, toolsOfThread } from '../../store/tables/views.ts'
import { filterParameters, queryRows } from '../stats.ts'
import {
  threadClosed,
  type ThreadQuery,
  type ThreadRow,
  type ThreadRule,
  type ThreadStatus,
} from '../../part/thread.ts'

/** Texts of a thread whose messages are counted for a list, in bytes as they are kept. More would take too long. */
const mostCounted = 1_000_000

/** Places that a search looks at, newest first. */
const mostHits = 300

type Parameters = Record<string, string | number | null>

/** `id`: only this thread. */
export async function queryThreads(
  records: Records,
  query: ThreadQuery & { id?: string },
  rule: ThreadRule,
): Promise<ThreadRow[]> {
  const { q, limit = 50 } = query
  const hits = q === undefined ? undefined : await search(records, q, query)
  const { sql, parameters } = threadsQuery(query, rule, hits && [...hits.keys()])
  const rows = await queryRows<ThreadQueryRow>(records, 'list threads', sql, { parameters, limit, isShort: true })
  return rows.map((row) => ({ ...toRow(row, rule), ...omitUndefined({ match: hits?.get(row.id) }) }))
}

/** The newest place in each thread. */
async function search(
  records: Records,
  q: string,
  { agent, owner, tenant }: ThreadQuery,
): Promise<Map<string, ThreadRow['match']>> {
  const found = new Map<string, ThreadRow['match']>()
  for (const hit of await records.search({ q, limit: mostHits, ...omitUndefined({ agent, owner, tenant }) })) {
    if (!found.has(hit.threadId)) found.set(hit.threadId, toMatch(hit))
  }
  return found
}

function toMatch({ run, seq, kind, excerpt }: SearchHit): ThreadRow['match'] {
  return { run, seq, kind, excerpt }
}

/**
 * A condition on a run of a thread: that the filter shows it. The `+` keeps SQLite from the index of owners, because a thread has fewer runs. A thread
 * may have runs of several owners: each sees what its own come to.
 */
export function inThread(run: string, { owner, tenant }: OwnerFilter): string {
  return Object.keys(filterParameters({ owner, tenant }))
    .map((name) => ` AND +${run}.${name} = :${name}`)
    .join('')
}

/** The same of a run whose name is given. */
type Shown = (run: string) => string

const withStatus = (status: 'running' | 'suspended', shown: Shown) =>
  `r.thread_id IN (SELECT s.thread_id FROM runs s WHERE s.status = '${status}'${shown('s')})`
/** The last entry of a run. Entries that only close the thread do not count. */
const activity = (run: string) =>
  `CASE WHEN ${run}.error LIKE '{"code":"${threadClosed}"%' THEN ${run}.started_at ELSE ${run}.updated_at END`
/** The newest run decides alone for most threads. */
const isOld = (shown: Shown) =>
  `(${activity('r')} <= :cutoff AND (SELECT max(${activity('x')}) FROM runs x WHERE x.thread_id = r.thread_id${shown('x')}) <= :cutoff)`

function ofStatus(status: ThreadStatus, shown: Shown): string {
  const running = withStatus('running', shown)
  const suspended = withStatus('suspended', shown)
  switch (status) {
    case 'active':
      return running
    case 'waiting':
      return `${suspended} AND NOT ${running}`
    case 'idle':
      return `NOT ${running} AND NOT ${suspended} AND NOT ${isOld(shown)}`
    case 'closed':
      return `NOT ${running} AND NOT ${suspended} AND ${isOld(shown)}`
    default:
      return status satisfies never
  }
}

/** The own usage of a run: a fork shares the rest with its source, where it is counted. */
const own = (column: string, shared: string) =>
  `${column} - coalesce((SELECT sum(u.${shared}) FROM forks f JOIN indexed_usage u ON u.run = runs.number AND u.seq <= f.seq WHERE f.run = runs.id), 0)`

/** Another version has kept something else. Without parsing it: it may be long. */
const isCurrent = (view: string) => `coalesce(substr(${view}, 1, ${currentView.length}) = '${currentView}', 1)`
const currentView = `{"version":${keptVersion},`

/** The threads whose own titles have all words of a search. Only as many have one as people have named. */
const titled = `SELECT n.thread FROM thread_titles n WHERE json_array_length(:words) > 0
  AND NOT EXISTS (SELECT 1 FROM json_each(:words) w WHERE instr(n.title_folded, w.value) = 0)`

/** Exported for the test that explains it. */
export function threadsQuery(
  { id, status, agent, owner, tenant, q, before, limit = 50 }: ThreadQuery & { id?: string },
  { closeAfterMs, now }: ThreadRule,
  ids?: readonly string[],
): { sql: string; parameters: Parameters } {
  const filter = filterParameters({ owner, tenant })
  const shown: Shown = (run) => inThread(run, filter)
  const parameters: Parameters = { limit, ...filter }
  const where = [
    `NOT EXISTS (SELECT 1 FROM runs n WHERE n.thread_id = r.thread_id AND n.number > r.number${shown('n')})`,
  ]
  const add = (condition: string, values: Parameters = {}) => {
    where.push(condition)
    Object.assign(parameters, values)
  }
  if (id !== undefined) add('r.thread_id = :id', { id })
  if (ids !== undefined) {
    add(`r.thread_id IN (SELECT value FROM json_each(:ids) UNION ${titled})`, {
      ids: JSON.stringify(ids),
      words: JSON.stringify(queryWords(q?.replaceAll(/["*]/gu, ' '))),
    })
  }
  const isFew = id !== undefined || ids !== undefined
  // The index of owners has the tenant as well. Neither has runs without one.
  const byOwner = !isFew && (owner ?? '') !== ''
  const byTenant = !isFew && (byOwner || (tenant ?? '') !== '')
  if (owner !== undefined) add(byOwner ? `r.owner = :owner AND r.owner <> ''` : '+r.owner = :owner')
  if (tenant !== undefined)
    add(byTenant ? `r.tenant = :tenant${byOwner ? '' : ` AND r.tenant <> ''`}` : '+r.tenant = :tenant')
  if (before !== undefined)
    add(`r.number < (SELECT max(b.number) FROM runs b WHERE b.thread_id = :before${shown('b')})`, { before })
  if (agent !== undefined)
    add(`EXISTS (SELECT 1 FROM runs a WHERE a.thread_id = r.thread_id AND a.agent = :agent${shown('a')})`, { agent })
  // Before all times if threads are never closed.
  const cutoff = closeAfterMs === Infinity ? -1 : now - closeAfterMs
  if (status !== undefined) add(ofStatus(status, shown), status === 'idle' || status === 'closed' ? { cutoff } : {})
  return { sql: pageQuery(where.join(' AND '), shown), parameters }
}

const pageQuery = (where: string, shown: Shown) => `
WITH page AS MATERIALIZED (
  SELECT r.number AS last, r.id AS last_run, r.thread_id AS id FROM runs r WHERE ${where} ORDER BY r.number DESC LIMIT :limit
), counted AS MATERIALIZED (
  SELECT p.*, count(*) AS run_count, min(x.started_at) AS started_at, max(${activity('x')}) AS updated_at,
    max(x.status = 'running') AS is_running, max(x.status = 'suspended') AS is_suspended,
    sum(x.status IN ('failed', 'budget-exceeded', 'timed-out', 'interrupted')) AS error_count,
    sum(x.input) AS input_tokens, sum(x.output) AS output_tokens, sum(x.total) AS total_tokens,
    CASE WHEN max(x.cost IS NULL AND x.total > 0) THEN NULL ELSE sum(x.cost) END AS cost,
    sum(octet_length(v.view)) AS kept_bytes,
    max(x.ended_at IS NOT NULL AND v.seq IS NOT x.last_seq OR NOT ${isCurrent('v.view')}) AS is_partly_kept,
    CAST(round(avg(x.first_token_ms)) AS INTEGER) AS average_first_token
  FROM page p
  JOIN (
    SELECT number, id, thread_id, owner, tenant, status, started_at, updated_at, ended_at, last_seq, first_token_ms, error, ${own('cost', 'cost')} AS cost,
      ${own("usage ->> '$.inputTokens'", 'input_tokens')} AS input, ${own("usage ->> '$.outputTokens'", 'output_tokens')} AS output,
      ${own("usage ->> '$.totalTokens'", 'total_tokens')} AS total
    FROM runs
  ) x ON x.thread_id = p.id${shown('x')}
  LEFT JOIN views v ON v.run = x.number
  GROUP BY p.last
)
SELECT c.*,
  coalesce((SELECT n.title FROM thread_titles n WHERE n.thread = c.id),
    (SELECT x.title FROM runs x WHERE x.thread_id = c.id${shown('x')} AND x.title IS NOT NULL ORDER BY x.number LIMIT 1)) AS title,
  (SELECT json_group_array(agent) FROM (
    SELECT x.agent FROM runs x WHERE x.thread_id = c.id${shown('x')} GROUP BY x.agent ORDER BY max(x.number) DESC
  )) AS agents,
  -- Not a join: it would count for all threads first.
  (SELECT json_array(json(${modelsOfThread(shown('r'))}), json(${toolsOfThread(shown('r'))}), ${toolCallsOfThread(shown('r'))})
   FROM indexed_threads t WHERE t.id = c.id) AS calls,
  CASE WHEN c.kept_bytes <= ${mostCounted} AND NOT c.is_partly_kept THEN (
    SELECT sum(json_array_length(v.view, '$.asked') + json_array_length(v.view, '$.messages'))
    FROM runs x JOIN views v ON v.run = x.number WHERE x.thread_id = c.id${shown('x')}
  ) END AS message_count,
  (SELECT x.first_token_ms FROM runs x WHERE x.thread_id = c.id${shown('x')} AND x.first_token_ms IS NOT NULL
   ORDER BY x.number DESC LIMIT 1) AS last_first_token
FROM counted c
ORDER BY c.last DESC`

interface ThreadQueryRow {
  id: string
  last_run: string
  title: string | null
  agents: string
  started_at: number
  updated_at: number
  is_running: number
  is_suspended: number
  run_count: number
  error_count: number
  input_tokens: number | null
  output_tokens: number | null
  total_tokens: number | null
  cost: number | null
  /** Absent while the tables do not have the thread. */
  calls: string | null
  /** Absent if the text of a run is too long to be kept or counted. */
  message_count: number | null
  average_first_token: number | null
  last_first_token: number | null
}

function toRow(row: ThreadQueryRow, { closeAfterMs, now }: ThreadRule): ThreadRow {
  const [models, tools, toolCallCount] = parseJson(row.calls ?? '[[], [], 0]') as [string[], string[], number]
  const { average_first_token: average, last_first_token: last } = row
  const isClosed = row.updated_at <= now - closeAfterMs
  return {
    id: row.id,
    status: row.is_running ? 'active' : row.is_suspended ? 'waiting' : isClosed ? 'closed' : 'idle',
    agents: parseJson(row.agents) as string[],
    lastRunId: row.last_run,
    startedAt: row.started_at,
    updatedAt: row.updated_at,
    runCount: row.run_count,
    models: models.toSorted(),
    tools: tools.toSorted(),
    toolCallCount,
    errorCount: row.error_count,
    usage: omitUndefined({
      inputTokens: row.input_tokens ?? undefined,
      outputTokens: row.output_tokens ?? undefined,
      totalTokens: row.total_tokens ?? undefined,
    }),
    ...omitUndefined({
      title: row.title ?? undefined,
      messageCount: row.message_count ?? undefined,
      cost: row.cost ?? undefined,
      firstTokenMs: last === null ? undefined : { average: average ?? last, last },
    }),
  }
}
