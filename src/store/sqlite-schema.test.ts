import { DatabaseSync } from 'node:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { response, suspendedRun } from './contract/views.contract.ts'
import { encodeEntries } from './encode.ts'
import { readAll } from './contract/tools.contract.ts'
import { entry, exampleRun, noon, startEntry } from './example-run.contract.ts'
import { checkNode, schemaVersion } from './sqlite-schema.ts'
import { sqliteStore } from './sqlite-store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-schema-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** As the first released version created it. */
const schema1 = `
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

/** As the second released version left it: the same runs, numbered. */
const schema2 = `
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

let path: string
let count = 0
beforeEach(() => {
  path = join(root, `${count++}.db`)
})

/** Three runs; the clock was set back before the second one. */
function createOldDatabase(version: number): void {
  const db = new DatabaseSync(path)
  db.exec(schema1)
  const run = db.prepare(
    `INSERT INTO runs VALUES (?, 'echo', 't', ?, 'api', 'completed', ?, ?, ?, 10, 1, ?, ?, ?, ?, ?)`,
  )
  const tick = db.prepare('INSERT INTO ticks (run, first_seq, last_seq, entries) VALUES (?, 1, 10, ?)')
  for (const [id, at] of [
    ['zebra', 2_000],
    ['ant', 1_000],
    ['mole', 1_001],
  ] as const) {
    run.run(id, 'p', at, at + 1, at + 2, '{"totalTokens":3,"source":"reported"}', 0.5, '{"code":"x"}', 'Ünd', 'ünd')
    tick.run(id, encodeEntries(id, exampleRun(id)))
  }
  db.prepare(`INSERT INTO inbox VALUES ('zebra', 1, 'stop', '{"reason":"enough"}')`).run()
  if (version === 2) db.exec(schema2)
  db.close()
}

/** Adds a run as a version before schema 3 left it. */
function addRun(id: string, status: string, batches: Entry[][]): void {
  const db = new DatabaseSync(path)
  const insert = db.prepare('INSERT INTO ticks (run, first_seq, last_seq, entries) VALUES (?, ?, ?, ?)')
  for (const batch of batches) insert.run(id, batch[0]!.seq, batch.at(-1)!.seq, encodeEntries(id, batch))
  db.prepare(
    `INSERT INTO runs (id, agent, thread_id, protocol, status, started_at, updated_at, last_seq, epoch)
     VALUES (?, 'echo', 't', 'api', ?, 1, 1, ?, 1)`,
  ).run(id, status, batches.at(-1)!.at(-1)!.seq)
  db.close()
}

test.each([1, 2])('of schema %d, a run that waits is given its open requests and its deadline', async (version) => {
  createOldDatabase(version)
  const [start, a, b, suspend] = suspendedRun('waits', noon + 500, noon + 300)
  addRun('waits', 'suspended', [
    [start!, a!],
    [b!, suspend!],
  ])
  addRun('answered', 'suspended', [[start!, a!, b!], [response(4, 'b')], [{ ...suspend!, seq: 5 }]])
  addRun('runs', 'running', [[start!, a!]])
  addRun('reset', 'suspended', [
    [start!, a!, entry(3, { type: 'step-reset', attempt: 1 }, 'main')],
    [{ ...suspend!, seq: 4 }],
  ])
  const store = sqliteStore(path)
  expect(await store.runs.due(noon + 1000)).toEqual([
    { id: 'waits', dueAt: noon + 300 },
    { id: 'answered', dueAt: noon + 500 },
  ])
  await store.log.append('runs', 1, [{ ...suspend!, seq: 3 }])
  expect((await store.runs.due(noon + 1000)).map(({ id }) => id)).toEqual(['waits', 'answered', 'runs'])
  await store.close()
})

