/**
 * The statements that fill the tables. None has RETURNING, and only `cutBlocks` changes several rows: either starts a statement transaction, for
 * which FTS5 writes its pending data, each text as a separate segment. Each statement finds its row by an index, so that an entry costs the same in
 * a run of any length (`plans.test.ts`). `INDEXED BY` where SQLite would scan the run from its end.
 */
import type { DatabaseSync } from 'node:sqlite'
import { summed } from './base-tables.ts'

export type Statements = ReturnType<typeof prepareStatements>

export function prepareStatements(db: DatabaseSync) {
  return {
    runNumber: db.prepare('SELECT number, thread_id, started_at FROM runs WHERE id = ?'),
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
    failAgent: db.prepare('UPDATE indexed_agents SET error = ? WHERE number = ?'),
    endAgent: db.prepare(
      `UPDATE indexed_agents SET status = iif(error IS NULL, ?, 'failed'), ended_at = ?, error = coalesce(?, error)
       WHERE number = ?`,
    ),
    addEvent: db.prepare('INSERT INTO indexed_events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    addBlock: db.prepare('INSERT INTO indexed_blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)'),
    lastBlock: db.prepare('SELECT max(seq) AS seq FROM indexed_blocks WHERE type = ? AND event_id = ? AND run = ?'),
    endBlock: db.prepare('UPDATE indexed_blocks SET last_seq = coalesce(last_seq, ?) WHERE run = ? AND seq = ?'),
    /** Blocks that are open at the end of the shared part of a fork: their other deltas are the source's. */
    cutBlocks: db.prepare(
      'UPDATE indexed_blocks INDEXED BY indexed_blocks_open SET last_seq = ? WHERE run = ? AND last_seq IS NULL',
    ),
    stepAt: db.prepare(
      `SELECT seq, agent, kind, started_at FROM indexed_steps INDEXED BY indexed_steps_by_path
       WHERE run = ? AND path = ? ORDER BY seq DESC LIMIT 1`,
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
    firstToken: db.prepare(
      'UPDATE indexed_model_calls SET first_token_at = ?, waits = 0 WHERE run = ? AND seq = ? AND waits = 1',
    ),
    stopWaiting: db.prepare('UPDATE indexed_model_calls SET waits = 0 WHERE run = ? AND seq = ? AND waits = 1'),
    waiting: db.prepare(
      'SELECT count(*) AS calls FROM indexed_model_calls INDEXED BY indexed_model_calls_waiting WHERE run = ? AND waits = 1',
    ),
    addToolCall: db.prepare(
      `INSERT INTO indexed_tool_calls (run, seq, agent, loop, step, tool_call_id, tool_name, called_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    openToolCall: db.prepare(
      `SELECT max(seq) AS seq FROM indexed_tool_calls INDEXED BY indexed_tool_calls_open
       WHERE run = ? AND tool_call_id = ? AND loop = ? AND result_seq IS NULL AND superseded = 0`,
    ),
    calledAt: db.prepare('SELECT called_at FROM indexed_tool_calls WHERE run = ? AND seq = ?'),
    startToolCall: db.prepare('UPDATE indexed_tool_calls SET step = ?, started_at = ? WHERE run = ? AND seq = ?'),
    endToolCall: db.prepare(
      'UPDATE indexed_tool_calls SET ended_at = ?, outcome = ?, result_seq = ? WHERE run = ? AND seq = ?',
    ),
    addRequest: db.prepare(
      `INSERT INTO indexed_requests (run, seq, agent, step, request_id, kind, tool_call_id, tool_name, asked_at, deadline)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    openRequest: db.prepare(
      `SELECT max(seq) AS seq FROM indexed_requests INDEXED BY indexed_requests_open
       WHERE run = ? AND request_id = ? AND outcome IS NULL AND superseded = 0`,
    ),
    endRequest: db.prepare(
      `UPDATE indexed_requests SET ended_at = ?, outcome = ?, reason = ?, protocol = ?, response_seq = ?
       WHERE run = ? AND seq = ?`,
    ),
    addUsage: db.prepare('INSERT INTO indexed_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    /** The rows that a reset discards, one at a time. Each statement finds the next one: discarded rows are in none of their indexes. */
    stepBelow: db.prepare(
      `SELECT seq, path FROM indexed_steps INDEXED BY indexed_steps_that_count
       WHERE run = ? AND path >= ? AND path < ? AND superseded = 0 AND seq > ? ORDER BY path LIMIT 1`,
    ),
    eventOf: db.prepare(
      `SELECT seq, type FROM indexed_events INDEXED BY indexed_events_by_step
       WHERE run = ? AND step = ? AND counts >= 0 AND ${summed} LIMIT 1`,
    ),
    openBlockOf: db.prepare(
      `SELECT seq FROM indexed_blocks INDEXED BY indexed_blocks_open
       WHERE run = ? AND step = ? AND last_seq IS NULL LIMIT 1`,
    ),
    requestOf: db.prepare(
      `SELECT seq FROM indexed_requests INDEXED BY indexed_requests_by_step
       WHERE run = ? AND step = ? AND superseded = 0 LIMIT 1`,
    ),
    takeBackStep: db.prepare('UPDATE indexed_steps SET superseded = 1 WHERE run = ? AND seq = ?'),
    takeBackEvent: db.prepare('UPDATE indexed_events SET counts = -1 WHERE run = ? AND seq = ?'),
    takeBackCall: db.prepare('UPDATE indexed_tool_calls SET superseded = 1 WHERE run = ? AND seq = ?'),
    takeBackRequest: db.prepare('UPDATE indexed_requests SET superseded = 1 WHERE run = ? AND seq = ?'),
  }
}
