/**
 * The database schema. It is public API: you may read these tables.
 *
 * - `runs`: one row per run, a fold of its entries, up to date with the last commit. `number` grows in the order in which runs
 *   started; use it to sort runs, not the times (epoch ms), because clocks may be changed. `usage` and `error` are JSON. `requests` are
 *   the open requests as JSON, `due_at` is the earliest deadline of a suspended run.
 * - `ticks`: the log. One row has the entries of a run from one tick of the event loop: `first_seq`…`last_seq`, one JSON
 *   object per line. Deltas of one text that follow each other are one line: `deltas` are their texts, `seq` and `timestamp` those of
 *   the first, and `offsets`, if they differ, the ms from there to the time of each. `agent_stream_events` has a row for each delta.
 *   `id` grows in commit order over all runs. One row per entry would cost twice as much to write; clustering by run (WITHOUT ROWID)
 *   is a quarter slower, because each run then dirties pages full of text. `prev` is the row of the same run before it, unless that is
 *   in a group. A row without a run and without entries keeps the place of one that was the last when it was deleted.
 * - `tick_groups`: where the rows of a run are: the ids of up to 64 of them as JSON. Those in no group yet are a chain by `prev`, from
 *   `runs.last_tick`. An index by run would cost three times as much as the rows (decisions/0012). `run` is the run's number.
 * - `inbox`: messages to a run's owner; the first message of a key wins.
 * - `views`: the fold of a run's entries up to `seq`, as JSON: messages, usage, status. Kept when a run is suspended and ends,
 *   unless its text is very long. `run` is the run's number.
 * - `forks`: the first `seq` entries of a fork are those of its source; `ticks` has only the others. `at` is when it was forked, `user` by whom, as
 *   JSON.
 * - `texts`: values that many entries repeat, stored once (`shared-texts.ts`): an entry that has a field `shared` has `null` where they belong. `hash`
 *   is the SHA-256 of its JSON; a text with `is_list` is a list of messages, each as itself or by its hash, or of such lists. `text_uses` has
 *   the texts to which a run's entries refer. A text is deleted with the last run that uses it.
 * - `ledger`: sums over runs, such as the tokens of a user on a day: `kind` is `sum`, or `mark` for the last entry of a run that was counted. From
 *   `until` on a row counts no more. `audit`: who did what, the newest with the greatest `n`.
 * - `feedback`: what people say of runs: the last word of each person on each run. `thread_titles`: what they call threads. `test_results`: the last
 *   results of each test case.
 * - `dropped`: the numbers and ids of runs that are being deleted: `ticks` and `tick_groups` may still have rows of them. Until they are gone, no
 *   new run gets the number.
 *
 * `compacted_at` is when the deltas of a run were merged, 0 if there was nothing to merge. Its entries then have gaps between their
 * `seq`s; `first_seq`…`last_seq` of its rows in `ticks` have none.
 *
 * `threads`, `agents`, `agent_stream_events`, `steps`, `model_calls`, `tool_calls`, `requests` and `usage` are made from these:
 * `tables/layout.ts` describes their columns.
 */
import { DatabaseSync } from 'node:sqlite'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { openToRead } from './read-only.ts'
import { createPrivate, makePrivate } from './private-database.ts'
import { MillraceError, messageOf } from '../../part/error.ts'
import { addGroups, numberRuns, correctTimes, addRequests } from './migrate-rows.ts'
import {
  applicationId,
  apply,
  isCurrent,
  migrateFile,
  planOf,
  type MigrationOptions,
  type MigrationPlan,
  type MigrationStep,
} from './migrate.ts'
import { createIndexState } from '../tables/layout.ts'
import { feedbackTable } from './feedback.ts'
import { testResultsTable, testSource } from './test-results.ts'
import { ledgerTables } from './ledger.ts'
import { textTables } from './texts.ts'
import { threadTitlesTable } from './thread-titles.ts'

