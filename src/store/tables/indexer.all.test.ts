import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { resolve } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { arbitraryNestedRun } from '../../../test/arbitrary-run.ts'
import { isDelta, type Entry } from '../../part/entry.ts'
import { exampleRun } from '../example-run.contract.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { getStreamEvents } from '../stream-events.ts'
import { root, newFile, allOf } from './testing/indexed-store.ts'

afterAll(() => rmSync(root, { recursive: true }))
test('a process that is killed while it fills the tables leaves some that are completed at the next start', async () => {
  const path = newFile()
  const runs = fc.sample(arbitraryNestedRun, { numRuns: 25, seed: 5 })
  const whole = sqliteStore(path)
  for (const [i, entries] of runs.entries()) {
    await whole.log.append(
      `run-${i}`,
      1,
      entries.map((entry) => (entry.type === 'run-start' ? { ...entry, runId: `run-${i}` } : entry)),
    )
  }
  await whole.close()
  const script = `
    import { sqliteStore } from ${JSON.stringify(resolve('src/store/sqlite/store.ts'))}
    const store = sqliteStore(${JSON.stringify(path)})
    await store.records.reindex(() => process.stdout.write('.'))
    for (;;) await store.records.reindex(() => process.stdout.write('.'))`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  // It fills them over and over: wherever the kill meets it, it is at work.
  let seen = 0
  await new Promise<void>((done) => child.stdout.on('data', (text: Buffer) => (seen += text.length) > 2 && done()))
  const gone = new Promise((done) => child.on('exit', done))
  child.kill('SIGKILL')
  await gone

  const store = sqliteStore(path)
  await store.records!.settle()
  const rows = await allOf(store)
  await store.records!.reindex()
  expect(await allOf(store)).toEqual(rows)
  const { rows: events } = await store.records!.query('SELECT count(*) FROM agent_stream_events')
  expect(events).toEqual([[runs.reduce((sum, entries) => sum + entries.length, 0)]])
  await store.close()
})

test('of a run with 100,000 entries a few are found without reading the others, and appends wait for no table', async () => {
  const path = newFile()
  const store = sqliteStore(path)
  // Each delta a line of its own: of those that are one line there is too little to do.
  const apart = (entry: Entry) => (isDelta(entry) ? { ...entry, providerMetadata: { a: {} } } : entry)
  const entries: Entry[] = exampleRun('run', 100_000).map(apart)
  const call = { step: 'main/answer', toolCallId: 'c', toolName: 't' } as const
  entries.splice(-3, 3)
  let seq = entries.length
  const add = (part: object) => entries.push({ seq: ++seq, timestamp: seq, ...part } as Entry)
  add({ ...call, type: 'tool-call', input: '{}' })
  add({ ...call, type: 'tool-result', result: 1 })
  for (let i = 0; i < entries.length; i += 500) await store.log.append('run', 1, entries.slice(i, i + 500))
  let isFilled = false
  const filling = store.records!.settle().then(() => (isFilled = true))
  for (const entry of exampleRun('other', 1).slice(0, 3)) await store.log.append('other', 1, [entry])
  // They are stored before the tables are filled.
  expect(isFilled).toBe(false)
  await filling
  await store.records!.settle()
  const wanted = { types: ['tool-call', 'tool-result'] }
  const found = await getStreamEvents(store, 'run', wanted)
  expect(found.map(({ seq: at, eventType, eventId }) => [at, eventType, eventId])).toEqual([
    [seq - 1, 'tool-call', 'c'],
    [seq, 'tool-result', 'c'],
  ])
  const sql = `SELECT id FROM agent_stream_events WHERE agent_id = 'run' AND event_type = 'tool-call'`
  expect((await store.records!.query(sql)).rows).toEqual([[`run:${seq - 1}`]])
  // The rows of texts: two, whatever the number of deltas.
  const db = new DatabaseSync(path)
  const rows = (table: string) => db.prepare(`SELECT count(*) AS n FROM ${table} WHERE run = 1`).get()!.n
  expect([rows('indexed_events'), rows('indexed_blocks')]).toEqual([6 - 1, 1])
  db.close()
  await store.close()
})
