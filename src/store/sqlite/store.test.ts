import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { decodeEntries } from '../encode.ts'
import { cutAt, endEntry, entry, exampleRun, startEntry } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'
import { live, readAll } from '../contract/tools.contract.ts'
import { storeContract } from '../store.contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `${++files}`, 'millrace.db')
const delta = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}` })

storeContract('sqlite', () => sqliteStore(newPath()))

describe('persisted before delivered', () => {
  test('a reader sees only entries that another connection sees as well', async () => {
    const path = newPath()
    const store = sqliteStore(path)
    const other = new DatabaseSync(path, { readOnly: true })
    const stored = other.prepare('SELECT max(last_seq) AS seq FROM ticks WHERE run = ?')
    const row = other.prepare('SELECT last_seq FROM runs WHERE id = ?')
    const entries = exampleRun('r', 200)
    const seen = (async () => {
      let checked = 0
      for await (const batch of store.log.read('r', { signal: live() })) {
        expect(stored.get('r')?.seq).toBeGreaterThanOrEqual(batch.at(-1)!.seq)
        expect(row.get('r')?.last_seq).toBeGreaterThanOrEqual(batch.at(-1)!.seq)
        checked += batch.length
      }
      return checked
    })()
    for (const batch of cutAt(entries, Array.from(entries.keys()))) {
      await store.log.append('r', 1, batch)
      expect(stored.get('r')?.seq).toBe(batch.at(-1)!.seq)
    }
    expect(await seen).toBe(entries.length)
    other.close()
    await store.close()
  })

  test('a reader that keeps up is given the very entries that were appended', async () => {
    const store = sqliteStore(newPath())
    const start = startEntry('r')
    const reader = store.log.read('r', { signal: live() })[Symbol.asyncIterator]()
    const next = reader.next()
    await store.log.append('r', 1, [start])
    expect((await next).value![0]).toBe(start)
    await store.close()
  })

  test('so is one that comes when a short run is over; of many such runs the last are kept', async () => {
    const store = sqliteStore(newPath())
    // More than a page of the database would give at once.
    const run = (id: string) => [
      startEntry(id),
      entry(2, { type: 'data', name: 'd', data: id.repeat(100_000) }),
      endEntry(3),
    ]
    const runs = Array.from({ length: 60 }, (_, i) => run(`r${i}`))
    for (const [i, entries] of runs.entries()) await store.log.append(`r${i}`, 1, entries)
    const read = async (i: number) => (await readAll(store, `r${i}`)).map((each, n) => each === runs[i]![n])
    // Once: whoever has read all of a run leaves nothing behind.
    for (const given of [true, false]) expect(await read(59)).toEqual([given, given, given])
    expect(await read(0)).toEqual([false, false, false])
    await store.close()
  })

  test('so is the first that comes, from the beginning; of many runs that nobody reads the last are kept, and none for long', async () => {
    const store = sqliteStore(newPath())
    const runs = Array.from({ length: 200 }, (_, i) => {
      const id = `r${i}`
      const said = (seq: number) => entry(seq, { type: 'data', name: 'd', data: `${id} `.padEnd(30_000, '.') })
      return { id, entries: [startEntry(id), said(2), said(3), said(4)], said }
    })
    const say = async (...entries: [string, Entry][]) => {
      for (const [id, each] of entries) await store.log.append(id, 1, [each])
    }
    for (const { id, entries } of runs) await say(...entries.map((each): [string, Entry] => [id, each]))
    const read = async (i: number) => (await readAll(store, `r${i}`)).map((each, n) => each === runs[i]!.entries[n])
    // As many as 140 answers of 90 KB.
    for (const kept of [199, 60]) expect(await read(kept)).toEqual([true, true, true, true])
    expect(await read(0)).toEqual([false, false, false, false])
    // It goes on, and has become too long to be kept for somebody who may never come.
    const { id, said } = runs[198]!
    await say([id, said(5)], [id, said(6)])
    expect(await read(198)).toEqual(Array.from({ length: 6 }, () => false))
    await store.close()
  })

  test('appends of one tick are one row a run and one transaction', async () => {
    const path = newPath()
    const store = sqliteStore(path)
    const entries = exampleRun('r')
    await Promise.all(cutAt(entries, [1, 2, 3]).map((batch) => store.log.append('r', 1, batch)))
    await store.close()
    const db = new DatabaseSync(path)
    const rows = db.prepare('SELECT * FROM ticks').all()
    expect(rows).toMatchObject([{ run: 'r', first_seq: 1, last_seq: 10 }])
    expect(decodeEntries([String(rows[0]!.entries)])).toEqual(entries)
    db.close()
  })

  test('deltas emitted before a write are stored with it, also for a new run', async () => {
    const path = newPath()
    const store = sqliteStore(path)
    const said: Entry[] = [startEntry('r')]
    const take = () => said.splice(0)
    const begun = store.log.append('r', 1, take)
    // A request for which a model waits leaves in the end of this turn.
    await new Promise(setImmediate)
    said.push(delta(2))
    await begun
    expect(await readAll(store, 'r')).toEqual([startEntry('r'), delta(2)])
    const goesOn = store.log.append('r', 1, take)
    said.push(delta(3))
    await new Promise(setImmediate)
    said.push(delta(4))
    await goesOn
    expect(said).toEqual([delta(4)])
    await store.close()
    const db = new DatabaseSync(path)
    expect(db.prepare('SELECT first_seq, last_seq FROM ticks').all()).toMatchObject([
      { first_seq: 1, last_seq: 2 },
      { first_seq: 3, last_seq: 3 },
    ])
    db.close()
  })

  test('a run that begins waits for no other turn when something else is committed', async () => {
    const store = sqliteStore(newPath())
    await store.log.append('old', 1, [startEntry('old')])
    const begun = store.log.append('r', 1, [startEntry('r')])
    await store.log.append('old', 1, [delta(2)])
    expect((await store.runs.get('r'))?.lastSeq).toBe(1)
    await begun
    await store.close()
  })
})

test('a long log is read in bounded pages, and other work has its turn between them', async () => {
  const store = sqliteStore(newPath())
  const text = 'x'.repeat(10_000)
  const entries: Entry[] = [startEntry('r')]
  for (let seq = 2; seq < 400; seq++) entries.push(entry(seq, { type: 'text-delta', id: 'a', delta: text }))
  for (const batch of cutAt(entries, Array.from(entries.keys()))) await store.log.append('r', 1, batch)
  await store.log.append('r', 1, [endEntry(400)])
  let turns = 0
  const count = () => {
    turns++
    immediate = setImmediate(count)
  }
  let immediate = setImmediate(count)
  const sizes: number[] = []
  for await (const batch of store.log.read('r')) sizes.push(batch.length)
  clearImmediate(immediate)
  expect(sizes.reduce((a, b) => a + b)).toBe(400)
  expect(Math.max(...sizes)).toBeLessThan(40)
  expect(turns).toBeGreaterThanOrEqual(sizes.length - 2)
  await store.close()
})
