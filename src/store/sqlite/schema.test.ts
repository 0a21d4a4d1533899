import { DatabaseSync } from 'node:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { keptVersion } from '../../fold/kept-run.ts'
import type { Entry } from '../../part/entry.ts'
import { response, suspendedRun } from '../contract/views.contract.ts'
import { encodeEntries } from '../encode.ts'
import { readAll } from '../contract/tools.contract.ts'
import { entry, exampleRun, noon, startEntry } from '../example-run.contract.ts'
import { checkNode, schemaVersion, steps } from './schema.ts'
import { makeOlder, schema1, schema2 } from '../testing/older.ts'
import { sqliteStore } from './store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-schema-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

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
  test('is migrated in place: every run, entry and message, in the order in which the runs began', async () => {
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
      // Read off its log.
      firstTokenMs: expect.any(Number),
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

  test('stays unchanged for readers, and the error has the cure', () => {
    createOldDatabase(version)
    expect(() => sqliteStore(path, { readOnly: true })).toThrow(
      new RegExp(`schema ${version}, this version needs ${schemaVersion}.*run "millrace migrate --data `, 'u'),
    )
    const db = new DatabaseSync(path)
    expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: version })
    db.close()
  })

  test('that cannot be brought up to date stays as it was', () => {
    createOldDatabase(version)
    const before = new DatabaseSync(path)
    before.exec('CREATE TABLE views (x)')
    before.close()
    expect(() => sqliteStore(path)).toThrow(/cannot open the database/u)
    const db = new DatabaseSync(path)
    expect(db.prepare('SELECT count(*) AS n FROM runs').get()).toEqual({ n: 3 })
    expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: version })
    db.close()
  })
})