describe.each([1, 2])('a database of schema %d', (version) => {
  test('is brought up to date in place: every run, entry and message, in the order in which the runs began', async () => {
    createOldDatabase(version)
    const store = sqliteStore(path)
    const ids = async (query = {}) => (await store.runs.list(query)).map(({ id }) => id)
    expect(await ids()).toEqual(['mole', 'ant', 'zebra'])
    expect(await ids({ threadId: 't', before: 'mole' })).toEqual(['ant', 'zebra'])
    expect(await store.runs.get('zebra')).toEqual({
      id: 'zebra',
      agent: 'echo',
      threadId: 't',
      parentRunId: 'p',
      protocol: 'api',
      status: 'completed',
      startedAt: 2_000,
      updatedAt: 2_001,
      endedAt: 2_002,
      lastSeq: 10,
      epoch: 1,
      usage: { totalTokens: 3, source: 'reported' },
      cost: 0.5,
      error: { code: 'x' },
      title: 'Ünd',
    })
    expect(await ids({ q: 'ÜND', limit: 1 })).toEqual(['mole'])
    expect(await readAll(store, 'zebra')).toEqual(exampleRun('zebra'))
    expect(await store.log.post('zebra', 'stop', 'later')).toEqual({ first: false, message: { reason: 'enough' } })
    // A run of today is the newest, although its clock was set back further.
    await store.log.append('bee', 1, [startEntry('bee', { threadId: 't' }, 5)])
    expect(await ids({ threadId: 't', limit: 2 })).toEqual(['bee', 'mole'])
    await store.close()

    const reopened = sqliteStore(path)
    expect((await reopened.runs.list()).map(({ id }) => id)).toEqual(['bee', 'mole', 'ant', 'zebra'])
    await reopened.close()
  })

  test('is left as it is by who only reads it, and the error says what to do', () => {
    createOldDatabase(version)
    expect(() => sqliteStore(path, { readOnly: true })).toThrow(
      new RegExp(`schema ${version}, this version needs ${schemaVersion}.*run "millrace serve" with it once`, 'u'),
    )
    const db = new DatabaseSync(path)
    expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: version })
    db.close()
  })

  test('that cannot be brought up to date stays as it was', () => {
    createOldDatabase(version)
    const db = new DatabaseSync(path)
    db.exec('CREATE TABLE views (x)')
    expect(() => sqliteStore(path)).toThrow(/cannot open the database/u)
    expect(db.prepare('SELECT count(*) AS n FROM runs').get()).toEqual({ n: 3 })
    expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: version })
    db.close()
  })
})

