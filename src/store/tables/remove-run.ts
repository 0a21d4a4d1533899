/**
 * For code that changes the log behind the tables (retention, compaction). All are called inside the transaction that changes `ticks`, on the
 * store's own connection:
 *
 * - {@link createTrim} removes rows of a run that is to be deleted, some at a time;
 * - {@link removeRunRows} removes the rest, before its rows of `runs` and `ticks` are deleted;
 * - {@link refillRun} has them filled again, for a run that stays;
 * - `move-rows.ts` is for rows of `ticks` that became one.
 *
 * New rows of `ticks` get higher ids than all before only while the highest row is there: `sqlite/batch-index.ts` keeps it.
 */
import type { DatabaseSync } from 'node:sqlite'
import { baseNames } from './base-tables.ts'
import { markHours, markHoursOf } from './hours.ts'
import { titleRow } from './index-terms.ts'

const ofAllRuns: ReadonlySet<string> = new Set([
  'indexed_threads',
  'indexed_delta_types',
  'indexed_hours',
  'indexed_hour_facts',
  'search',
])
const keyedByRun = baseNames.filter((name) => !ofAllRuns.has(name))

/** Tables with many rows per long run. */
const bulky = keyedByRun.filter((name) => !['indexed_runs', 'indexed_later', 'indexed_texts'].includes(name))
/** Number of rows that are removed at once. */
const mostRows = 200

/**
 * Returns a function that removes some rows of an ended run, and returns whether more are left. From the first call on the run is not filled: it is
 * neither among the filled ones nor queued.
 */
export function createTrim(db: DatabaseSync): (run: string) => boolean {
  const number = db.prepare('SELECT number FROM runs WHERE id = ?')
  const dequeue = db.prepare('DELETE FROM index_queue WHERE run = ?')
  const withhold = ['indexed_runs', 'indexed_later'].map((table) => db.prepare(`DELETE FROM ${table} WHERE run = ?`))
  const texts = db.prepare('SELECT id FROM indexed_texts WHERE id > ? AND id < ? LIMIT 20')
  const removeText = db.prepare('DELETE FROM search WHERE rowid = ?')
  const forgetText = db.prepare('DELETE FROM indexed_texts WHERE id = ?')
  const some = bulky.map((table) =>
    db.prepare(
      `DELETE FROM ${table} WHERE run = ?1 AND seq IN (SELECT seq FROM ${table} WHERE run = ?1 LIMIT ${mostRows})`,
    ),
  )
  /** When the rows of a run were that is being removed: nobody must keep an hour that has only some of them. */
  const times = new Map<string, number[]>()
  return (run) => {
    const row = number.get(run)?.number
    if (row === undefined) return false
    const known = times.get(run)
    if (known === undefined) times.set(run, markHoursOf(db, Number(row)))
    else markHours(db, known)
    for (const each of withhold) each.run(row)
    dequeue.run(run)
    const found = texts.all(titleRow(Number(row)), titleRow(Number(row) + 1))
    for (const { id } of found) {
      removeText.run(id!)
      forgetText.run(id!)
    }
    if (found.length > 0) return true
    if (some.some((remove) => Number(remove.run(row).changes) >= mostRows)) return true
    times.delete(run)
    return false
  }
}

/** Removes the rows of a run from all tables. */
export function removeRunRows(db: DatabaseSync, run: string): void {
  const row = db.prepare('SELECT number, thread_id FROM runs WHERE id = ?').get(run)
  if (row === undefined) return
  markHoursOf(db, Number(row.number))
  db.prepare('DELETE FROM search WHERE rowid = ?').run(titleRow(Number(row.number)))
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

/** Removes the rows of a run, and queues it for filling in the background. */
export function refillRun(db: DatabaseSync, run: string): void {
  removeRunRows(db, run)
  db.prepare('INSERT OR IGNORE INTO index_queue (run) VALUES (?)').run(run)
}

/** Queues some runs whose removal was interrupted by a crash. Returns whether there were any. */
export function refillWithheld(db: DatabaseSync): boolean {
  const withheld = db
    .prepare(
      `SELECT id FROM runs WHERE ended_at IS NOT NULL AND number NOT IN (SELECT run FROM indexed_runs)
         AND id NOT IN (SELECT run FROM index_queue) LIMIT 20`,
    )
    .all()
  for (const { id } of withheld) refillRun(db, String(id))
  return withheld.length > 0
}
