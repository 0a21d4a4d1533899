/** Writes that fail, and files that are not ours to read. */
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import type { MillraceError } from '../../part/error.ts'
import { endEntry, entry, exampleRun, startEntry } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'
import { live, readAll } from '../contract/tools.contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `${++files}`, 'millrace.db')
const delta = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}` })

describe('a write that fails', () => {
  const locked = () => {
    const path = newPath()
    const store = sqliteStore(path, { busyTimeout: 60 })
    const other = new DatabaseSync(path)
    return { path, store, other }
  }

  test('on a lock that is held for too long, rejects clearly, and later ones work', async () => {
    const { path, store, other } = locked()
    await store.log.append('r', 1, [startEntry('r')])
    other.exec('BEGIN EXCLUSIVE')
    const failed = await Promise.allSettled([
      store.log.append('r', 1, [delta(2)]),
      store.log.append('s', 1, [startEntry('s')]),
      store.log.post('r', 'k', 'v'),
    ])
    for (const result of failed) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'store-failed' } })
      expect(((result as PromiseRejectedResult).reason as MillraceError).detail).toContain(path)
    }
    other.exec('ROLLBACK')
    other.close()
    expect(await store.runs.get('r')).toMatchObject({ lastSeq: 1 })
    await store.log.append('r', 1, [delta(2), endEntry(3)])
    expect(await readAll(store, 'r')).toEqual([startEntry('r'), delta(2), endEntry(3)])
    expect(await store.log.post('r', 'k', 'later')).toMatchObject({ first: true })
    await store.close()
  })

  test('the removed rows of a deleted run are removed again when the other runs are stored without it', async () => {
    const { path, store, other } = locked()
    await store.log.append('x', 1, [startEntry('x')])
    for (let seq = 2; seq < 800; seq++) {
      const appended = store.log.append('x', 1, [delta(seq)])
      if (seq % 20 === 0) await appended
    }
    await store.log.append('x', 1, [endEntry(800)])
    await store.records!.settle()
    const gone = () => other.prepare(`SELECT 1 FROM runs WHERE id = 'x'`).get() === undefined
    // The deletion is cut off when the run is gone, and many of its rows are not.
    const rest = () => (gone() ? Promise.reject(new Error('cut off')) : Promise.resolve())
    await expect(store.upkeep!.drop('x', { rest })).rejects.toThrow('cut off')
    expect(other.prepare('SELECT count(*) AS n FROM dropped').get()).toEqual({ n: 1 })
    other.exec(`CREATE TRIGGER poison BEFORE INSERT ON runs WHEN NEW.id = 'bad'
                BEGIN SELECT RAISE(ABORT, 'poisoned'); END`)
    const again = [startEntry('x'), entry(2, { type: 'text-start', id: 'new' }), endEntry(3)]
    const results = await Promise.allSettled([
      store.log.append('x', 1, again),
      store.log.append('bad', 1, [startEntry('bad')]),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect(other.prepare('SELECT count(*) AS n FROM dropped').get()).toEqual({ n: 0 })
    other.close()
    await store.close()
    const later = sqliteStore(path)
    expect(await readAll(later, 'x')).toEqual(again)
    await later.close()
  })

  test('on a lock that is given back, waits without stopping the event loop', async () => {
    const path = newPath()
    const store = sqliteStore(path)
    const other = new DatabaseSync(path)
    other.exec('BEGIN EXCLUSIVE')
    const reader = readAll(store, 'r', 0, live())
    const first = store.log.append('r', 1, [startEntry('r')])
    // The lock's holder lives on this very thread: it can let go only because the store does not block it.
    setTimeout(() => other.exec('COMMIT'), 30)
    await first
    await store.log.append('r', 1, [endEntry(2)])
    expect(await reader).toHaveLength(2)
    other.close()
    await store.close()
  })

  test('in the middle of a transaction, is undone as a whole', async () => {
    const { store, other } = locked()
    await store.log.append('r', 1, [startEntry('r')])
    // What SQLite does by itself when the disk is full.
    other.exec(`CREATE TRIGGER full BEFORE UPDATE ON runs BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END`)
    const reader = store.log.read('r', { after: 1, signal: live() })[Symbol.asyncIterator]()
    const next = reader.next()
    const appends = [store.log.append('r', 1, [delta(2)]), store.log.append('r', 1, [delta(3)])]
    for (const append of appends) {
      await expect(append).rejects.toMatchObject({
        code: expect.stringMatching(/store-failed|bad-entry/),
      })
    }
    await expect(appends[0]).rejects.toMatchObject({
      code: 'store-failed',
      message: 'cannot write to the log: the store failed',
      detail: expect.stringMatching(/: disk is full$/u),
    })
    other.exec('DROP TRIGGER full')
    await store.log.append('r', 1, [delta(2)])
    expect(await next).toEqual({ value: [delta(2)], done: false })
    expect(await store.runs.get('r')).toMatchObject({ lastSeq: 2 })
    other.close()
    await store.close()
  })

  test('at the commit itself, is undone and told as failed', async () => {
    const { store, other } = locked()
    await store.log.append('r', 1, [startEntry('r')])
    other.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
                CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
                CREATE TRIGGER late AFTER INSERT ON ticks BEGIN INSERT INTO child VALUES (1); END`)
    const reader = store.log.read('r', { after: 1, signal: live() })[Symbol.asyncIterator]()
    const next = reader.next()
    const failed = await Promise.allSettled([
      store.log.append('r', 1, [delta(2)]),
      store.log.append('s', 1, [startEntry('s')]),
      store.log.post('r', 'k', 'v'),
    ])
    for (const result of failed) expect(result).toMatchObject({ status: 'rejected', reason: { code: 'store-failed' } })
    other.exec('DROP TRIGGER late')
    const again = entry(2, { type: 'text-delta', id: 'a', delta: 'again' })
    await store.log.append('r', 1, [again])
    expect(await next).toEqual({ value: [again], done: false })
    expect(await store.runs.get('s')).toBeUndefined()
    expect(await store.log.post('r', 'k', 'w')).toEqual({ first: true, message: 'w' })
    other.close()
    await store.close()
  })

  test('because of one run, leaves the others of its tick alone', async () => {
    const { store, other } = locked()
    other.exec(`CREATE TRIGGER poison BEFORE INSERT ON ticks WHEN NEW.run = 'bad'
                BEGIN SELECT RAISE(ABORT, 'no'); END`)
    const results = await Promise.allSettled(['a', 'bad', 'c'].map((run) => store.log.append(run, 1, exampleRun(run))))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await store.runs.list()).map(({ id }) => id)).toEqual(['c', 'a'])
    expect(await readAll(store, 'c')).toEqual(exampleRun('c'))
    other.close()
    await store.close()
  })

  test('after another run’s failure, stores the result of a function that was called once', async () => {
    const { store, other } = locked()
    other.exec(`CREATE TRIGGER poison BEFORE INSERT ON ticks WHEN NEW.run = 'bad'
                BEGIN SELECT RAISE(ABORT, 'no'); END`)
    const said = new Map(['a', 'bad', 'c', 'early'].map((run) => [run, exampleRun(run)]))
    said.set('early', [delta(1)])
    const take = (run: string) => () => said.get(run)!.splice(0)
    const results = await Promise.allSettled([...said.keys()].map((run) => store.log.append(run, 1, take(run))))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
    expect(await readAll(store, 'a')).toEqual(exampleRun('a'))
    expect(await readAll(store, 'c')).toEqual(exampleRun('c'))
    other.close()
    await store.close()
  })

  test('because it is no JSON, is named', async () => {
    const store = sqliteStore(newPath())
    const cycle: unknown[] = []
    cycle.push(cycle)
    const bad = entry(2, { type: 'data', name: 'x', data: cycle })
    await expect(store.log.append('r', 1, [startEntry('r'), bad])).rejects.toMatchObject({
      code: 'bad-entry',
      message: expect.stringContaining('entry 2 (data) of run r'),
    })
    await expect(store.log.post('r', 'k', 1n)).rejects.toMatchObject({ code: 'bad-message' })
    await store.log.append('r', 1, [startEntry('r')])
    await store.close()
  })
})