/** Three tables had the ids of runs. */
function backToSchema7(db: DatabaseSync): void {
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

/** Its rows of `ticks` were found by an index, and its tables had another layout. */
function backToSchema6(db: DatabaseSync): void {
  backToSchema7(db)
  for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").all())
    db.exec(`DROP VIEW ${String(name)}`)
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

test('of schema 7, runs are read, asked, continued and deleted, and what was being deleted is', async () => {
  const logs = new Map(['done', 'open', 'gone'].map((id) => [id, exampleRun(id, 200)]))
  const rest = logs.get('open')!.splice(150)
  const store = sqliteStore(path)
  for (const [id, entries] of logs) for (const each of entries) await store.log.append(id, 1, [each])
  await store.runs.keepView('done', 10, { known: true })
  await store.records!.settle()
  await store.close()
  const db = new DatabaseSync(path)
  backToSchema7(db)
  // The process ended after the first transaction of a deletion. The user has a view of their own.
  db.exec(`
    DELETE FROM runs WHERE id = 'gone';
    INSERT INTO dropped VALUES ('gone');
    CREATE VIEW own AS SELECT v.run, s.duration FROM views v JOIN steps s`)
  db.close()

  const opened = sqliteStore(path)
  expect(await opened.runs.view('done')).toEqual({ seq: 10, view: { known: true } })
  expect(await opened.runs.view('open')).toBeUndefined()
  for (const each of rest) await opened.log.append('open', 1, [each])
  logs.get('open')!.push(...rest)
  await opened.records!.settle()
  for (const id of ['done', 'open']) {
    expect(await readAll(opened, id)).toEqual(logs.get(id))
    const { rows } = await opened.records!.query(`SELECT count(*) FROM agent_stream_events WHERE agent_id = '${id}'`)
    expect(rows).toEqual([[logs.get(id)!.length]])
  }
  await opened.upkeep!.vacuum()
  expect(await opened.upkeep!.drop('done')).toBe(true)
  await opened.close()
  const after = new DatabaseSync(path)
  const left = (table: string) => after.prepare(`SELECT DISTINCT run FROM ${table}`).all()
  expect(after.prepare('SELECT * FROM own').all()).toEqual([])
  expect(left('ticks')).toEqual([{ run: 'open' }])
  expect([left('tick_groups').length, left('views').length, left('dropped').length]).toEqual([1, 0, 0])
  after.close()
})

test('of schema 6, runs are read, asked and continued, however many rows they have', async () => {
  const logs = new Map(
    ['long', 'short', 'open'].map((id) => [
      id,
      exampleRun(id, id === 'short' ? 1 : 200).slice(0, id === 'open' ? 150 : undefined),
    ]),
  )
  const store = sqliteStore(path)
  for (const [id, entries] of logs) for (const each of entries) await store.log.append(id, 1, [each])
  await store.close()
  const db = new DatabaseSync(path)
  backToSchema6(db)
  db.close()
  const opened = sqliteStore(path)
  const rest = exampleRun('open', 200).slice(150)
  for (const each of rest) await opened.log.append('open', 1, [each])
  logs.get('open')!.push(...rest)
  await opened.records!.settle()
  for (const [id, entries] of logs) {
    expect(await readAll(opened, id)).toEqual(entries)
    const { rows } = await opened.records!.query(`SELECT count(*) FROM agent_stream_events WHERE agent_id = '${id}'`)
    expect(rows).toEqual([[entries.length]])
  }
  await opened.close()
})

test('of schema 5, rows get what their views know', async () => {
  const store = sqliteStore(path)
  for (const id of ['seen', 'unseen', 'odd']) await store.log.append(id, 1, exampleRun(id))
  await store.runs.keepView('seen', 10, { previousRunId: 'p', firstTokenAt: noon + 40, summary: { errors: 2 } })
  await store.close()
  const db = new DatabaseSync(path)
  backToSchema6(db)
  for (const column of ['previous_run_id', 'first_token_ms', 'errors'])
    db.exec(`ALTER TABLE runs DROP COLUMN ${column}`)
  db.exec(`INSERT OR REPLACE INTO views VALUES ('odd', 10, 'no JSON'); PRAGMA user_version = 5`)
  db.close()
  const opened = sqliteStore(path)
  const told = { previousRunId: 'p', firstTokenMs: 40, errors: 2 }
  expect(await opened.runs.get('seen')).toMatchObject(told)
  for (const id of ['unseen', 'odd']) {
    const row = (await opened.runs.get(id))!
    for (const key of Object.keys(told)) expect(row).not.toHaveProperty(key)
  }
  await opened.close()
})

test('the order survives VACUUM', async () => {
  const store = sqliteStore(path)
  for (const id of ['c', 'a', 'b']) await store.log.append(id, 1, [startEntry(id)])
  await store.close()
  const db = new DatabaseSync(path)
  db.exec(`DELETE FROM runs WHERE id = 'c'; VACUUM`)
  expect(db.prepare('SELECT number, id FROM runs ORDER BY number').all()).toEqual([
    { number: 2, id: 'a' },
    { number: 3, id: 'b' },
  ])
  db.close()
})

test.each([
  ['all', ''],
  ['of a thread', `WHERE thread_id = 't'`],
  ['of an agent', `WHERE agent = 'a'`],
  ['of a status', `WHERE status = 'running'`],
  ['of a thread, the next page', `WHERE thread_id = 't' AND number < 9`],
])('a list of runs is read off an index, not sorted: %s', async (_, where) => {
  await sqliteStore(path).close()
  const db = new DatabaseSync(path)
  const plan = db.prepare(`EXPLAIN QUERY PLAN SELECT * FROM runs ${where} ORDER BY number DESC LIMIT 1`).all()
  expect(plan.map(({ detail }) => detail).join()).not.toContain('TEMP B-TREE')
  if (where !== '') expect(plan.map(({ detail }) => detail).join()).toContain('SEARCH runs USING INDEX runs_by_')
  db.close()
})

test('SQLite needs Node 24, and says so', () => {
  for (const version of ['20.20.2', '22.23.3'])
    expect(() => checkNode(version)).toThrow(/needs Node 24.*Leave out store/u)
  expect(() => checkNode(process.versions.node)).not.toThrow()
})
