/** Compaction and deletion of runs: what stays readable at every moment, and what is gone. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeEach, afterEach, describe, expect, test } from 'vitest'
import { readView } from '../../fold/read-view.ts'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import type { Upkeep } from '../../part/upkeep.ts'
import { endEntry, exampleRun, noon, startEntry } from '../example-run.contract.ts'
import { verify } from '../ndjson.ts'
import { sqliteStore } from './store.ts'
import { collect, live, readAll } from '../contract/tools.contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-upkeep-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
let path: string
let store: Store
let upkeep: Upkeep
beforeEach(() => {
  path = join(folder, `${++files}.db`)
  store = sqliteStore(path)
  upkeep = store.upkeep!
})
afterEach(() => store.close())

const rows = (run: string) => {
  const db = new DatabaseSync(path, { readOnly: true })
  const found = db.prepare('SELECT first_seq, last_seq FROM ticks WHERE run = ? ORDER BY first_seq').all(run)
  db.close()
  return found
}

/** A long run, appended a few entries at a time. */
async function record(run: string, deltas: number, size = 1): Promise<Entry[]> {
  const entries = exampleRun(run, deltas).map((entry) =>
    entry.type === 'text-delta' ? { ...entry, delta: entry.delta.repeat(size) } : entry,
  )
  for (let i = 0; i < entries.length; i += 50) await store.log.append(run, 1, entries.slice(i, i + 50))
  return entries
}

const textOf = (entries: readonly Entry[]) =>
  entries.map((entry) => (entry.type === 'text-delta' ? entry.delta : '')).join('')

/** What does not depend on how the text is cut. */
async function contentOf(run: string) {
  const entries = await readAll(store, run)
  expect(verify(entries)).toEqual([])
  return {
    view: await readView(store, run),
    text: textOf(entries),
    others: entries.filter(({ type }) => type !== 'text-delta'),
  }
}

describe('compact', () => {
  test('merges the rows and deltas of a run, whose content and positions stay', async () => {
    await record('before', 3)
    await record('r', 5000)
    const position = await store.log.position()
    const content = await contentOf('r')
    const told = await upkeep.compact('r', { dryRun: true })
    expect(rows('r').length).toBe(101)
    expect(await upkeep.compact('r')).toEqual(told)
    expect(told!.entriesAfter).toBeLessThan(30)
    expect(told!.bytesAfter / content.text.length).toBeLessThan(1.2)
    expect(await contentOf('r')).toEqual(content)
    expect(await store.log.position()).toBe(position)
    // The rows cover all positions, so that a cursor is found at once.
    const covered = rows('r')
    for (const [i, row] of covered.entries())
      expect(row.first_seq).toBe(i === 0 ? 1 : Number(covered[i - 1]!.last_seq) + 1)
    expect(await store.runs.get('r')).toMatchObject({ compactedAt: expect.any(Number), lastSeq: 5006 })
    expect(await upkeep.uncompacted(Infinity, 10)).toEqual(['before'])
    expect((await store.runs.get('before'))?.compactedAt).toBeUndefined()
  })

  test('of a run that has not ended, or is unknown, does nothing', async () => {
    await store.log.append('r', 1, exampleRun('r', 10).slice(0, -1))
    expect(await upkeep.compact('r')).toBeUndefined()
    expect(await upkeep.compact('x')).toBeUndefined()
    expect((await readAll(store, 'r')).length).toBe(15)
    expect(await upkeep.uncompacted(Infinity, 10)).toEqual([])
  })

  test('stopped after any slice, the run is whole, and goes on later', async () => {
    await record('r', 6000)
    const content = await contentOf('r')
    let stops = 0
    for (let after = 0; stops === after; after++) {
      let slices = 0
      const rest = async () => {
        if (slices++ === after) throw new Error(`stop ${++stops}`)
      }
      await upkeep.compact('r', { rest }).catch(() => undefined)
      expect(await contentOf('r')).toEqual(content)
    }
    expect(stops).toBeGreaterThan(1)
    expect((await readAll(store, 'r')).length).toBeLessThan(30)
  })

  test('a reader in the middle of merged entries ends with a clear error; one at their start continues', async () => {
    const entries = await record('r', 3000, 20)
    const reader = store.log.read('r', { signal: live() })[Symbol.asyncIterator]()
    const { value: first } = await reader.next()
    const at = first!.at(-1)!.seq
    expect(at).toBeLessThan(2500)
    await upkeep.compact('r')
    const merged = await readAll(store, 'r')
    const isInside = merged.some(({ seq, firstSeq = seq }) => firstSeq <= at && seq > at)
    if (isInside) await expect(reader.next()).rejects.toMatchObject({ code: 'compacted', status: 410 })
    for (const { seq } of merged) expect(textOf(await readAll(store, 'r', seq))).toBe(textOf(entries.slice(seq)))
    for (let seq = 6; seq < 3000; seq += 7) {
      const inside = merged.some((each) => (each.firstSeq ?? each.seq) <= seq && each.seq > seq)
      const read = readAll(store, 'r', seq)
      if (inside) await expect(read).rejects.toMatchObject({ code: 'compacted' })
      else await read
    }
  })

  test('forks stay unchanged, also forks of forks, and can be compacted themselves', async () => {
    await record('r', 1000)
    const forks = { f: ['r', 500], g: ['r', 501], h: ['f', 300] } as const
    for (const [run, [source, seq]] of Object.entries(forks)) await store.log.fork(source, seq, run)
    await store.log.append('f', 1, [...exampleRun('r', 1000).slice(500, 700), ...exampleRun('r', 697).slice(700)])
    const before = await Promise.all(Object.keys(forks).map((run) => readAll(store, run)))
    const texts = before.map(textOf)
    for (const run of ['r', 'f', 'g', 'h']) await upkeep.compact(run)
    const after = await Promise.all(Object.keys(forks).map((run) => readAll(store, run)))
    expect(after.map(textOf)).toEqual(texts)
    expect(after.map((each) => each.at(-1)!.seq)).toEqual([703, 501, 300])
    expect(after.map((each) => verify(each, { open: true }))).toEqual([[], [], []])
    expect(after[0]!.length).toBeLessThan(20)
    await expect(store.log.fork('r', 400, 'i')).rejects.toMatchObject({ code: 'compacted', status: 410 })
  })

  test('another process may read and append meanwhile', async () => {
    const content = await record('r', 3000)
    const other = sqliteStore(path)
    let n = 0
    const rest = async () => {
      expect(textOf(await readAll(other, 'r'))).toBe(textOf(content))
      await other.log.append(`o${++n}`, 1, exampleRun(`o${n}`))
    }
    await upkeep.compact('r', { rest })
    expect(n).toBeGreaterThan(1)
    await other.close()
  })
})

