import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { record, slowRun } from '../../../test/support/recorded.ts'
import type { Store } from '../../part/log.ts'
import { exampleRun } from '../example-run.contract.ts'
import { memoryStore } from '../memory-store.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { getStreamEvents } from '../stream-events.ts'
import { hasLayout } from './layout.ts'
import { root, newFile, allOf } from './testing/indexed-store.ts'

afterAll(() => rmSync(root, { recursive: true }))
test('the tables fill by themselves, and show a call that runs', async () => {
  const store = sqliteStore(newFile())
  await record(store, slowRun('slow', Date.now()))
  const running = () => store.records!.query(`SELECT tool_name FROM tool_calls WHERE outcome IS NULL`)
  await expect.poll(async () => (await running()).rows).toEqual([['endless']])
  await expect.poll(() => store.records!.isBehind()).toBe(false)
  await store.close()
})

test('deltas of a text that is being written are rows at once', async () => {
  const store = sqliteStore(newFile())
  const entries = exampleRun('run', 10)
  await store.log.append('run', 1, entries.slice(0, 5))
  await store.records!.settle()
  await store.log.append('run', 1, entries.slice(5, 9))
  const { rows } = await store.records!.query(`SELECT content FROM agent_stream_events WHERE event_type = 'text-delta'`)
  expect(rows.map(([content]) => String(content)).toSorted((a, b) => a.localeCompare(b))).toEqual(
    [0, 1, 2, 3, 4, 5].map((n) => `word ${n}\n`),
  )
  await store.close()
})

test('several processes on one file: one goes on where the other stopped, and waits for no lock', async () => {
  const path = newFile()
  const [a, b] = [sqliteStore(path), sqliteStore(path)]
  const entries = slowRun('slow', Date.now())
  await a.log.append('slow', 1, entries.slice(0, 9))
  await a.records!.settle()
  await a.log.append('slow', 1, entries.slice(9, 20))
  await b.records!.settle()
  await a.log.append('slow', 1, entries.slice(20))

  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  let settled = false
  const settling = a.records!.settle().then(() => (settled = true))
  // The event loop turns while the file is locked.
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  expect(settled).toBe(false)
  other.exec('COMMIT')
  other.close()
  await settling
  const rows = await allOf(a)
  await b.records!.reindex()
  expect(await allOf(a)).toEqual(rows)
  // What `a` remembers of the run is not what the rebuilt tables have.
  await a.log.append('slow', 1, [
    {
      seq: entries.length + 1,
      timestamp: 1,
      step: 'main/ask/answer/4',
      type: 'tool-result',
      toolCallId: 'call-2',
      toolName: 'endless',
      result: 1,
    },
  ])
  await a.records!.settle()
  const { rows: last } = await b.records!.query(
    `SELECT agent_id, tool_name, outcome FROM tool_calls WHERE tool_call_id = 'call-2'`,
  )
  expect(last).toEqual([['slow/main/ask', 'endless', 'completed']])
  await a.close()
  await b.close()
})

test('rows of deltas alone are passed over: the tables say so now and then, and events come whole meanwhile', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  const entries = exampleRun('run', 700)
  const other = new DatabaseSync(path)
  const noted = () => Number(other.prepare('SELECT seq FROM indexed_runs').get()!.seq)
  const places = new Set<number>()
  await store.log.append('run', 1, entries.slice(0, 3))
  for (const each of entries.slice(3, 650)) {
    await store.log.append('run', 1, [each])
    await store.records!.settle()
    expect(each.seq - noted()).toBeLessThanOrEqual(256)
    places.add(noted())
  }
  // The beginning, and after each 256 deltas.
  expect(places.size).toBe(3)
  const types = ['text-start', 'text-end', 'step-finish']
  const seqs = async () => (await store.records!.streamEvents('run', { types })).map(({ seq }) => seq)
  expect(await seqs()).toEqual([3])

  // Another process goes on where the tables say, and this one sees that it did.
  const next = sqliteStore(path)
  await next.log.append('run', 1, entries.slice(650, 690))
  await next.records!.settle()
  await store.log.append('run', 1, entries.slice(690))
  await store.records!.settle()
  expect(await seqs()).toEqual([3, 704, 705])
  expect(noted()).toBe(706)
  const rows = await allOf(store)
  await next.records!.reindex()
  expect(await allOf(store)).toEqual(rows)
  other.close()
  await next.close()
  await store.close()
})

test('the first delta of a model call, and deltas of a fork whose beginning is still missing, are not passed over', async () => {
  const store = sqliteStore(newFile())
  const called = slowRun('called', Date.now())
  const source = exampleRun('source', 10)
  await store.log.append('called', 1, called.slice(0, 4))
  await store.log.append('source', 1, source.slice(0, 6))
  await store.records!.settle()
  for (const entry of called.slice(4)) await store.log.append('called', 1, [entry])
  await store.log.fork('source', 5, 'fork')
  for (const entry of source.slice(5, 10)) await store.log.append('fork', 1, [entry])
  await store.records!.settle()
  const rows = await allOf(store)
  await store.records!.reindex()
  expect(await allOf(store)).toEqual(rows)
  const { rows: calls } = await store.records!.query(
    'SELECT count(*) FROM model_calls WHERE first_token_at IS NOT NULL',
  )
  expect(Number(calls[0]![0])).toBeGreaterThan(0)
  await store.close()
})

