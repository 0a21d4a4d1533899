import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import type { MillraceError } from '../part/error.ts'
import { suspendedRun } from './contract/views.contract.ts'
import { cutAt, endEntry, entry, exampleRun, startEntry } from './example-run.contract.ts'
import { sqliteStore } from './sqlite-store.ts'
import { live, readAll } from './contract/tools.contract.ts'
import { storeContract } from './store.contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `${++files}`, 'millrace.db')
const delta = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}` })

storeContract('sqlite in memory', () => sqliteStore(':memory:'))
storeContract('sqlite', () => sqliteStore(newPath()))

describe('persisted before delivered', () => {
  test('what a reader sees, another connection sees', async () => {
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
    const runs = Array.from({ length: 100 }, (_, i) => {
      const id = `r${i}`
      const said = (seq: number) => entry(seq, { type: 'data', name: 'd', data: `${id} `.padEnd(30_000, '.') })
      return { id, entries: [startEntry(id), said(2), said(3), said(4)], said }
    })
    const say = async (...entries: [string, Entry][]) => {
      for (const [id, each] of entries) await store.log.append(id, 1, [each])
    }
    for (const { id, entries } of runs) await say(...entries.map((each): [string, Entry] => [id, each]))
    const read = async (i: number) => (await readAll(store, `r${i}`)).map((each, n) => each === runs[i]!.entries[n])
    expect(await read(99)).toEqual([true, true, true, true])
    expect(await read(0)).toEqual([false, false, false, false])
    // It goes on, and has become too long to be kept for somebody who may never come.
    const { id, said } = runs[98]!
    await say([id, said(5)], [id, said(6)])
    expect(await read(98)).toEqual(Array.from({ length: 6 }, () => false))
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
    const lines = String(rows[0]!.entries).split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual(entries)
    db.close()
  })

  test('what is said until an append is written goes with it, also of a run that begins', async () => {
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

  test.for([
    [1, 0],
    [40, 0],
    [200, 0],
    [500, 0],
    // While the WAL is written back.
    [300, 100_000],
    [500, 100_000],
  ] as const)('a process killed after %d reports of %d characters has lost none of them', async ([reports, length]) => {
    const path = newPath()
    const program = fileURLToPath(new URL('append-loop.contract.ts', import.meta.url))
    const child = spawn(process.execPath, [program, path, String(length)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    const delivered = new Map<string, number>()
    let count = 0
    for await (const line of createInterface(child.stdout)) {
      const [run, seq] = line.split(' ')
      delivered.set(run!, Number(seq))
      if (++count === reports) child.kill('SIGKILL')
    }
    expect(await exited).toEqual([null, 'SIGKILL'])
    expect(count).toBeGreaterThanOrEqual(reports)
    const store = sqliteStore(path)
    for (const [run, seq] of delivered) {
      const row = await store.runs.get(run)
      expect(row?.lastSeq).toBeGreaterThanOrEqual(seq)
      expect(await store.log.claim(run, 1)).toBe(true)
      await store.log.append(run, 2, [endEntry(row!.lastSeq + 1)])
      const seqs = (await readAll(store, run)).map((e) => e.seq)
      expect(seqs).toEqual(Array.from({ length: row!.lastSeq + 1 }, (_, i) => i + 1))
    }
    await store.close()
  })
})

test('a new file is in its place before anything is said: without its WAL it has its tables', async () => {
  const path = newPath()
  const store = sqliteStore(path)
  const copy = newPath()
  mkdirSync(dirname(copy), { recursive: true })
  copyFileSync(path, copy)
  const other = new DatabaseSync(copy, { readOnly: true })
  expect(other.prepare('SELECT count(*) AS runs FROM runs').get()).toEqual({ runs: 0 })
  other.close()
  await store.close()
})

test('reopening a file gives everything back', async () => {
  const path = newPath()
  const first = sqliteStore(path)
  const entries = exampleRun('r', 300)
  for (const batch of cutAt(entries, [1, 10, 100])) await first.log.append('r', 3, batch)
  await first.log.append('s', 4, [startEntry('s'), delta(2)])
  await first.log.post('s', 'stop', { why: 'asked' })
  const rows = await first.runs.list()
  await first.close()

  const second = sqliteStore(path)
  expect(await second.runs.list()).toEqual(rows)
  for (const k of [0, 5, 10, 305, 306]) expect(await readAll(second, 'r', k)).toEqual(entries.slice(k))
  expect(await second.log.post('s', 'stop', 'late')).toEqual({ first: false, message: { why: 'asked' } })
  expect(await second.log.append('s', 3, [delta(3)])).toBe('fenced')
  await second.log.claim('s', 4)
  await second.log.append('s', 5, [endEntry(3)])
  expect(await readAll(second, 's')).toEqual([startEntry('s'), delta(2), endEntry(3)])
  await second.close()
})

test('two stores on one file: the older epoch is refused though it knew the run', async () => {
  const path = newPath()
  const [old, young] = [sqliteStore(path), sqliteStore(path)]
  await old.log.append('r', 1, [startEntry('r'), delta(2)])
  const claims = await Promise.all([old.log.claim('r', 1), young.log.claim('r', 1)])
  expect(claims.filter(Boolean)).toHaveLength(1)
  await young.log.claim('r', 2)
  await young.log.append('r', 3, [delta(3)])
  expect(await old.log.append('r', 1, [delta(3)])).toBe('fenced')
  expect(await old.log.append('r', 2, [delta(4)])).toBe('fenced')
  await young.log.append('r', 3, [endEntry(4)])
  expect(await readAll(old, 'r')).toEqual([startEntry('r'), delta(2), delta(3), endEntry(4)])
  const posts = await Promise.all([old.log.post('r', 'k', 'old'), young.log.post('r', 'k', 'young')])
  expect(posts.filter(({ first }) => first)).toHaveLength(1)
  expect(posts[0].message).toBe(posts[1].message)
  await old.close()
  await young.close()
})

test('two stores on one file: what another process left running wants an owner, what it owns itself does not', async () => {
  const path = newPath()
  const first = sqliteStore(path)
  await first.log.append('left', 1, [startEntry('left')])
  await first.log.append('over', 1, exampleRun('over'))
  await first.close()
  const second = sqliteStore(path)
  await second.log.append('own', 1, [startEntry('own')])
  const wanted = second.fleet.wanted(live())[Symbol.asyncIterator]()
  expect((await wanted.next()).value).toEqual(['left'])
  expect(await second.log.claim('left', 1)).toBe(true)
  const third = sqliteStore(path)
  expect((await second.fleet.wanted(live())[Symbol.asyncIterator]().next()).value).toEqual([])
  expect((await third.fleet.wanted(live())[Symbol.asyncIterator]().next()).value).toEqual(['left', 'own'])
  await second.close()
  await third.close()
})

test('what wants an owner of ten thousand suspended runs is known in less than a second', async () => {
  const path = newPath()
  const first = sqliteStore(path)
  const [later, past] = [Date.now() + 3_600_000, Date.now() - 1]
  const ids = Array.from({ length: 10_000 }, (_, i) => `r${i}`)
  await Promise.all(ids.map((id, i) => first.log.append(id, 1, suspendedRun(id, i % 1000 === 0 ? past : later))))
  await first.log.post('r1', 'answer:a', {})
  await first.close()
  const began = performance.now()
  const store = sqliteStore(path)
  const { value } = await store.fleet.wanted(live())[Symbol.asyncIterator]().next()
  expect(performance.now() - began).toBeLessThan(1000)
  expect(value).toHaveLength(11)
  await store.close()
})

test('two stores on one file: who follows one gets what the other stores, in the order of the commits', async () => {
  const path = newPath()
  const [one, two] = [sqliteStore(path), sqliteStore(path)]
  await one.log.append('r', 1, [startEntry('r'), delta(2)])
  const reader = readAll(two, 'r', 0, live())
  const inbox = two.log.inbox('r', { signal: live() })[Symbol.asyncIterator]().next()
  const seen: string[] = []
  const changes = (async () => {
    for await (const batch of two.log.changes({ signal: live() })) {
      for (const { run, entries } of batch) for (const { seq } of entries) seen.push(`${run}${seq}`)
      if (seen.includes('r7')) break
    }
  })()
  await one.log.append('r', 1, [delta(3)])
  await two.log.append('s', 1, [startEntry('s')])
  await one.log.append('r', 1, [delta(4)])
  await two.log.append('s', 1, [delta(2)])
  await two.log.append('s', 1, [endEntry(3)])
  await one.log.append('r', 1, [delta(5)])
  await one.log.post('r', 'stop', {})
  // From here on nothing is committed by the other, so it has to look for it.
  expect((await inbox).value).toMatchObject({ key: 'stop' })
  await one.log.append('r', 1, [delta(6), endEntry(7)])
  expect((await reader).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7])
  await changes
  expect(seen).toEqual(['r1', 'r2', 'r3', 's1', 'r4', 's2', 's3', 'r5', 'r6', 'r7'])
  await one.close()
  await two.close()
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

  test('because of another run, stores once what a function gave once', async () => {
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