describe('drop', () => {
  const inThread = (run: string, threadId: string, at: number) =>
    [startEntry(run, { threadId }, at), { ...endEntry(2), timestamp: at + 1 }] satisfies Entry[]
  const expired = async (idleBefore: number) => (await upkeep.expired(idleBefore)).runs.map(({ id }) => id)

  test('offers ended runs whose thread has not continued and that have no fork', async () => {
    await store.log.append('old', 1, inThread('old', 't1', noon))
    await store.log.append('first', 1, inThread('first', 't2', noon))
    await store.log.append('second', 1, inThread('second', 't2', noon + 5000))
    await store.log.append('done', 1, inThread('done', 't3', noon))
    await store.log.append('active', 1, [startEntry('active', { threadId: 't3' }, noon)])
    await store.log.append('source', 1, inThread('source', 't4', noon))
    await store.log.fork('source', 2, 'fork')
    await store.log.append(
      'called',
      1,
      inThread('called', 't5', noon).map((each, i) => (i === 0 ? { ...each, parentRunId: 'active' } : each) as Entry),
    )
    expect(await expired(noon + 5000)).toEqual(['old', 'fork'])
    expect(await expired(Infinity)).toEqual(['old', 'first', 'second', 'fork'])
    expect(await upkeep.drop('fork')).toBe(true)
    expect(await expired(noon + 5000)).toEqual(['old', 'source'])
    for (const run of ['active', 'done', 'called', 'x']) expect(await upkeep.drop(run)).toBe(false)
  })

  test('pages through many runs', async () => {
    for (let i = 0; i < 250; i++) await store.log.append(`r${i}`, 1, inThread(`r${i}`, `t${i}`, noon))
    const found: string[] = []
    for (let after: number | undefined = 0; after !== undefined;) {
      const page = await upkeep.expired(Infinity, after)
      found.push(...page.runs.map(({ id }) => id))
      after = page.next
    }
    expect(found.length).toBe(250)
  })

  test('leaves nothing of the run: no row in any table, and the space is given back', async () => {
    await record('r', 200)
    await record('stays', 10)
    await store.log.append('big', 1, exampleRun('big', 100_000))
    for (const run of ['r', 'big']) {
      await store.log.post(run, 'stop', {})
      await store.runs.keepView(run, 1, {})
    }
    await store.close()
    const before = statSync(path).size
    store = sqliteStore(path)
    upkeep = store.upkeep!
    expect(await upkeep.drop('r')).toBe(true)
    expect(await upkeep.drop('big')).toBe(true)
    expect((await upkeep.size()).free).toBeGreaterThan(1_000_000)
    await upkeep.vacuum()
    expect((await upkeep.size()).free).toBe(0)
    await store.close()
    expect(statSync(path).size).toBeLessThan(before / 5)
    const db = new DatabaseSync(path)
    const { number } = db.prepare("SELECT number FROM runs WHERE id = 'stays'").get()!
    for (const table of ['ticks', 'inbox', 'views', 'forks', 'dropped', 'tick_groups']) {
      const rest = db.prepare(`SELECT DISTINCT run FROM ${table} WHERE run NOT IN ('stays', '', ?)`).all(number!)
      expect([table, ...rest]).toEqual([table])
    }
    // The last row keeps its place.
    expect(db.prepare("SELECT prev, entries FROM ticks WHERE run = ''").all()).toEqual([{ prev: null, entries: '' }])
    db.close()
    store = sqliteStore(path)
    expect((await store.runs.list()).map(({ id }) => id)).toEqual(['stays'])
  })

  test('readers of a deleted run get an error, early or late; its id may be used again', async () => {
    await record('r', 2000, 30)
    const held = store.log.read('r')
    const reader = store.log.read('r', { signal: live() })[Symbol.asyncIterator]()
    await reader.next()
    await upkeep.drop('r')
    const gone = { code: 'unknown-run', status: 404 }
    await expect(reader.next()).rejects.toMatchObject(gone)
    await expect(held[Symbol.asyncIterator]().next()).rejects.toMatchObject(gone)
    await expect(readAll(store, 'r', 0, live())).rejects.toMatchObject(gone)
    await expect(store.log.fork('r', 3, 'f')).rejects.toMatchObject(gone)
    const again = await record('r', 3)
    expect(await readAll(store, 'r')).toEqual(again)
  })

  test('one that a crash has cut off is completed', async () => {
    await record('r', 20_000)
    let slices = 0
    const rest = async () => {
      // Behind its rows in the tables.
      if (++slices === 2) throw new Error('crash')
    }
    await expect(upkeep.drop('r', { rest })).rejects.toThrow('crash')
    expect(await store.runs.get('r')).toBeUndefined()
    expect(rows('r').length).toBeGreaterThan(300)
    await store.close()
    store = sqliteStore(path)
    await store.upkeep!.vacuum()
    expect(rows('r')).toEqual([])
  })

  /** Deletes a run up to where its rows in the log would go. */
  async function cutOff(run: string): Promise<void> {
    let slices = 0
    const rest = async () => {
      // Behind its rows in the tables.
      if (++slices === 2) throw new Error('crash')
    }
    await expect(upkeep.drop(run, { rest })).rejects.toThrow('crash')
  }
  const numbers = () => {
    const db = new DatabaseSync(path, { readOnly: true })
    const found = db.prepare('SELECT id, number FROM runs').all()
    db.close()
    return Object.fromEntries(found.map(({ id, number }) => [String(id), Number(number)]))
  }

  test.each([['the same process'], ['another one']])(
    'a run that begins with the id of one whose deletion was cut off has only its own entries: in %s',
    async (place) => {
      await record('stays', 1)
      for (let i = 0; i < 2; i++) {
        await record('r', 20_000)
        await cutOff('r')
      }
      if (place === 'another one') {
        await store.close()
        store = sqliteStore(path)
        upkeep = store.upkeep!
      }
      const again = await record('r', 200)
      expect(rows('r')).toHaveLength(5)
      await upkeep.vacuum()
      expect(rows('r')).toHaveLength(5)
      expect(await readAll(store, 'r')).toEqual(again)
      await upkeep.drop('r')
      expect(rows('r')).toEqual([])
    },
  )

  test('so has one that begins in a process that was open before the deletion began', async () => {
    const other = sqliteStore(path)
    await other.log.append('before', 1, [startEntry('before'), endEntry(2)])
    await record('r', 20_000)
    await cutOff('r')
    await other.log.append('r', 1, [startEntry('r'), endEntry(2)])
    await other.log.append('after', 1, [startEntry('after'), endEntry(2)])
    expect(rows('r')).toHaveLength(1)
    await upkeep.vacuum()
    expect(await readAll(other, 'r')).toEqual([startEntry('r'), endEntry(2)])
    expect(new Set(Object.values(numbers())).size).toBe(3)
    await other.close()
  })

  test('no run gets the number of one whose rows are still being deleted', async () => {
    await record('old', 20_000)
    await cutOff('old')
    const entries = await record('new', 200)
    expect(numbers()).toEqual({ new: 2 })
    await upkeep.vacuum()
    expect(rows('old')).toEqual([])
    await store.close()
    store = sqliteStore(path)
    expect(await readAll(store, 'new')).toEqual(entries)
  })

  test('a deletion that another process has completed spares the new run with the same number', async () => {
    await record('old', 20_000)
    let slices = 0
    let entries: Entry[] = []
    const rest = async () => {
      if (++slices !== 2) return
      await upkeep.vacuum()
      expect(rows('old')).toEqual([])
      entries = await record('new', 200)
      expect(numbers()).toEqual({ new: 1 })
    }
    expect(await upkeep.drop('old', { rest })).toBe(true)
    // Not from what the store still knows of it.
    await store.close()
    store = sqliteStore(path)
    expect(entries.length).toBeGreaterThan(200)
    expect(await readAll(store, 'new')).toEqual(entries)
  })
})

