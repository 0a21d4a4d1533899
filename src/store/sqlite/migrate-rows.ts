/**
 * Migrations of rows. Times: a fork counts from when it was forked, the time to the first token has no reply of a person in it, and no error is
 * missing. A figure that the log does not show is NULL, never a guess.
 */
import type { DatabaseSync } from 'node:sqlite'
import { viewOf } from '../../fold/read-view.ts'
import { foldRun } from '../../fold/run-fold.ts'
import { hasEnded } from '../../part/log.ts'
import { encodeMessage, decodeEntries } from '../encode.ts'
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
  const pages = createPages(db, createBatchIndex(db), (stored) => stored)
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

/** `keeps`: with its view, if it has ended. Views of older versions are no longer read, and they have the counts for lists. */
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
  const endedView = fold !== undefined && hasEnded(row.status) ? viewOf(fold) : undefined
  return { row, view: endedView && encodeMessage(id, 'view', endedView.view) }
}

/** One run that cannot be read must not keep the others from being migrated. */
function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/*
 * Migration to schema 8: `views`, `tick_groups` and `dropped` have the number of a run instead of its id. Rows of new runs then stand
 * at the end of their table, beside those of others that begin at the same time, not on a page of their own.
 */

/** Runs that are being deleted have lost their numbers. */
const dropped = `SELECT run, row_number() OVER (ORDER BY run) + (SELECT coalesce(max(number), 0) FROM runs) AS number FROM dropped`

export function numberRuns(db: DatabaseSync): void {
  db.exec(
    `CREATE TABLE numbered_views (
       run INTEGER PRIMARY KEY,
       seq INTEGER NOT NULL,
       view TEXT NOT NULL
     );
     INSERT INTO numbered_views SELECT r.number, v.seq, v.view FROM views v JOIN runs r ON r.id = v.run ORDER BY r.number;
     DROP TABLE views;
     ALTER TABLE numbered_views RENAME TO views;
     CREATE TABLE numbered_groups (
       run INTEGER NOT NULL,
       first_seq INTEGER NOT NULL,
       last_seq INTEGER NOT NULL,
       ticks TEXT NOT NULL,
       PRIMARY KEY (run, first_seq)
     ) WITHOUT ROWID;
     INSERT INTO numbered_groups
       SELECT coalesce(r.number, d.number) AS number, g.first_seq, g.last_seq, g.ticks
       FROM tick_groups g LEFT JOIN runs r ON r.id = g.run
         LEFT JOIN (${dropped}) d ON d.run = g.run
       WHERE coalesce(r.number, d.number) IS NOT NULL ORDER BY 1, 2;
     DROP TABLE tick_groups;
     ALTER TABLE numbered_groups RENAME TO tick_groups;
     CREATE TABLE numbered_dropped (run INTEGER PRIMARY KEY, id TEXT NOT NULL);
     INSERT INTO numbered_dropped SELECT number, run FROM (${dropped});
     DROP TABLE dropped;
     ALTER TABLE numbered_dropped RENAME TO dropped;`,
  )
}

/* Migration to schema 7: puts the rows of all runs into groups, and `ticks` into a table without an index by run. */

/** Rows that are copied between two reports of progress. */
const mostRows = 10_000

export function addGroups(db: DatabaseSync, progress: (share: number) => void): void {
  db.exec(
    `CREATE TABLE tick_groups (
       run TEXT NOT NULL,
       first_seq INTEGER NOT NULL,
       last_seq INTEGER NOT NULL,
       ticks TEXT NOT NULL,
       PRIMARY KEY (run, first_seq)
     ) WITHOUT ROWID;
     INSERT INTO tick_groups
       SELECT run, min(first_seq), max(last_seq), json_group_array(id ORDER BY first_seq)
       FROM (SELECT id, run, first_seq, last_seq, (row_number() OVER (PARTITION BY run ORDER BY first_seq) - 1) / 64 AS nth FROM ticks)
       GROUP BY run, nth;
     CREATE TABLE chained_ticks (
       id INTEGER PRIMARY KEY,
       run TEXT NOT NULL,
       prev INTEGER,
       first_seq INTEGER NOT NULL,
       last_seq INTEGER NOT NULL,
       entries TEXT NOT NULL
     );
`,
  )
  const last = Number(db.prepare('SELECT max(id) AS id FROM ticks').get()?.['id'] ?? 0)
  const copy = db.prepare(
    `INSERT INTO chained_ticks SELECT id, run, NULL, first_seq, last_seq, entries FROM ticks
     WHERE id > ? AND id <= ? ORDER BY id`,
  )
  for (let id = 0; id < last; id += mostRows) {
    copy.run(id, id + mostRows)
    progress(Math.min(0.9, id / last))
  }
  db.exec(
    `DROP TABLE ticks;
     ALTER TABLE chained_ticks RENAME TO ticks;
     ALTER TABLE runs ADD COLUMN last_tick INTEGER;`,
  )
}

/** Migration to schema 3: gives the runs that are not over the open requests that their logs have. */
interface Request {
  id: string
  step: string
  deadline: number
}

export function addRequests(db: DatabaseSync): void {
  const runs = db.prepare(`SELECT id, status FROM runs WHERE status IN ('running', 'suspended')`).all()
  const batches = db.prepare(
    `SELECT entries FROM ticks WHERE run = ? AND (instr(entries, '"type":"request"') OR instr(entries, '"type":"response"')
       OR instr(entries, '"type":"step-reset"')) ORDER BY first_seq`,
  )
  const update = db.prepare('UPDATE runs SET requests = ?, due_at = ? WHERE id = ?')
  for (const { id, status } of runs) {
    const open = new Map<string, Request>()
    for (const { entries } of batches.iterate(id!)) {
      for (const entry of decodeEntries([String(entries)])) {
        if (entry.type === 'request') {
          open.set(entry.requestId, { id: entry.requestId, step: entry.step, deadline: entry.deadline })
        } else if (entry.type === 'response') open.delete(entry.requestId)
        else if (entry.type === 'step-reset') {
          for (const { id: request, step } of open.values()) {
            if (step === entry.step || step.startsWith(`${entry.step}/`)) open.delete(request)
          }
        }
      }
    }
    const requests = [...open.values()]
    if (requests.length === 0) continue
    const due = status === 'suspended' ? Math.min(...requests.map(({ deadline }) => deadline)) : null
    update.run(JSON.stringify(requests), due, id!)
  }
}