test('of schema 7: runs can be read, queried, continued and deleted, and started deletions are completed', async () => {
  const logs = new Map(['done', 'open', 'gone'].map((id) => [id, exampleRun(id, 200)]))
  const rest = logs.get('open')!.splice(150)
  const store = sqliteStore(path)
  for (const [id, entries] of logs) for (const each of entries) await store.log.append(id, 1, [each])
  await store.runs.keepView('done', 10, { version: 2, known: true })
  await store.records!.settle()
  await store.close()
  const db = new DatabaseSync(path)
  makeOlder(db, 7)
  // The process ended after the first transaction of a deletion. The user has a view of their own.
  db.exec(`
    DELETE FROM runs WHERE id = 'gone';
    INSERT INTO dropped VALUES ('gone');
    CREATE VIEW own AS SELECT v.run, s.duration FROM views v JOIN steps s`)
  db.close()

  const opened = sqliteStore(path)
  expect(await opened.runs.view('done')).toEqual({ seq: 10, view: { version: 2, known: true } })
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
  makeOlder(db, 6)
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

test('of schema 5: rows and views get the data of the logs, not of older views; unreadable data is absent', async () => {
  const store = sqliteStore(path)
  const failed = entry(11, {
    type: 'run-end',
    outcome: 'failed',
    usage: {},
    error: { code: 'boom', message: 'It broke.' },
  } as never)
  for (const id of ['seen', 'unseen', 'odd', 'damaged']) {
    const [start, ...rest] = exampleRun(id).slice(0, -1)
    const error = entry(10, { type: 'error', error: { code: 'boom', message: 'It broke.' } })
    await store.log.append(id, 1, [{ ...start!, previousRunId: 'p' } as Entry, ...rest, error, failed])
  }
  await store.runs.keepView('seen', 11, { version: 1, firstTokenAt: noon + 40, summary: { errors: 7 }, messages: [] })
  await store.close()
  const db = new DatabaseSync(path)
  makeOlder(db, 6)
  for (const column of ['previous_run_id', 'first_token_ms', 'errors'])
    db.exec(`ALTER TABLE runs DROP COLUMN ${column}`)
  db.exec(`
    INSERT OR REPLACE INTO views VALUES ('odd', 11, 'no JSON');
    INSERT OR REPLACE INTO views VALUES ('damaged', 11, '{"firstTokenAt":${noon + 40}}');
    UPDATE ticks SET entries = 'no JSON' WHERE run = 'damaged';
    UPDATE runs SET error = NULL;
    PRAGMA user_version = 5`)
  db.close()
  const opened = sqliteStore(path)
  for (const id of ['seen', 'unseen', 'odd']) {
    const told = { previousRunId: 'p', firstTokenMs: 4, errors: 1, error: { code: 'boom' } }
    expect(await opened.runs.get(id), id).toMatchObject(told)
    const { view } = (await opened.runs.view(id))!
    expect(view).toMatchObject({ version: keptVersion, asked: [], messages: [{ role: 'assistant' }] })
  }
  const row = (await opened.runs.get('damaged'))!
  for (const key of ['firstTokenMs', 'previousRunId']) expect(row).not.toHaveProperty(key)
  await opened.close()
})

test('of schema 12, forks count from when they were forked, and no first token from before a person answered', async () => {
  const store = sqliteStore(path)
  const says = (seq: number, ms: number) => [
    entry(seq, { type: 'text-start', id: `${seq}` }, 'main/a/1', noon + ms),
    entry(seq + 1, { type: 'text-delta', id: `${seq}`, delta: 'a' }, 'main/a/1', noon + ms),
  ]
  const answers = { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } as const
  const begin = (id: string) => [startEntry(id), entry(2, answers, 'main/a')]
  const suspend = (seq: number) => entry(seq, { type: 'suspend', requests: [] })
  const resume = (seq: number, ms: number) => entry(seq, { type: 'resume', protocol: 'api' }, '', noon + ms)
  await store.log.append('plain', 1, [...begin('plain'), ...says(3, 9)])
  await store.log.append('asked', 1, [...begin('asked'), suspend(3), resume(4, 144_003), ...says(5, 144_007)])
  await store.log.append('waits', 1, [...begin('waits'), suspend(3)])
  for (const [id, at] of [
    ['fork', 4],
    ['idle', 2],
  ] as const)
    await store.log.fork('plain', at, id)
  await store.log.append('fork', 1, [entry(5, { type: 'warning', code: 'forked', message: '' }, '', noon + 20_000)])
  await store.log.append('fork', 1, says(6, 20_093))
  await store.runs.keepView('fork', 7, { version: 2, startedAt: noon })
  await store.records!.settle()
  await store.close()
  const db = new DatabaseSync(path)
  makeOlder(db, 12)
  // As the version before counted; and one of these is not in the tables yet.
  db.exec(`UPDATE runs SET first_token_ms = 144007 WHERE id = 'asked'; UPDATE runs SET first_token_ms = 20000 WHERE id = 'fork';
    UPDATE runs SET first_token_ms = 7 WHERE id = 'plain'; UPDATE runs SET started_at = ${noon} WHERE id = 'fork';
    UPDATE index_state SET tick = (SELECT max(id) FROM ticks WHERE run = 'plain')`)
  db.close()
  const opened = sqliteStore(path)
  const times = async (id: string) => {
    const { startedAt, firstTokenMs } = (await opened.runs.get(id))!
    return [startedAt - noon, firstTokenMs]
  }
  expect(await times('asked')).toEqual([0, 7])
  expect(await times('fork')).toEqual([20_000, 93])
  // It has nothing of its own yet.
  expect(await times('idle')).toEqual([2, undefined])
  // Of others nothing is read.
  expect(await times('plain')).toEqual([0, 7])
  expect(await opened.runs.view('fork')).toBeUndefined()
  expect((await readAll(opened, 'fork'))[0]).toMatchObject({
    forkedFrom: { runId: 'plain', seq: 4, at: noon + 20_000 },
  })
  const { rows } = await opened.records!.query("SELECT started_at FROM agents WHERE id = 'fork'")
  expect(rows).toEqual([[noon + 20_000]])
  // One that waits knows since when.
  await opened.log.append('waits', 1, [resume(4, 50_003), ...says(5, 50_004)])
  expect(await times('waits')).toEqual([0, 4])
  await opened.close()
})

test('of an older version, runs and forks belong to no one and keep their threads; new ones belong to users', async () => {
  const store = sqliteStore(path)
  await store.log.append('old', 1, exampleRun('old'))
  await store.log.fork('old', 4, 'fork')
  await store.close()
  const db = new DatabaseSync(path)
  makeOlder(db, 12)
  db.close()
  const user = { id: 'ann', tenant: 'acme' }
  const opened = sqliteStore(path)
  await opened.log.append('new', 1, [startEntry('new', { user })])
  await opened.log.fork('old', 4, 'again', undefined, user)
  await opened.log.fork('old', 4, 'fork')
  const ids = async (query = {}) => (await opened.runs.list(query)).map(({ id }) => id)
  expect(await ids({ owner: '' })).toEqual(await ids({ tenant: '' }))
  expect(await ids({ owner: '' })).toEqual(['fork', 'old'])
  expect(await ids({ owner: 'ann', tenant: 'acme' })).toEqual(['again', 'new'])
  expect((await readAll(opened, 'fork'))[0]).not.toHaveProperty('user')
  expect((await readAll(opened, 'fork'))[0]).toMatchObject({ threadId: 'thread_fork' })
  await opened.close()

  const again = sqliteStore(path)
  expect((await readAll(again, 'again'))[0]).toMatchObject({ user, threadId: 'thread_again@@acme/ann' })
  await expect(again.log.fork('old', 4, 'again')).rejects.toMatchObject({ code: 'run-exists' })
  await again.close()
})

test('figures that an earlier migration took from old views are read off the log', async () => {
  const store = sqliteStore(path)
  const answers = { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } as const
  const error = { code: 'model-failed', message: '' }
  for (const id of ['healed', 'old', 'new'])
    await store.log.append(id, 1, [
      startEntry(id),
      entry(2, answers, 'main/a'),
      entry(3, { type: 'text-start', id: 't' }, 'main/a/1'),
      entry(4, { type: 'text-delta', id: 't', delta: 'a' }, 'main/a/1'),
      entry(5, { type: 'error', error }, 'main/a/1'),
      entry(6, { type: 'run-end', outcome: 'failed', usage: { source: 'reported' }, error }),
    ])
  const view = { version: 2, messages: [{}] }
  for (const id of ['healed', 'new']) await store.runs.keepView(id, 6, view)
  await store.runs.keepView('old', 6, { version: 1, messages: [{}, {}] })
  await store.close()
  const db = new DatabaseSync(path)
  makeOlder(db, 12)
  db.exec('UPDATE runs SET first_token_ms = 144007, errors = 7')
  db.close()
  const opened = sqliteStore(path)
  const figures = async (id: string) => {
    const { firstTokenMs, errors } = (await opened.runs.get(id))!
    return [firstTokenMs, errors]
  }
  expect([await figures('healed'), await figures('old')]).toEqual([
    [4, 1],
    [4, 1],
  ])
  expect(await opened.runs.view('old')).toMatchObject({ view: { version: 2, startedAt: noon } })
  // Of a later run nothing is read.
  expect(await figures('new')).toEqual([144007, 7])
  expect(await opened.runs.view('new')).toMatchObject({ view })
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

test('the models of older runs are read off their views', async () => {
  const store = sqliteStore(path)
  await store.log.append('r', 1, exampleRun('r'))
  await store.log.append('none', 1, [startEntry('none')])
  const models = [{ model: 'm1' }, { model: 'm2' }]
  await store.runs.keepView('r', 10, { usageByModel: models })
  await store.runs.keepView('none', 1, { usageByModel: [] })
  await store.close()
  const db = new DatabaseSync(path)
  const step = String(steps.find((each) => String(each).includes('ADD COLUMN models')))
  db.exec(`ALTER TABLE runs DROP COLUMN models; ${step}`)
  db.close()
  const opened = sqliteStore(path)
  expect((await opened.runs.list()).map((row) => row.models)).toEqual([undefined, ['m1', 'm2']])
  await opened.close()
})
