/**
 * The views, for SQL. The columns of all parts of `agent_stream_events` must have the same affinity, or SQLite computes all rows before it looks at
 * a condition.
 */

/** The text of an entry: \`e\` is its event, \`k\` its tick. */
const line = 'CAST(substr(CAST(k.entries AS BLOB), e.at, e.length) AS TEXT)'

/**
 * The same with the texts that it only refers to (`shared-texts.ts`). A list is a tree: `place` sorts what is in it. `ORDER BY` stands in a
 * subquery, because SQLite before 3.44 does not know it in an aggregate, and could not open the file.
 */
const whole = `CAST((
  SELECT CASE WHEN instr(text, ',"shared":{') = 0 OR NOT json_valid(text) THEN text ELSE (
    WITH RECURSIVE places (n, path, value, type) AS (
      SELECT row_number() OVER (), path, value, type FROM (
        SELECT '$' || substr(fullkey, 9) AS path, value, type FROM json_each(text, '$.shared') WHERE type <> 'object'
        UNION ALL SELECT '$' || substr(fullkey, 9), value, type FROM json_each(text, '$.shared.input'))),
    filled (n, text) AS (
      SELECT 0, json_remove(text, '$.shared')
      UNION ALL
      SELECT places.n, json_set(filled.text, path, json(CASE type
        WHEN 'text' THEN (SELECT t.text FROM texts t WHERE t.hash = places.value AND t.is_list = 0)
        ELSE (
          WITH RECURSIVE items (place, value, type) AS (
            SELECT printf('%06d', key), value, type FROM json_each(places.value)
            UNION ALL
            SELECT items.place || printf('%06d', j.key), j.value, j.type
            FROM items JOIN texts t ON t.hash = items.value AND t.is_list = 1 JOIN json_each(t.text) j
            WHERE items.type = 'text')
          SELECT json_group_array(json(message)) FROM (
            SELECT CASE items.type WHEN 'text' THEN t.text ELSE items.value END AS message
            FROM items LEFT JOIN texts t ON items.type = 'text' AND t.hash = items.value
            WHERE t.is_list IS NOT 1 ORDER BY items.place))
        END))
      FROM filled JOIN places ON places.n = filled.n + 1)
    SELECT filled.text FROM filled ORDER BY n DESC LIMIT 1) END
  FROM (SELECT ${line} AS text)) AS TEXT)`

/** A field of another entry of the same run, from the log. */
function fieldOf(table: string, seq: string, path: string, text = line): string {
  return `(SELECT ${text} ${path} FROM indexed_events e JOIN ticks k ON k.id = e.tick
    WHERE e.run = ${table}.run AND e.seq = ${table}.${seq})`
}