describe('after the newest run was deleted', () => {
  const count = async () => {
    const { rows: found } = await store.records!.query(
      'SELECT agent_id, count(*) FROM agent_stream_events GROUP BY agent_id',
    )
    return Object.fromEntries(found)
  }

  test('the tables have the runs that come later', async () => {
    await record('one', 20)
    await store.records!.settle()
    await upkeep.drop('one')
    const entries = await record('two', 5)
    await store.records!.settle()
    expect(await count()).toEqual({ two: entries.length })
    // As many rows as the deleted run had, and more.
    const more = await record('three', 30)
    await store.records!.settle()
    expect(await count()).toEqual({ two: entries.length, three: more.length })
  })

  test('positions continue, and readers of all changes get later entries, and none of the deleted run', async () => {
    await record('one', 20)
    const position = await store.log.position()
    const reader = store.log.changes({ after: position, signal: live() })[Symbol.asyncIterator]()
    const next = reader.next()
    await upkeep.drop('one')
    expect(await store.log.position()).toBe(position)
    expect(await collect(store.log.changes())).toEqual([])
    const entries = await record('two', 5)
    const { value } = await next
    expect(value).toEqual([{ n: position + 1, run: 'two', entries }])
    await reader.return!()
  })

  test('one row keeps its place, however often that happens', async () => {
    for (const run of ['one', 'two', 'three']) {
      await record(run, 20)
      await upkeep.drop(run)
    }
    expect(rows('')).toEqual([{ first_seq: 0, last_seq: 0 }])
    await store.records!.settle()
    expect(await count()).toEqual({})
    expect((await record('one', 5)).length).toBe((await readAll(store, 'one')).length)
  })

  test('empty rows do not add up when other runs stand between, and are gone with the rows behind them', async () => {
    for (let i = 0; i < 5; i++) {
      await record('a', 2)
      await record('b', 2)
      for (const run of ['b', 'a']) expect(await upkeep.drop(run)).toBe(true)
    }
    expect(rows('').length).toBe(1)
    const [start, ...rest] = exampleRun('long', 20)
    // In another conversation: one in which a run is active is kept.
    await store.log.append('long', 1, [{ ...start!, threadId: 'other' } as Entry])
    await record('short', 2)
    expect(await upkeep.drop('short')).toBe(true)
    await store.log.append('long', 1, rest)
    expect(rows('').length).toBe(2)
    await upkeep.compact('long')
    expect(rows('')).toEqual([])
  })

  test('readers of changes pass over more empty rows than a page has', async () => {
    const db = new DatabaseSync(path)
    for (let i = 0; i < 600; i++) db.exec("INSERT INTO ticks (run, first_seq, last_seq, entries) VALUES ('', 0, 0, '')")
    db.close()
    const entries = await record('r', 5)
    expect(await collect(store.log.changes())).toEqual([{ n: 601, run: 'r', entries }])
  })

  test('another run with its id and number has another mark, also when another process has deleted it', async () => {
    await record('one', 2)
    const before = await upkeep.marks!(['one'])
    const other = sqliteStore(path)
    expect(await other.upkeep!.drop('one')).toBe(true)
    await other.close()
    await record('one', 3)
    const [mark] = await upkeep.marks!(['one'])
    expect(mark).toBeDefined()
    expect(mark).not.toBe(before[0])
  })
})
