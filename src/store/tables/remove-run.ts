/**
 * For whoever changes the log behind the tables (retention, compaction). Both are called inside the transaction that changes
 * `ticks`, on the store's own connection:
 *
 * - {@link removeRunRows} before a run's rows of `runs` and `ticks` are deleted;
 * - {@link refillRun} after a run's rows of `ticks` were replaced: its rows are removed now and filled again in the background,
 *   and so are those of its forks, which point to the same rows of `ticks`.
 *
 * New rows of `ticks` get higher ids than all before only while the highest row is there: keep the last row of the table, or
 * insert before you delete.
 */
import type { DatabaseSync } from 'node:sqlite'

const keyedByRun = [
  'indexed_runs',
  'indexed_events',
  'indexed_blocks',
  'indexed_steps',
  'indexed_model_calls',
  'indexed_tool_calls',
  'indexed_requests',
  'indexed_usage',
  'indexed_later',
  'indexed_texts',
  'indexed_agents',
]

/** Removes the rows of a run from all tables. */
export function removeRunRows(db: DatabaseSync, run: string): void {
  const row = db.prepare('SELECT number, thread_id FROM runs WHERE id = ?').get(run)
  if (row === undefined) return
  db.prepare('DELETE FROM search WHERE rowid IN (SELECT id FROM indexed_texts WHERE run = ?)').run(row.number!)
  for (const table of keyedByRun) db.prepare(`DELETE FROM ${table} WHERE run = ?`).run(row.number!)
  db.prepare('DELETE FROM index_queue WHERE run = ?').run(run)
  db.exec('UPDATE index_state SET generation = generation + 1')
  const thread = row.thread_id!
  const last = db
    .prepare('SELECT number, updated_at FROM runs WHERE thread_id = ? AND number <> ? ORDER BY number DESC LIMIT 1')
    .get(thread, row.number!)
  if (last === undefined) db.prepare('DELETE FROM indexed_threads WHERE id = ?').run(thread)
  else db.prepare('UPDATE indexed_threads SET last_run = ? WHERE id = ?').run(last.number!, thread)
}

/** Removes the rows of a run and of its forks, and has them filled again. */
export function refillRun(db: DatabaseSync, run: string): void {
  removeRunRows(db, run)
  db.prepare('INSERT OR IGNORE INTO index_queue (run) VALUES (?)').run(run)
  for (const fork of db.prepare('SELECT run FROM forks WHERE source = ?').all(run)) refillRun(db, String(fork.run))
}