test('a slice that is undone is filled again, with what deltas came behind it', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  const other = new DatabaseSync(path)
  const entries = exampleRun('run', 20)
  await store.log.append('run', 1, entries.slice(0, 2))
  await store.records!.settle()
  // What SQLite does by itself when the disk is full.
  other.exec(`CREATE TRIGGER full BEFORE UPDATE ON indexed_runs BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END`)
  await store.log.append('run', 1, entries.slice(2, 3))
  for (const each of entries.slice(3, 10)) await store.log.append('run', 1, [each])
  await expect(store.records!.settle()).rejects.toThrow('disk is full')
  other.exec('DROP TRIGGER full')
  other.close()
  await store.log.append('run', 1, entries.slice(10))
  await store.records!.settle()
  const rows = await allOf(store)
  await store.records!.reindex()
  expect(await allOf(store)).toEqual(rows)
  const { rows: events } = await store.records!.query('SELECT count(*) FROM agent_stream_events')
  expect(events).toEqual([[entries.length]])
  await store.close()
})

test('tables of another layout are built again by themselves', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  await record(store, slowRun('slow', Date.now()))
  await store.records!.settle()
  const rows = await allOf(store)
  await store.close()
  const db = new DatabaseSync(path)
  db.exec(
    'UPDATE index_state SET layout = 0; DROP VIEW agents; CREATE VIEW agents AS SELECT 1; DROP TABLE indexed_steps',
  )
  db.close()
  const next = sqliteStore(path)
  await expect.poll(() => next.records!.isBehind()).toBe(false)
  expect(await allOf(next)).toEqual(rows)
  await next.close()
  const same = new DatabaseSync(path)
  expect(hasLayout(same)).toBe(true)
  same.close()
})

test('the events of a run are the same from the tables, from a part of them and from a store without', async () => {
  const entries = slowRun('slow', 1_705_584_896_000)
  const memory = memoryStore()
  const half = sqliteStore(newFile())
  const whole = sqliteStore(newFile())
  for (const store of [memory, whole, half]) await store.log.append('slow', 1, entries.slice(0, 12))
  await half.records!.settle()
  for (const store of [memory, whole, half]) await store.log.append('slow', 1, entries.slice(12))
  await whole.records!.settle()
  const queries = [
    {},
    { types: ['tool-call', 'tool-result'] },
    { types: ['tool-call', 'tool-result'], limit: 2 },
    { types: ['step-start'], after: 12, limit: 3 },
    { types: ['text-delta', 'usage'] },
    { types: [] },
    { limit: 0 },
    { after: 1000 },
  ]
  for (const query of queries) {
    const events = await getStreamEvents(memory, 'slow', query)
    expect(await getStreamEvents(whole, 'slow', query)).toEqual(events)
    expect(await getStreamEvents(half, 'slow', query)).toEqual(events)
  }
  const all = await getStreamEvents(memory, 'slow')
  expect(all.map(({ seq }) => seq)).toEqual(entries.map(({ seq }) => seq))
  expect(all.find(({ eventType }) => eventType === 'text-delta')).toMatchObject({ content: 'I look ', eventId: 't1' })
  expect(new Set(all.map(({ agentId }) => agentId))).toEqual(new Set(['slow', 'slow/main/ask']))
  expect(await getStreamEvents(memory, 'none')).toEqual([])
  for (const store of [memory, half, whole]) await store.close()
})

let shared: Store
beforeAll(() => {
  shared = sqliteStore(newFile())
})
afterAll(() => shared.close())

test.each([
  ['DELETE FROM runs', /DELETE is not allowed/u],
  ['WITH x AS (SELECT 1) DELETE FROM runs', /only read/u],
  ["ATTACH 'other.db' AS o", /ATTACH is not allowed/u],
  ['PRAGMA journal_mode = DELETE', /PRAGMA journal_mode is not allowed/u],
  ['PRAGMA wal_checkpoint', /PRAGMA wal_checkpoint is not allowed/u],
  ['SELECT 1; SELECT 2', /more than one statement/u],
  ['', /no SQL statement/u],
  ['-- nothing', /no SQL statement/u],
  ['SELECT * FROM nowhere', /no such table: nowhere/u],
  ['SELECT :a', /needs a value for :a/u],
])('the query %j is refused, and says why', async (sql, message) => {
  await expect(shared.records!.query(sql)).rejects.toMatchObject({
    code: 'bad-query',
    message: expect.stringMatching(message),
  })
  const told = `SELECT ';' AS a, ':b' AS b; -- one statement; and a comment :c`
  expect((await shared.records!.query(told)).rows).toEqual([[';', ':b']])
})

test('a query has as many rows as it may, also of what never ends, and nothing waits for it', async () => {
  const store = sqliteStore(newFile())
  const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`
  const { rows, truncated } = await store.records!.query(endless, { limit: 3 })
  expect([rows, truncated]).toEqual([[[1], [2], [3]], true])
  expect((await store.records!.query('SELECT 9007199254740993, 2, 1.5, NULL')).rows).toEqual([
    ['9007199254740993', 2, 1.5, null],
  ])
  const busy = store.records!.query(`SELECT count(*) FROM (${endless} LIMIT 300000)`)
  // Meanwhile the store works.
  await record(store, exampleRun('run'))
  expect((await busy).rows).toEqual([[300_000]])
  await store.close()
})

test('a query that never ends is stopped, and the next one runs', async () => {
  const store = sqliteStore(newFile())
  const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n`
  const stopped = store.records!.query(endless, { timeoutMs: 50 })
  const next = store.records!.query('SELECT 1')
  await expect(stopped).rejects.toMatchObject({ code: 'bad-query', message: expect.stringMatching(/after 0\.05 s/u) })
  expect((await next).rows).toEqual([[1]])
  await store.close()
})
