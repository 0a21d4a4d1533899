/** The queries of `millrace query --named`. */

export interface NamedQuery {
  about: string
  /** Values of parameters that are not given; a parameter without one must be given. */
  defaults: Readonly<Record<string, number>>
  sql: string
}

const time = (column: string, name = column) => `datetime(${column} / 1000, 'unixepoch') AS ${name}`
/** Now, in ms. `unixepoch('subsec')` would be NULL in the SQLite of some systems. */
const now = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`
const since = `(unixepoch() - :days * 86400) * 1000`

/** A fork has agents that its source has called before. */
const began = `coalesce(min(started_at) FILTER (WHERE id = execution_id), min(started_at))`

const costs = (by: string, name: string) => `
SELECT ${by} AS ${name}, count(DISTINCT run) AS runs, sum(input_tokens) AS input_tokens,
  sum(output_tokens) AS output_tokens, round(sum(cost), 6) AS cost, sum(cost IS NULL) AS without_price
FROM usage
WHERE timestamp >= ${since} AND shared = 0
GROUP BY 1
ORDER BY `

export const namedQueries: Readonly<Record<string, NamedQuery>> = {
  'slow-tools': {
    about:
      'Tool calls that took longer than :ms, and those that have run for so long, without the time in which somebody was asked',
    defaults: { ms: 5000 },
    sql: `
SELECT 'took' AS state, duration AS ms, waited AS waited_ms, tool_name, agent, run, tool_call_id, agent_id, outcome,
  ${time('called_at')}
FROM tool_calls
WHERE duration > :ms AND superseded = 0 AND shared = 0
UNION ALL
SELECT 'running', ${now} - started_at, waited, tool_name, agent, run, tool_call_id, agent_id,
  NULL, ${time('called_at')}
FROM tool_calls c
WHERE outcome IS NULL AND superseded = 0 AND shared = 0 AND ${now} - started_at > :ms
  AND run IN (SELECT id FROM runs WHERE status IN ('running', 'suspended'))
  AND NOT EXISTS (SELECT 1 FROM requests q WHERE q.run = c.run AND q.tool_call_id = c.tool_call_id AND q.outcome IS NULL)
ORDER BY state, ms DESC`,
  },
  tools: {
    about: 'The most used tools of :days days: calls, failures, how long they take, how long they waited for somebody',
    defaults: { days: 30 },
    sql: `
SELECT tool_name, count(*) AS calls, sum(outcome <> 'completed') AS not_completed, round(avg(duration)) AS average_ms,
  max(duration) AS longest_ms, round(avg(waited)) AS average_waited_ms, count(DISTINCT run) AS runs
FROM tool_calls
WHERE called_at >= ${since} AND superseded = 0 AND shared = 0
GROUP BY tool_name
ORDER BY calls DESC`,
  },
  'slow-models': {
    about: 'The slowest model calls of :days days, with the time to their first token',
    defaults: { days: 30 },
    sql: `
SELECT model, agent, duration AS ms, time_to_first_token AS first_token_ms, input_tokens, output_tokens, run, step,
  ${time('started_at')}
FROM model_calls
WHERE started_at >= ${since} AND duration IS NOT NULL AND superseded = 0 AND shared = 0
ORDER BY duration DESC`,
  },
  models: {
    about: 'The models of :days days: calls, failures, how long they take',
    defaults: { days: 30 },
    sql: `
SELECT model, count(*) AS calls, sum(error IS NOT NULL) AS failed, round(avg(time_to_first_token)) AS first_token_ms,
  round(avg(duration)) AS average_ms, max(duration) AS longest_ms
FROM model_calls
WHERE started_at >= ${since} AND superseded = 0 AND shared = 0
GROUP BY model
ORDER BY calls DESC`,
  },
  'cost-by-model': {
    about: 'Tokens and cost of :days days by model',
    defaults: { days: 30 },
    sql: `${costs('model', 'model')}cost DESC, output_tokens DESC`,
  },
  'cost-by-agent': {
    about: 'Tokens and cost of :days days by agent',
    defaults: { days: 30 },
    sql: `${costs('agent', 'agent')}cost DESC, output_tokens DESC`,
  },
  'cost-by-day': {
    about: 'Tokens and cost of :days days by day (UTC)',
    defaults: { days: 30 },
    sql: `${costs(`date(timestamp / 1000, 'unixepoch')`, 'day')}1 DESC`,
  },
  'cache-hits': {
    about: 'Prompt tokens of :days days by model and agent: what providers read from their caches and wrote to them',
    defaults: { days: 30 },
    sql: `
