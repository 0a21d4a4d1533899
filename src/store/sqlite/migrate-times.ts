/**
 * Migration: corrects what rows say of times, and fills in what older versions did not note. A fork counts from when it was forked, no time to the
 * first token has an answer of a person in it, and no error is missing. What cannot be read off the log is NULL, never a guess.
 */
import type { DatabaseSync } from 'node:sqlite'
import { viewOf } from '../../fold/read-view.ts'
import { foldRun } from '../../fold/run-fold.ts'
import { hasEnded } from '../../part/log.ts'
import { encodeMessage } from '../encode.ts'
import { foldRow, type StoredRow } from '../run-row.ts'
import { createBatchIndex } from './batch-index.ts'
import { createPages, type SqlitePages } from './pages.ts'
import { createViewTable } from './views.ts'

/** From this schema on rows have these figures; those of an older one were taken from views. */
const firstWithFigures = 6

export function correctTimes(db: DatabaseSync): void {
  db.exec(
    `ALTER TABLE forks ADD COLUMN at INTEGER;
     ALTER TABLE runs ADD COLUMN suspended_ms INTEGER;
     ALTER TABLE runs ADD COLUMN suspended_at INTEGER;
     -- They say that a fork began when its source did. Who needs one folds the log again.
     DELETE FROM views WHERE run IN (SELECT r.number FROM forks f JOIN runs r ON r.id = f.run);`,
  )
  const isOld = Number(db.prepare('PRAGMA user_version').get()?.user_version) < firstWithFigures
  const pages = createPages(db, createBatchIndex(db))
  const setFork = db.prepare('UPDATE forks SET at = ? WHERE run = ?')
  const forks = db.prepare('SELECT f.run, f.seq, r.updated_at FROM forks f JOIN runs r ON r.id = f.run')
  for (const { run, seq, updated_at: last } of forks.all()) {
    const id = String(run)
    setFork.run(unlessDamaged(() => pages.read(id, Number(seq), 1)[0]?.timestamp) ?? Number(last), id)
  }
  db.exec('UPDATE runs SET started_at = f.at FROM forks f WHERE f.run = runs.id')
  if (hasTable(db, 'indexed_agents')) {
    db.exec(`UPDATE indexed_agents SET started_at = f.at FROM forks f WHERE f.run = run_id AND step = ''`)
  }
  const update = db.prepare(
    `UPDATE runs SET first_token_ms = ?, suspended_ms = ?, suspended_at = ?, errors = ?,
       previous_run_id = coalesce(previous_run_id, ?), error = coalesce(error, ?) WHERE id = ?`,
  )
  const forget = db.prepare('UPDATE runs SET first_token_ms = NULL WHERE id = ?')
  const views = createViewTable(db)
  const old = new Set(runsTo(db, isOld ? Infinity : lastOld(db)))
  for (const id of isOld ? old : new Set([...old, ...forksAndSuspended(db)])) {
    const read = unlessDamaged(() => readRun(pages, id, old.has(id)))
    if (read === undefined) {
      forget.run(id)
      continue
    }
    const { row, view } = read
    const { firstTokenMs, suspendedMs, suspendedAt, errors, previousRunId, error } = row
    const times = [firstTokenMs ?? null, suspendedMs ?? null, suspendedAt ?? null]
    update.run(...times, errors ?? null, previousRunId ?? null, error === undefined ? null : JSON.stringify(error), id)
    if (view !== undefined) views.keep(id, row.lastSeq, view)
  }
}

function runsTo(db: DatabaseSync, last: number): string[] {
  return db
    .prepare('SELECT id FROM runs WHERE number <= ?')
    .all(last)
    .map(({ id }) => String(id))
}

/**
 * The number of the last run that a version with an older schema has recorded: an earlier migration took its figures from such views. A view may have
 * been made anew since, so all runs before it count as well.
 */
function lastOld(db: DatabaseSync): number {
  const found = db
    .prepare(`SELECT max(run) AS last FROM views WHERE json_valid(view) AND coalesce(view ->> '$.version', 0) < 2`)
    .get()
  return Number(found?.last ?? 0)
}

/** Those whose figures an older version got wrong: of all others nothing is read. */
function forksAndSuspended(db: DatabaseSync): string[] {
  const state = db.prepare('SELECT tick FROM index_state').get()
  const isIndexed = hasTable(db, 'indexed_events')
  const indexed = isIndexed
    ? `UNION SELECT r.id FROM indexed_events e JOIN runs r ON r.number = e.run WHERE e.type = 'suspend'`
    : ''
  return db
    .prepare(
      `SELECT run AS id FROM forks ${indexed}
       UNION SELECT t.run FROM ticks t JOIN runs r ON r.id = t.run
         WHERE t.id > ? AND instr(t.entries, '"type":"suspend"') > 0`,
    )
    .all(isIndexed ? Number(state?.tick ?? 0) : 0)
    .map(({ id }) => String(id))
}

function hasTable(db: DatabaseSync, name: string): boolean {
  return db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?`).get(name) !== undefined
}

/** `keeps`: with its view, if it has ended. Views of older versions are not read any more, and what a list counts stands in them. */
function readRun(
  pages: SqlitePages,
  id: string,
  keeps: boolean,
): { row: StoredRow; view: string | undefined } | undefined {
  let row: StoredRow | undefined
  const fold = keeps ? foldRun() : undefined
  for (let after = 0; ; after = row.lastSeq) {
    const entries = pages.read(id, after)
    if (entries.length === 0) break
    row = foldRow(row, id, row?.epoch ?? 1, entries)
    if (fold !== undefined) for (const entry of entries) fold.apply(entry)
  }
  if (row === undefined) return undefined
  const kept = fold !== undefined && hasEnded(row.status) ? viewOf(fold) : undefined
  return { row, view: kept && encodeMessage(id, 'view', kept.view) }
}

/** One run that cannot be read must not keep the others from being migrated. */
function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