/** Migrations, oldest first: `user_version` n means that the first n are applied. Never change a released one. */
export const steps: MigrationStep[] = [
  `CREATE TABLE runs (
     id TEXT PRIMARY KEY,
     agent TEXT NOT NULL,
     thread_id TEXT NOT NULL,
     parent_run_id TEXT,
     protocol TEXT NOT NULL,
     status TEXT NOT NULL,
     started_at INTEGER NOT NULL,
     updated_at INTEGER NOT NULL,
     ended_at INTEGER,
     last_seq INTEGER NOT NULL,
     epoch INTEGER NOT NULL,
     usage TEXT,
     cost REAL,
     error TEXT,
     title TEXT,
     -- The title in lower case: SQLite's own lower() knows ASCII only.
     title_folded TEXT
   );
   CREATE INDEX runs_by_start ON runs (started_at, id);
   CREATE INDEX runs_by_agent ON runs (agent, started_at, id);
   CREATE INDEX runs_by_thread ON runs (thread_id, started_at, id);
   CREATE INDEX runs_by_status ON runs (status, started_at, id);
   CREATE TABLE ticks (
     id INTEGER PRIMARY KEY,
     run TEXT NOT NULL,
     first_seq INTEGER NOT NULL,
     last_seq INTEGER NOT NULL,
     entries TEXT NOT NULL,
     UNIQUE (run, first_seq)
   );
   CREATE TABLE inbox (
     run TEXT NOT NULL,
     n INTEGER NOT NULL,
     key TEXT NOT NULL,
     message TEXT NOT NULL,
     PRIMARY KEY (run, n),
     UNIQUE (run, key)
   ) WITHOUT ROWID;`,
  // Orders runs independently of the clock. The implicit rowid has the same order, but `VACUUM` may change it.
  // Every index ends with the number, so listing one agent, thread or status needs no sorting.
  `CREATE TABLE numbered_runs (
     number INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     agent TEXT NOT NULL,
     thread_id TEXT NOT NULL,
     parent_run_id TEXT,
     protocol TEXT NOT NULL,
     status TEXT NOT NULL,
     started_at INTEGER NOT NULL,
     updated_at INTEGER NOT NULL,
     ended_at INTEGER,
     last_seq INTEGER NOT NULL,
     epoch INTEGER NOT NULL,
     usage TEXT,
     cost REAL,
     error TEXT,
     title TEXT,
     -- The title in lower case: SQLite's own lower() knows ASCII only.
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
   CREATE INDEX runs_by_status ON runs (status);`,
  (db) => {
    db.exec(
      `ALTER TABLE runs ADD COLUMN requests TEXT;
       ALTER TABLE runs ADD COLUMN due_at INTEGER;
       CREATE INDEX runs_by_due ON runs (due_at) WHERE due_at IS NOT NULL;
       CREATE TABLE views (
         run TEXT PRIMARY KEY,
         seq INTEGER NOT NULL,
         view TEXT NOT NULL
       );
       CREATE TABLE forks (
         run TEXT PRIMARY KEY,
         source TEXT NOT NULL,
         seq INTEGER NOT NULL
       ) WITHOUT ROWID;`,
    )
    addRequests(db)
  },
  // The tables over the log have a version of their own, because they can be built again from it: see `tables/layout.ts`.
  createIndexState,
  `ALTER TABLE runs ADD COLUMN compacted_at INTEGER;
   CREATE INDEX runs_to_compact ON runs (ended_at) WHERE compacted_at IS NULL AND ended_at IS NOT NULL;
   CREATE INDEX forks_by_source ON forks (source);
   CREATE TABLE dropped (run TEXT PRIMARY KEY) WITHOUT ROWID;`,
  // The data of older runs is in their views.
  `ALTER TABLE runs ADD COLUMN previous_run_id TEXT;
   ALTER TABLE runs ADD COLUMN first_token_ms INTEGER;
   ALTER TABLE runs ADD COLUMN errors INTEGER;
   UPDATE runs SET
     previous_run_id = v.view ->> '$.previousRunId',
     first_token_ms = max(0, v.view ->> '$.firstTokenAt' - started_at),
     errors = nullif(max(v.view ->> '$.summary.errors', status = 'failed'), 0)
   FROM views v WHERE v.run = runs.id AND json_valid(v.view);`,
  addGroups,
  numberRuns,
  // Rows may have several deltas in a line. Older versions must not read them.
  '-- Only the version.',
  'ALTER TABLE runs ADD COLUMN foreign_seq INTEGER',
  // Whether a thread is in use is asked for each of its runs.
  'CREATE INDEX runs_by_thread_end ON runs (thread_id, ended_at)',
  // The generation up to which nothing is left of deleted runs: see `upkeep.ts`.
  'ALTER TABLE index_state ADD COLUMN erased INTEGER NOT NULL DEFAULT 0',
  correctTimes,
  // What grows with the number of runs is found by time. Runs of older versions belong to no one.
  `ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
   ALTER TABLE runs ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
   CREATE INDEX runs_by_start ON runs (started_at, tenant, owner);`,
  `${textTables}
   -- The runs so far have each text for themselves. Compaction finds them.
   ALTER TABLE runs ADD COLUMN shares_texts INTEGER NOT NULL DEFAULT 1;
   UPDATE runs SET shares_texts = 0;
   CREATE INDEX runs_to_share ON runs (ended_at) WHERE shares_texts = 0 AND ended_at IS NOT NULL;`,
  // What a user or a tenant may see is listed without a look at the runs of others. Runs that belong to no one cost nothing: an index is a page more
  // for each commit.
  `CREATE INDEX runs_by_owner ON runs (owner, tenant) WHERE owner <> '';
   CREATE INDEX runs_by_tenant ON runs (tenant) WHERE tenant <> '';
   ALTER TABLE forks ADD COLUMN user TEXT;`,
  ledgerTables,
  feedbackTable,
  `ALTER TABLE runs ADD COLUMN models TEXT;
   UPDATE runs SET models = nullif((SELECT json_group_array(value ->> '$.model') FROM json_each(v.view, '$.usageByModel')), '[]')
   FROM views v WHERE v.run = runs.number AND json_valid(v.view);`,
  testResultsTable,
  threadTitlesTable,
  testSource,
]