describe('a file that is not ours to read', () => {
  const opening = (path: string) => () => sqliteStore(path, { busyTimeout: 10 })

  test('of a newer Millrace', async () => {
    const path = newPath()
    await sqliteStore(path).close()
    const db = new DatabaseSync(path)
    db.exec('PRAGMA user_version = 99')
    db.close()
    expect(opening(path)).toThrow(expect.objectContaining({ code: 'store-version' }))
    expect(opening(path)).toThrow(path)
    expect(opening(path)).toThrow(/newer Millrace \(schema 99/)
  })

  test('of another program, is not touched', () => {
    const path = join(folder, 'other.db')
    const db = new DatabaseSync(path)
    db.exec('CREATE TABLE cats (name)')
    db.close()
    const before = readFileSync(path)
    expect(opening(path)).toThrow(expect.objectContaining({ code: 'store-version' }))
    expect(opening(path)).toThrow(path)
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('that is no database', () => {
    const path = join(folder, 'text.db')
    writeFileSync(path, 'not a database, but long enough to be looked at. '.repeat(100))
    expect(opening(path)).toThrow(expect.objectContaining({ code: 'store-failed' }))
    expect(opening(path)).toThrow(path)
  })

  test('that is cut off', async () => {
    const path = newPath()
    const store = sqliteStore(path)
    await store.log.append('r', 1, exampleRun('r', 5000))
    await store.close()
    truncateSync(path, 8192)
    let failure: unknown
    try {
      const reopened = sqliteStore(path)
      try {
        await readAll(reopened, 'r')
      } finally {
        await reopened.close()
      }
    } catch (error) {
      failure = error
    }
    expect(failure).toMatchObject({ code: 'store-failed', message: expect.stringContaining(path) })
  })

  test('that is a folder', () => {
    expect(opening(folder)).toThrow(expect.objectContaining({ code: 'store-failed' }))
  })
})
