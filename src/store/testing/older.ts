/** Databases in the state of older versions. */
import type { DatabaseSync } from 'node:sqlite'
import { quote } from '../sqlite/foreign.ts'
import { hasShared, restoreTexts } from '../shared-texts.ts'
import { createTexts } from '../sqlite/texts.ts'
import { views } from '../tables/views.ts'

export type OldVersion = 1 | 6 | 7 | 12

/** Converts a current database to an older schema, with its runs. */
export function makeOlder(db: DatabaseSync, version: OldVersion): void {
  db.exec('DROP TABLE ledger; DROP TABLE audit; DROP TABLE feedback; DROP TABLE test_results')
  db.exec('DROP VIEW threads; DROP TABLE thread_titles')
  withoutSharedTexts(db)
  toSchema12(db)
  if (version < 12) toSchema7(db)
  if (version < 7) toSchema6(db)
  if (version < 6) toSchema1(db)
}

/** As the first released version created it. */
export const schema1 = `
  PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA journal_mode = WAL;
  CREATE TABLE runs (
    id TEXT PRIMARY KEY, agent TEXT NOT NULL, thread_id TEXT NOT NULL, parent_run_id TEXT, protocol TEXT NOT NULL,
    status TEXT NOT NULL, started_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ended_at INTEGER,
    last_seq INTEGER NOT NULL, epoch INTEGER NOT NULL, usage TEXT, cost REAL, error TEXT, title TEXT, title_folded TEXT
  );
  CREATE INDEX runs_by_start ON runs (started_at, id);
  CREATE INDEX runs_by_agent ON runs (agent, started_at, id);
  CREATE INDEX runs_by_thread ON runs (thread_id, started_at, id);
  CREATE INDEX runs_by_status ON runs (status, started_at, id);
  CREATE TABLE ticks (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
    entries TEXT NOT NULL, UNIQUE (run, first_seq)
  );
  CREATE TABLE inbox (
    run TEXT NOT NULL, n INTEGER NOT NULL, key TEXT NOT NULL, message TEXT NOT NULL,
    PRIMARY KEY (run, n), UNIQUE (run, key)
  ) WITHOUT ROWID;
  PRAGMA application_id = ${0x4d494c4c};
  PRAGMA user_version = 1;`

/** As the second released version had it: the same runs, numbered. */
export const schema2 = `
  CREATE TABLE numbered_runs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, thread_id TEXT NOT NULL, parent_run_id TEXT,
    protocol TEXT NOT NULL, status TEXT NOT NULL, started_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    ended_at INTEGER, last_seq INTEGER NOT NULL, epoch INTEGER NOT NULL, usage TEXT, cost REAL, error TEXT, title TEXT,
    title_folded TEXT
  );
  INSERT INTO numbered_runs
    SELECT rowid, id, agent, thread_id, parent_run_id, protocol, status, started_at, updated_at, ended_at, last_seq, epoch,
      usage, cost, error, title, title_folded
    FROM runs ORDER BY rowid;
  DROP TABLE runs;
  ALTER TABLE numbered_runs RENAME TO runs;
  CREATE INDEX runs_by_agent ON runs (agent);
  CREATE INDEX runs_by_thread ON runs (thread_id);
  CREATE INDEX runs_by_status ON runs (status);
  PRAGMA user_version = 2;`

/** Each entry had its own texts. */
function withoutSharedTexts(db: DatabaseSync): void {
  const texts = createTexts(db)
  const put = db.prepare('UPDATE ticks SET entries = ? WHERE id = ?')
  for (const { id, entries } of db.prepare('SELECT id, entries FROM ticks').all()) {
    const lines = String(entries).split('\n')
    const whole = lines.map((line) =>
      hasShared(line) ? JSON.stringify(restoreTexts(JSON.parse(line), texts.find)) : line,
    )
    if (whole.some((line, i) => line !== lines[i])) put.run(whole.join('\n'), id!)
  }
  for (const [name] of views) db.exec(`DROP VIEW IF EXISTS ${name}`)
  db.exec(
    `DROP TABLE texts;
     DROP TABLE text_uses;
     DROP INDEX runs_to_share;
     ALTER TABLE runs DROP COLUMN shares_texts;`,
  )
  for (const [name, sql] of views)
    if (!sql.includes('texts t') && !sql.includes('thread_titles'))
      db.exec(`CREATE VIEW ${name} AS ${sql.replaceAll('r.owner, r.tenant, ', '')}`)
}

