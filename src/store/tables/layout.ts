/**
 * The tables and views over the log. They are public API: read them with any SQLite client, or with `millrace query`. All of them are derived from
 * `ticks` in the background, a moment after it, and can be built again from it.
 *
 * Times are epoch ms. `run` is a run's id, `seq` the entry that a row begins with, `step` a path such as `main/answer/2`, `agent` the name of an
 * agent. `superseded` is 1 for rows of an attempt that a crash ended and a later one replaced: it happened (and its usage was paid), but its
 * outcome does not count. `shared` is 1 for rows that a fork shares with its source: a total over runs counts it once, where it happened.
 *
 * - `threads`: one row per conversation, a chain of runs.
 * - `agents`: one row per execution: a run, the `call-agent` step or the tool call that calls another agent, a `cli-agent` step. The id is the
 *  run's id, or `<run>/<step>`. `execution_id` is the root run, `parent_id` the agent that called this one.
 * - `agent_stream_events`: one row per entry of the log. `event_id` is the id of a tool call in all of its events, or that of
 *  a text or of reasoning. `content` is the text of a delta, else the entry as JSON.
 * - `steps`: one row per attempt of a step.
 * - `model_calls`: one row per model call; `prompt` is the `prompt` part as JSON.
 * - `tool_calls`: one row per tool call. `outcome` is `completed`, `failed`, `denied`, `aborted`, `unavailable` or
 *  `handed-over`, and NULL while it runs.
 * - `requests`: questions to people and clients. `outcome` is `answered` or `closed`, and NULL while one is open.
 * - `usage`: one row per report of usage. `cost` is in USD, and NULL if the price is unknown.
 *
 * The tables `indexed_…` and `search` (`base-tables.ts`) are how these are stored and may change.
 */
import type { DatabaseSync } from 'node:sqlite'
import { baseNames, baseTables } from './base-tables.ts'
import { views } from './views.ts'

/** Increase it when a table, a view or its contents change: the tables of older databases are then rebuilt. */
const layoutVersion = 8

/**
 * Creates `index_state`, the position of the tables: they are filled up to this row of `ticks`, except for the runs of `index_queue`, which
 * continue at their own positions. `generation` grows when rows are removed, so that no process uses stale state. For the migration.
 */
export function createIndexState(db: DatabaseSync): void {
  db.exec(
    `CREATE TABLE index_state (
       layout INTEGER NOT NULL,
       tick INTEGER NOT NULL,
       generation INTEGER NOT NULL
     );
     CREATE TABLE index_queue (
       run TEXT PRIMARY KEY
     ) WITHOUT ROWID;
     INSERT INTO index_state VALUES (0, 0, 0);`,
  )
}

/** Creates the tables if they are missing or have another layout, so that they are filled anew; otherwise only the views. For a migration. */
export function layTables(db: DatabaseSync): void {
  if (hasLayout(db)) createViews(db)
  else recreateTables(db)
}

/** Empties all tables and begins again. Call it inside a transaction. */
export function recreateTables(db: DatabaseSync): void {
  for (const name of baseNames) db.exec(`DROP TABLE IF EXISTS ${name}`)
  db.exec(baseTables)
  createViews(db)
  db.exec(
    `DELETE FROM index_queue;
     INSERT INTO index_queue SELECT run FROM forks;
     UPDATE index_state SET layout = ${layoutVersion}, tick = 0, generation = generation + 1`,
  )
}

export function dropViews(db: DatabaseSync): void {
  for (const [name] of views) db.exec(`DROP VIEW IF EXISTS ${name}`)
}

function createViews(db: DatabaseSync): void {
  dropViews(db)
  for (const [name, sql] of views) db.exec(`CREATE VIEW ${name} AS ${sql}`)
}

export function hasLayout(db: DatabaseSync): boolean {
  return Number(db.prepare('SELECT layout FROM index_state').get()?.['layout']) === layoutVersion
}
