/**
 * The statements that fill the tables. None has RETURNING, and only those of a reset change several rows: either begins a statement
 * transaction, for which FTS5 writes what it has gathered, each text as a segment of its own.
 */
import type { DatabaseSync } from 'node:sqlite'

export type Statements = ReturnType<typeof prepareStatements>

/** The steps of an attempt and below. The range is that of all paths that begin with `path/`. */
const below = `run = ?1 AND seq BETWEEN ?2 AND ?3 AND (path = ?4 OR (path > ?4 || '/' AND path < ?4 || '0'))`

export function prepareStatements(db: DatabaseSync) {
  return {
    runNumber: db.prepare('SELECT number, thread_id FROM runs WHERE id = ?'),
    filled: db.prepare('SELECT seq FROM indexed_runs WHERE run = ?', { returnArrays: true }),
    setFilled: db.prepare(
      'INSERT INTO indexed_runs (run, seq) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET seq = excluded.seq',
    ),
    setThread: db.prepare(
      `INSERT INTO indexed_threads (id, last_run, updated_at) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET last_run = max(last_run, excluded.last_run),
         updated_at = max(updated_at, excluded.updated_at)`,
    ),
    agentOf: db.prepare('SELECT number, id, execution_id FROM indexed_agents WHERE id = ?'),
    agentBy: db.prepare('SELECT number, id, execution_id FROM indexed_agents WHERE number = ?'),
    addAgent: db.prepare(
      `INSERT INTO indexed_agents (id, run, run_id, seq, step, kind, agent, execution_id, parent_id, status, started_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', ?)`,
    ),
    restartAgent: db.prepare(
      `UPDATE indexed_agents SET status = 'running', ended_at = NULL, error = NULL WHERE number = ?`,
    ),
    setModel: db.prepare('UPDATE indexed_agents SET model = ? WHERE number = ?'),
    endAgent: db.prepare('UPDATE indexed_agents SET status = ?, ended_at = ?, error = ? WHERE number = ?'),
    addEvent: db.prepare('INSERT INTO indexed_events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    addBlock: db.prepare('INSERT INTO indexed_blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)'),
    lastBlock: db.prepare('SELECT max(seq) AS seq FROM indexed_blocks WHERE type = ? AND event_id = ? AND run = ?'),
    endBlock: db.prepare('UPDATE indexed_blocks SET last_seq = coalesce(last_seq, ?) WHERE run = ? AND seq = ?'),
    /** Blocks that are open at the end of what a fork shares: their other deltas are the source's. */
    cutBlocks: db.prepare('UPDATE indexed_blocks SET last_seq = ? WHERE run = ? AND last_seq IS NULL'),
    stepAt: db.prepare(
      'SELECT seq, agent, kind FROM indexed_steps WHERE run = ? AND path = ? ORDER BY seq DESC LIMIT 1',
    ),
    addStep: db.prepare(
      `INSERT INTO indexed_steps (run, seq, path, agent, step_type, kind, attempt, answer, tool_call_id, tool_name, started_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    endStep: db.prepare(
      'UPDATE indexed_steps SET ended_at = ?, duration = ?, finish_reason = ?, error = ? WHERE run = ? AND seq = ?',
    ),
    addModelCall: db.prepare('INSERT INTO indexed_model_calls (run, seq) VALUES (?, ?)'),
    setPrompt: db.prepare(
      'UPDATE indexed_model_calls SET stage = ?, model = ?, prompt_seq = ? WHERE run = ? AND seq = ?',
    ),
    setCallModel: db.prepare('UPDATE indexed_model_calls SET model = ? WHERE run = ? AND seq = ?'),
    firstToken: db.prepare('UPDATE indexed_model_calls SET first_token_at = ? WHERE run = ? AND seq = ?'),
    waiting: db.prepare(
      `SELECT s.path, s.seq FROM indexed_steps s JOIN indexed_model_calls m ON m.run = s.run AND m.seq = s.seq
       WHERE s.run = ? AND s.ended_at IS NULL AND s.superseded = 0 AND m.first_token_at IS NULL`,
    ),
    addToolCall: db.prepare(
      `INSERT INTO indexed_tool_calls (run, seq, agent, loop, step, tool_call_id, tool_name, called_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    openToolCall: db.prepare(
      `SELECT max(seq) AS seq FROM indexed_tool_calls
       WHERE run = ? AND tool_call_id = ? AND loop = ? AND result_seq IS NULL AND superseded = 0`,
    ),
    startToolCall: db.prepare('UPDATE indexed_tool_calls SET step = ?, started_at = ? WHERE run = ? AND seq = ?'),
    endToolCall: db.prepare(
      'UPDATE indexed_tool_calls SET ended_at = ?, outcome = ?, result_seq = ? WHERE run = ? AND seq = ?',
    ),
    addRequest: db.prepare(
      `INSERT INTO indexed_requests (run, seq, agent, step, request_id, kind, tool_call_id, tool_name, asked_at, deadline)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    endRequest: db.prepare(
      `UPDATE indexed_requests SET ended_at = ?, outcome = ?, reason = ?, protocol = ?, response_seq = ?
       WHERE run = ? AND request_id = ? AND outcome IS NULL AND superseded = 0`,
    ),
    addUsage: db.prepare('INSERT INTO indexed_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    stepsBelow: db.prepare(`SELECT seq FROM indexed_steps WHERE ${below}`),
    supersedeSteps: db.prepare(`UPDATE indexed_steps SET superseded = 1 WHERE ${below}`),
    supersedeEvents: db.prepare(
      'UPDATE indexed_events SET counts = 0 WHERE run = ? AND seq BETWEEN ? AND ? AND step = ?',
    ),
    supersedeBlocks: db.prepare(
      `UPDATE indexed_blocks SET last_seq = ?4 WHERE run = ?1 AND last_seq IS NULL AND seq IN
         (SELECT seq FROM indexed_events WHERE run = ?1 AND seq BETWEEN ?2 AND ?4 AND step = ?3)`,
    ),
    supersedeCalls: db.prepare(
      `UPDATE indexed_tool_calls SET superseded = 1 WHERE run = ?1 AND seq IN
         (SELECT seq FROM indexed_events WHERE run = ?1 AND seq BETWEEN ?2 AND ?4 AND step = ?3 AND type = 'tool-call')`,
    ),
    supersedeRequests: db.prepare(
      'UPDATE indexed_requests SET superseded = 1 WHERE run = ? AND seq BETWEEN ? AND ? AND step = ?',
    ),
  }
}