/** The `user_version` of the files that this version reads and writes. */
export const schemaVersion = steps.length

export interface OpenOptions {
  /** How long to wait for another process that has locked the file, in ms; blocks the thread. */
  busyTimeout: number
  /** The file must exist and be migrated, and is not changed. */
  readOnly?: boolean | undefined
  /** `false`: a file of an older version is refused. */
  migration?: MigrationOptions | false | undefined
}

/** Throws `old-node`: the SQLite of Node 22 opens the file, and then returns rows that we cannot read. */
export function checkNode(version: string): void {
  if (Number.parseInt(version, 10) >= 24) return
  throw new MillraceError(
    'old-node',
    `SQLite needs Node 24 or newer; this is ${version}. Leave out store, or use Node 24.`,
  )
}

/**
 * Opens or creates the database and migrates it. Throws `store-version` for a file of a newer Millrace or of another
 * program, `store-failed` for one that is damaged or cannot be opened, and the errors of {@link migrateFile}; the messages name the file
 * and the cure.
 */
export function openDatabase(path: string, { busyTimeout, readOnly = false, migration }: OpenOptions): DatabaseSync {
  checkNode(process.versions.node)
  let db: DatabaseSync | undefined
  try {
    if (readOnly) {
      db = openToRead(path, busyTimeout)
      checkOrigin(db, path)
      checkCurrent(db, path)
      return db
    }
    mkdirSync(dirname(path), { recursive: true })
    createPrivate(path)
    db = new DatabaseSync(path, { timeout: busyTimeout })
    checkOrigin(db, path)
    makePrivate(path)
    const isNew = pragma(db, 'user_version') === 0
    // A new file has no data to lose: flush it once it is complete instead of ten times before.
    if (isNew) db.exec('PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0')
    else if (migration === false) checkCurrent(db, path)
    else if (!isCurrent(db, steps)) migrateFile(db, path, steps, migration)
    // Must come before the first table: changing it later would rewrite the file.
    db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    // Deleted rows are overwritten, also on unused pages.
    db.exec('PRAGMA secure_delete = ON')
    // WAL with NORMAL: commits survive a killed process; fsync happens only at checkpoints.
    db.exec('PRAGMA journal_mode = WAL')
    // Another process may have created it meanwhile.
    if (isNew) apply(db, steps, () => undefined)
    db.exec('PRAGMA synchronous = NORMAL')
    if (isNew) db.exec('PRAGMA wal_autocheckpoint = 1000; PRAGMA wal_checkpoint')
    return db
  } catch (error) {
    db?.close()
    if (error instanceof MillraceError) throw error
    throw new MillraceError(
      'store-failed',
      `cannot open the database ${path}: ${messageOf(error)}. Unlock or restore the file, or move it away to start a new one.`,
      { cause: error },
    )
  }
}

/** The migration that opening the file would start; undefined if it is up to date. Changes nothing. Throws as {@link openDatabase} does. */
export function migrationOf(path: string, options?: MigrationOptions): MigrationPlan | undefined {
  const db = openToRead(path, 5000)
  try {
    checkOrigin(db, path)
    return isCurrent(db, steps) ? undefined : planOf(db, path, steps, options)
  } finally {
    db.close()
  }
}

function checkOrigin(db: DatabaseSync, path: string): void {
  const version = pragma(db, 'user_version')
  const tables = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n
  if (tables !== 0 && pragma(db, 'application_id') !== applicationId) {
    throw new MillraceError('store-version', `${path} is a database of another program; use another file`, {
      status: 503,
    })
  }
  if (version > steps.length) {
    throw new MillraceError(
      'store-version',
      `${path} was written by a newer Millrace (schema ${version}, this version supports ${steps.length}); ` +
        'upgrade Millrace or use another file',
      { status: 503 },
    )
  }
}

function checkCurrent(db: DatabaseSync, path: string): void {
  if (isCurrent(db, steps)) return
  const version = pragma(db, 'user_version')
  const older = `${path} was written by an older Millrace (schema ${version}, this version needs ${steps.length})`
  throw new MillraceError('store-version', `${older}; run "millrace migrate --data ${dirname(path)}" to migrate it`, {
    status: 503,
  })
}

function pragma(db: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name])
}