const isoTime = (time: string) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${time} / 1000.0, 'unixepoch')`

/** 1 for entries that a fork shares with its source, whose row is the one to count. */
const shared = (table: string) => `${table}.seq <= coalesce((SELECT f.seq FROM forks f WHERE f.run = r.id), 0)`

/** A sum over the usage of an agent `a` itself: that of the agents which it called is in their rows. */
const ofAgent = (what: string) => `(SELECT ${what} FROM indexed_usage u WHERE u.run = a.run AND u.agent = a.number)`

/** A sum over the runs `r` of a thread `t`. */
const ofThread = (what: string, table: string, more = '') =>
  `(SELECT ${what} FROM runs r JOIN ${table} x ON x.run = r.number WHERE r.thread_id = t.id AND NOT ${shared('x')}${more})`

/** What the runs `r` of a thread `t` have called. `more`: another condition on these. */
export const modelsOfThread = (more?: string) =>
  ofThread('json_group_array(DISTINCT x.model) FILTER (WHERE x.model IS NOT NULL)', 'indexed_model_calls', more)
export const toolsOfThread = (more?: string) =>
  ofThread('json_group_array(DISTINCT x.tool_name)', 'indexed_tool_calls', more)
export const toolCallsOfThread = (more = '') =>
  ofThread('count(*)', 'indexed_tool_calls', ` AND x.superseded = 0${more}`)

/** What was asked about a tool call `c`: whether it may run, or for its result. Only the entries of the call are looked at. */
const asked = `FROM indexed_requests q WHERE q.run = c.run AND q.seq > c.seq AND q.seq < coalesce(c.result_seq, 9e15)
  AND q.tool_call_id = c.tool_call_id AND q.superseded = 0`

/** The time in the tool itself, of a tool call `c` and the step `s` that ran it: none of a client's tool, nor of a call that was asked about and never ran. */
export const timeInTool = `CASE WHEN s.kind = 'client-tool' OR (c.started_at IS NULL AND EXISTS (SELECT 1 ${asked})) THEN NULL
         ELSE c.ended_at - coalesce(c.started_at, c.called_at) END`

/** The ids of the rows of a run with the deltas of a block: `l` is the run, `b` the block. From groups, and from its tail. */
const inGroups = `tick_groups g ON g.run = l.number AND g.first_seq <= coalesce(b.last_seq, 9e15) AND g.first_seq >=
    coalesce((SELECT max(first_seq) FROM tick_groups WHERE run = l.number AND first_seq <= b.tick_seq), 0)
  JOIN json_each(g.ticks) i`
const inTail = `json_each((
  WITH RECURSIVE tail (id) AS (
    SELECT l.last_tick UNION ALL SELECT t.prev FROM tail JOIN ticks t ON t.id = tail.id WHERE t.prev < tail.id
  ) SELECT json_group_array(id) FROM tail)) i`

/** For one delta of a line that may have several: `s` and `m` are the number and the time of the line, `o` the offsets, `t` the text. */
const deltaSeq = '(s.value + t.key)'
const deltaTime = '(m.value + coalesce(o.value ->> t.key, 0))'
/** `isBlock` of `delta-block.ts`. */
const isBlock = `json_type(d.value, '$.delta') IS NULL AND json_array_length(d.value, '$.deltas') > 1
  AND json_type(d.value, '$.deltas[0]') = 'text'`
/** Once per line: SQLite would parse it again for each delta. */
const ofLine = `json_each(json_array(d.value ->> 'seq')) s
     JOIN json_each(json_array(d.value ->> 'timestamp')) m
     JOIN json_each(json_array(iif(${isBlock}, coalesce(d.value -> 'offsets', json_array()), json_array()))) o
     JOIN json_each(iif(${isBlock}, d.value -> 'deltas', json_array(d.value ->> 'delta'))) t`

/** One row per delta. Who asks for events of another type is done with the first table, for each row of a join. */
const deltas = (ids: string) =>
  `SELECT a.run_id || ':' || ${deltaSeq}, a.id, y.type, b.event_id,
     b.tool_name, CAST(t.value AS TEXT), CAST(${deltaTime} AS INTEGER), ${isoTime(deltaTime)}
   FROM indexed_delta_types y JOIN indexed_blocks b ON b.type = y.type JOIN indexed_agents a ON a.run = b.run AND a.number = b.agent JOIN runs l ON l.number = b.log
     JOIN ${ids} JOIN ticks k ON k.id = i.value AND k.last_seq >= b.tick_seq AND k.first_seq <= coalesce(b.last_seq, 9e15)
     JOIN json_each('[' || replace(k.entries, char(10), ',') || ']') d
     JOIN ${ofLine}
   WHERE d.value ->> 'type' = b.type AND d.value ->> 'id' = b.event_id
     AND ${deltaSeq} > b.seq AND ${deltaSeq} <= coalesce(b.last_seq, 9e15)`

export const views: readonly (readonly [name: string, sql: string])[] = [
  [
    'agents',
    `SELECT a.id, r.id AS run, a.step, a.kind, a.agent, a.model, a.execution_id, a.parent_id, r.thread_id,
       CASE WHEN a.step = '' THEN r.status WHEN a.status = 'running' THEN r.status ELSE a.status END AS status,
       a.started_at, CASE WHEN a.step = '' THEN r.ended_at ELSE a.ended_at END AS ended_at,
       CASE WHEN a.step = '' THEN r.error ELSE a.error END AS error,
       (SELECT json_object('textBlocks', count(*) FILTER (WHERE e.type = 'text-end'),
          'reasoningBlocks', count(*) FILTER (WHERE e.type = 'reasoning-end'),
          'toolCalls', count(*) FILTER (WHERE e.type = 'tool-call'),
          'toolResults', count(*) FILTER (WHERE e.type = 'tool-result'),
          'errors', count(*) FILTER (WHERE e.type = 'error'))
        FROM indexed_events e
        WHERE e.agent = a.number AND e.counts = 1
          AND e.type IN ('text-end', 'reasoning-end', 'tool-call', 'tool-result', 'error')) AS stream_summary,
       (SELECT s.tool_call_id FROM indexed_steps s WHERE s.run = a.run AND s.seq = a.seq AND a.step <> '') AS tool_call_id,
       CASE WHEN a.step = '' THEN r.ended_at ELSE a.ended_at END - a.started_at AS duration,
       ${ofAgent('sum(u.input_tokens)')} AS input_tokens,
       ${ofAgent('sum(u.output_tokens)')} AS output_tokens,
       ${ofAgent('sum(u.total_tokens)')} AS total_tokens,
       ${ofAgent('CASE WHEN count(*) = count(u.cost) THEN sum(u.cost) END')} AS cost
     FROM indexed_agents a JOIN runs r ON r.number = a.run`,
  ],
  [
    'agent_stream_events',
    `SELECT a.run_id || ':' || e.seq AS id, a.id AS agent_id, e.type AS event_type, e.event_id AS event_id,
       e.tool_name AS tool_name, (SELECT ${whole} FROM ticks k WHERE k.id = e.tick) AS content, e.timestamp AS timestamp, ${isoTime('e.timestamp')} AS created_at
     FROM indexed_events e JOIN indexed_agents a ON a.number = e.agent
     UNION ALL ${deltas(inGroups)} UNION ALL ${deltas(inTail)}`,
  ],
  [
    'steps',
    `SELECT r.id AS run, s.seq, s.path AS step, a.id AS agent_id, a.agent, s.step_type, s.kind, s.attempt, s.answer,
       s.tool_call_id, s.tool_name, s.started_at, s.ended_at, s.duration, s.finish_reason, s.error, s.superseded,
       ${shared('s')} AS shared
     FROM indexed_steps s JOIN runs r ON r.number = s.run JOIN indexed_agents a ON a.number = s.agent`,
  ],
  [
    'model_calls',
    `SELECT r.id AS run, m.seq, s.path AS step, a.id AS agent_id, a.agent, m.stage, m.model,
       ${fieldOf('m', 'prompt_seq', '', whole)} AS prompt,
       s.started_at, m.first_token_at, s.ended_at, m.first_token_at - s.started_at AS time_to_first_token, s.duration,
       s.finish_reason,
       (SELECT sum(u.input_tokens) FROM indexed_usage u WHERE u.run = m.run AND u.step = m.seq) AS input_tokens,
       (SELECT sum(u.output_tokens) FROM indexed_usage u WHERE u.run = m.run AND u.step = m.seq) AS output_tokens,
       (SELECT sum(u.total_tokens) FROM indexed_usage u WHERE u.run = m.run AND u.step = m.seq) AS total_tokens,
       (SELECT CASE WHEN count(*) = count(u.cost) THEN sum(u.cost) END
        FROM indexed_usage u WHERE u.run = m.run AND u.step = m.seq) AS cost,
       s.error, r.owner, r.tenant, s.superseded, ${shared('m')} AS shared
     FROM indexed_model_calls m JOIN runs r ON r.number = m.run JOIN indexed_steps s ON s.run = m.run AND s.seq = m.seq AND s.kind = 'model-call'
       JOIN indexed_agents a ON a.number = s.agent`,
  ],
  [
    'tool_calls',
    `SELECT r.id AS run, c.seq, a.id AS agent_id, a.agent, s.path AS step, c.tool_call_id, c.tool_name,
       ${fieldOf('c', 'seq', `->> '$.input'`)} AS input,
       ${fieldOf('c', 'result_seq', `-> '$.result'`)} AS output,
       c.outcome, c.called_at, coalesce(c.started_at, c.called_at) AS started_at, c.ended_at,
       ${timeInTool} AS duration,
       (SELECT sum(q.ended_at - q.asked_at) ${asked}) AS waited, r.owner, r.tenant, c.superseded, ${shared('c')} AS shared
     FROM indexed_tool_calls c JOIN runs r ON r.number = c.run JOIN indexed_agents a ON a.number = c.agent
       LEFT JOIN indexed_steps s ON s.run = c.run AND s.seq = c.step`,
  ],
  [
    'requests',
    `SELECT r.id AS run, q.seq, q.request_id, q.kind, a.id AS agent_id, a.agent, s.path AS step, q.tool_call_id,
       q.tool_name, ${fieldOf('q', 'seq', `-> '$.input'`)} AS input, ${fieldOf('q', 'seq', `->> '$.message'`)} AS message,
       q.asked_at, q.deadline, q.ended_at, q.outcome, q.reason, q.protocol,
       ${fieldOf('q', 'response_seq', `-> '$.answer'`)} AS answer, q.superseded
     FROM indexed_requests q JOIN runs r ON r.number = q.run JOIN indexed_agents a ON a.number = q.agent
       LEFT JOIN indexed_steps s ON s.run = q.run AND s.seq = q.step`,
  ],
  [
    'usage',
    `SELECT r.id AS run, u.seq, s.path AS step, a.id AS agent_id, a.agent, u.model, u.input_tokens, u.output_tokens,
       u.total_tokens, u.reasoning_tokens, u.cached_input_tokens, u.cache_write_input_tokens, u.source, u.cost, u.timestamp,
       r.owner, r.tenant, ${shared('u')} AS shared
     FROM indexed_usage u JOIN runs r ON r.number = u.run JOIN indexed_agents a ON a.number = u.agent
       LEFT JOIN indexed_steps s ON s.run = u.run AND s.seq = u.step`,
  ],
  [
    'threads',
    `SELECT t.id, l.agent, l.status, l.id AS last_run,
       coalesce((SELECT n.title FROM thread_titles n WHERE n.thread = t.id),
         (SELECT r.title FROM runs r WHERE r.thread_id = t.id ORDER BY r.number LIMIT 1)) AS title,
       (SELECT min(r.started_at) FROM runs r WHERE r.thread_id = t.id) AS started_at, t.updated_at,
       (SELECT count(*) FROM runs r WHERE r.thread_id = t.id) AS runs,
       ${ofThread('count(*)', 'indexed_model_calls')} AS model_calls,
       ${toolCallsOfThread()} AS tool_calls,
       (SELECT count(*) FROM runs r WHERE r.thread_id = t.id AND r.error IS NOT NULL) AS errors,
       ${modelsOfThread()} AS models,
       ${toolsOfThread()} AS tools,
       ${ofThread('sum(x.input_tokens)', 'indexed_usage')} AS input_tokens,
       ${ofThread('sum(x.output_tokens)', 'indexed_usage')} AS output_tokens,
       ${ofThread('sum(x.total_tokens)', 'indexed_usage')} AS total_tokens,
       ${ofThread('CASE WHEN count(*) = count(x.cost) THEN sum(x.cost) END', 'indexed_usage')} AS cost
     FROM indexed_threads t JOIN runs l ON l.number = t.last_run`,
  ],
]