/** Times of forks and suspensions were not stored. */
function toSchema12(db: DatabaseSync): void {
  db.exec(`
    DROP INDEX runs_by_start;
    DROP INDEX runs_by_owner;
    DROP INDEX runs_by_tenant;
    ALTER TABLE runs DROP COLUMN owner;
    ALTER TABLE runs DROP COLUMN tenant;
    ALTER TABLE forks DROP COLUMN at;
    ALTER TABLE forks DROP COLUMN user;
    ALTER TABLE runs DROP COLUMN suspended_ms;
    ALTER TABLE runs DROP COLUMN suspended_at;
    ALTER TABLE runs DROP COLUMN models;
    PRAGMA user_version = 12`)
}

/** Three tables had the ids of runs. */
function toSchema7(db: DatabaseSync): void {
  db.exec(`
    PRAGMA legacy_alter_table = ON;
    CREATE TABLE old_views (run TEXT PRIMARY KEY, seq INTEGER NOT NULL, view TEXT NOT NULL);
    INSERT INTO old_views SELECT id, seq, view FROM views JOIN runs ON number = run;
    DROP TABLE views;
    ALTER TABLE old_views RENAME TO views;
    CREATE TABLE old_groups (
      run TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, ticks TEXT NOT NULL,
      PRIMARY KEY (run, first_seq)
    ) WITHOUT ROWID;
    INSERT INTO old_groups SELECT id, first_seq, tick_groups.last_seq, ticks FROM tick_groups JOIN runs ON number = run;
    DROP TABLE tick_groups;
    ALTER TABLE old_groups RENAME TO tick_groups;
    ALTER TABLE runs DROP COLUMN foreign_seq;
    DROP TABLE dropped;
    CREATE TABLE dropped (run TEXT PRIMARY KEY) WITHOUT ROWID;
    PRAGMA legacy_alter_table = OFF;
    DROP INDEX runs_by_thread_end;
    ALTER TABLE index_state DROP COLUMN erased;
    PRAGMA user_version = 7`)
}

/** Its rows of `ticks` had an index, and its tables had another layout. */
function toSchema6(db: DatabaseSync): void {
  for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").all())
    db.exec(`DROP VIEW ${quote(String(name))}`)
  db.exec(`
    CREATE TABLE indexed_ticks (
      id INTEGER PRIMARY KEY, run TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
      entries TEXT NOT NULL, UNIQUE (run, first_seq)
    );
    INSERT INTO indexed_ticks SELECT id, run, first_seq, last_seq, entries FROM ticks;
    DROP TABLE ticks;
    ALTER TABLE indexed_ticks RENAME TO ticks;
    DROP TABLE tick_groups;
    ALTER TABLE runs DROP COLUMN last_tick;
    UPDATE index_state SET layout = 3;
    PRAGMA user_version = 6`)
}

function toSchema1(db: DatabaseSync): void {
  const columns =
    'id, agent, thread_id, parent_run_id, protocol, status, started_at, updated_at, ended_at, last_seq, epoch, usage, cost, error, title, title_folded'
  const rows = (table: string, what: string) => db.prepare(`SELECT ${what} FROM ${table} ORDER BY 1`).all()
  const kept = {
    runs: rows('runs', `number, ${columns}`),
    ticks: rows('ticks', 'id, run, first_seq, last_seq, entries'),
  }
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'search_%'").all()
  for (const { name } of tables) db.exec(`DROP TABLE IF EXISTS ${quote(String(name))}`)
  db.exec(schema1)
  for (const { number: _, ...row } of kept.runs)
    db.prepare(`INSERT INTO runs (${columns}) VALUES (${columns.replaceAll(/\w+/gu, '?')})`).run(...Object.values(row))
  for (const row of kept.ticks) db.prepare('INSERT INTO ticks VALUES (?, ?, ?, ?, ?)').run(...Object.values(row))
}