SELECT model, agent, count(*) AS calls, sum(input_tokens) AS input_tokens,
  coalesce(sum(cached_input_tokens), 0) AS cached_tokens, coalesce(sum(cache_write_input_tokens), 0) AS written_tokens,
  round(100.0 * coalesce(sum(cached_input_tokens), 0) / nullif(sum(input_tokens), 0), 1) AS cached_percent,
  round(sum(cost), 6) AS cost
FROM usage
WHERE timestamp >= ${since} AND shared = 0
GROUP BY model, agent
ORDER BY 4 DESC`,
  },
  'cost-by-run': {
    about: 'The most expensive runs of :days days',
    defaults: { days: 30 },
    sql: `
SELECT id AS run, agent, status, usage ->> 'totalTokens' AS tokens, cost, ${time('started_at')}, title
FROM runs
WHERE started_at >= ${since}
ORDER BY cost DESC, tokens DESC`,
  },
  errors: {
    about: 'What failed in :days days: runs, steps and tool calls, newest first',
    defaults: { days: 30 },
    sql: `
SELECT ${time('ended_at', 'at')}, 'run' AS what, agent, id AS run, NULL AS step, error ->> 'code' AS code,
  error ->> 'message' AS message
FROM runs
WHERE error IS NOT NULL AND ended_at >= ${since}
UNION ALL
SELECT ${time('ended_at', 'at')}, kind, agent, run, step, error ->> 'code', error ->> 'message'
FROM steps
WHERE error IS NOT NULL AND superseded = 0 AND shared = 0 AND ended_at >= ${since}
UNION ALL
SELECT ${time('ended_at', 'at')}, 'tool ' || tool_name, agent, run, step, outcome, output
FROM tool_calls
WHERE outcome <> 'completed' AND superseded = 0 AND shared = 0 AND ended_at >= ${since}
ORDER BY at DESC`,
  },
  timeline: {
    about: 'What all agents of an execution did (:execution, the id of its root run), in order, without deltas',
    defaults: {},
    sql: `
SELECT strftime('%H:%M:%f', e.timestamp / 1000.0, 'unixepoch') AS time, a.agent, a.model, e.event_type, e.tool_name,
  e.event_id, a.id AS agent_id
FROM agents a
JOIN agent_stream_events e ON e.agent_id = a.id
WHERE a.execution_id = :execution AND e.event_type NOT IN ('text-delta', 'reasoning-delta', 'tool-input-delta')
ORDER BY e.timestamp`,
  },
  executions: {
    about: 'Executions of :days days: how many agents each has, how long it took',
    defaults: { days: 30 },
    sql: `
SELECT execution_id AS execution, count(*) AS agents, ${began} AS first,
  max(coalesce(ended_at, ${now})) - ${began} AS ms, ${time(began, 'started_at')}
FROM agents
WHERE started_at >= ${since}
GROUP BY execution_id
ORDER BY first DESC`,
  },
  threads: {
    about: 'Conversations, the last one first',
    defaults: {},
    sql: `
SELECT id AS thread, agent, status, runs, tool_calls, errors, total_tokens, cost, ${time('updated_at')}, title
FROM threads t
ORDER BY t.updated_at DESC`,
  },
  feedback: {
    about: 'What people said of answers in :days days, the worst agents first',
    defaults: { days: 30 },
    sql: `
SELECT r.agent, f.verdict, f.note, f.user, f.run, ${time('f.time', 'said_at')}
FROM feedback f JOIN runs r ON r.id = f.run
WHERE f.time >= ${since}
ORDER BY sum(f.verdict = 'down') OVER (PARTITION BY r.agent) DESC, r.agent, f.n DESC`,
  },
  tests: {
    about: 'The last result of each test case, those that failed first',
    defaults: {},
    sql: `
SELECT t.test, t.agent, t.status, t.model, t.is_live AS live, t.tokens, t.cost, t.duration AS ms,
  t.failures ->> '$[0].message' AS failure, ${time('t.time', 'at')}
FROM test_results t
WHERE t.n = (SELECT max(n) FROM test_results WHERE test = t.test)
ORDER BY t.status <> 'failed', t.test`,
  },
  waiting: {
    about: 'Questions that nobody has answered yet',
    defaults: {},
    sql: `
SELECT run, agent, kind, tool_name, request_id, ${time('asked_at')}, ${time('deadline')}, coalesce(message, input) AS question
FROM requests q
WHERE outcome IS NULL AND superseded = 0
ORDER BY q.asked_at`,
  },
}
