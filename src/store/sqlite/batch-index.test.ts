/** Where the rows of a run are: in groups, and behind them in a chain. Whatever cuts them, each entry is read once and in order. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { often } from '../../../test/support/thorough.ts'
import { collect } from '../contract/tools.contract.ts'
import { endEntry, entry, startEntry } from '../example-run.contract.ts'
import { createBatchIndex } from './batch-index.ts'
import { sqliteStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-groups-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
let path: string
beforeEach(() => {
  path = join(folder, `${++files}.db`)
})

const delta = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq} ` })
const seqsOf = async (store: Store, run: string, after = 0, limit = Infinity) =>
  (await collect(store.log.read(run, { after, limit }))).map(({ seq }) => seq)
const from = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i)

/** What the file says of a run: how many rows each group has, and how long the tail is. */
function partsOf(run: string) {
  const db = new DatabaseSync(path, { readOnly: true })
  const groups = db.prepare(
    'SELECT json_array_length(ticks) AS n FROM tick_groups WHERE run = (SELECT number FROM runs WHERE id = ?) ORDER BY first_seq',
  )
  const tail = db.prepare(
    `WITH RECURSIVE tail (id) AS (SELECT last_tick FROM runs WHERE id = ?
       UNION ALL SELECT prev FROM tail JOIN ticks ON ticks.id = tail.id WHERE prev IS NOT NULL)
     SELECT count(id) AS n FROM tail`,
  )
  const found = { groups: groups.all(run).map(({ n }) => Number(n)), tail: Number(tail.get(run)!.n) }
  db.close()
  return found
}

async function grow(store: Store, run: string, first: number, last: number): Promise<void> {
  for (const seq of from(first, last)) await store.log.append(run, 1, [seq === 1 ? startEntry(run) : delta(seq)])
}

describe('createBatchIndex', () => {
  test('every 64 rows of a run are a group; so is the rest when the run waits, and when it ends', async () => {
    const store = sqliteStore(path)
    await grow(store, 'r', 1, 63)
    expect(partsOf('r')).toEqual({ groups: [], tail: 63 })
    await grow(store, 'r', 64, 140)
    expect(partsOf('r')).toEqual({ groups: [64, 64], tail: 12 })
    await store.log.append('r', 1, [entry(141, { type: 'suspend', requests: [] })])
    expect(partsOf('r')).toEqual({ groups: [64, 64, 13], tail: 0 })
    await store.log.append('r', 1, [entry(142, { type: 'resume', protocol: 'api' })])
    await store.log.append('r', 1, [endEntry(143)])
    expect(partsOf('r')).toEqual({ groups: [64, 64, 13, 2], tail: 0 })
    expect(await seqsOf(store, 'r')).toEqual(from(1, 143))
    await store.close()
  })

  test('reading from any entry gives the same entries before and after the store is reopened', async () => {
    const first = sqliteStore(path)
    for (let seq = 1; seq <= 150; seq++) for (const run of ['r', 's']) await grow(first, run, seq, seq)
    // Nothing of the first is in its memory, as after a kill.
    const second = sqliteStore(path)
    for (const after of [0, 1, 62, 63, 64, 65, 127, 128, 129, 149])
      for (const limit of [1, 3, Infinity])
        expect(await seqsOf(second, 'r', after, limit)).toEqual(from(after + 1, 150).slice(0, limit))
    await grow(second, 's', 151, 200)
    expect(partsOf('s')).toEqual({ groups: [64, 64, 64], tail: 8 })
    await Promise.all([first.close(), second.close()])
    const third = sqliteStore(path)
    expect(await seqsOf(third, 's', 126)).toEqual(from(127, 200))
    await third.close()
  })

  test('a commit that fails leaves the tail as it was', async () => {
    const store = sqliteStore(path)
    await grow(store, 'r', 1, 62)
    const other = new DatabaseSync(path)
    const fails = async (seq: number) => {
      other.exec("CREATE TRIGGER no AFTER UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'no'); END")
      await expect(store.log.append('r', 1, [delta(seq)])).rejects.toMatchObject({ code: 'store-failed' })
      other.exec('DROP TRIGGER no')
    }
    await fails(63)
    await grow(store, 'r', 63, 63)
    // The row that would have made the group.
    await fails(64)
    expect(partsOf('r')).toEqual({ groups: [], tail: 63 })
    await grow(store, 'r', 64, 70)
    expect(partsOf('r')).toEqual({ groups: [64], tail: 6 })
    expect(await seqsOf(store, 'r')).toEqual(from(1, 70))
    other.close()
    await store.close()
  })

  test('rows that another process moves from the tail to a group while they are looked for are read once', async () => {
    const store = sqliteStore(path)
    await grow(store, 'r', 1, 100)
    const other = new DatabaseSync(path)
    const db = new DatabaseSync(path)
    /** What the other process commits after the tail was read, and before the groups are. */
    function move(): void {
      const { tail } = partsOf('r')
      const ids = db.prepare("SELECT id FROM ticks WHERE run = 'r' ORDER BY id").all().slice(-tail)
      const add = other.prepare('INSERT INTO tick_groups (run, first_seq, last_seq, ticks) VALUES (1, ?, 100, ?)')
      add.run(101 - tail, JSON.stringify(ids.map(({ id }) => id)))
      other.exec("UPDATE runs SET last_tick = NULL WHERE id = 'r'")
    }
    const prepare: DatabaseSync['prepare'] = (sql, options) => {
      const statement = db.prepare(sql, options)
      if (!sql.startsWith('SELECT ticks FROM tick_groups')) return statement
      const iterate = statement.iterate.bind(statement) as (
        ...values: unknown[]
      ) => ReturnType<typeof statement.iterate>
      statement.iterate = (...values: unknown[]) => {
        move()
        return iterate(...values)
      }
      return statement
    }
    const groups = createBatchIndex({ prepare } as DatabaseSync)
    expect([...groups.from('r', 1)].map(({ lastSeq }) => lastSeq)).toEqual(from(1, 100))
    expect(partsOf('r')).toEqual({ groups: [64, 36], tail: 0 })
    other.close()
    db.close()
    await store.close()
  })

  test('rows in the middle of a run are merged across groups, and the rows around them stay', async () => {
    const store = sqliteStore(path)
    await grow(store, 'r', 1, 200)
    await store.log.append('r', 1, [endEntry(201)])
    await store.close()
    const db = new DatabaseSync(path)
    const groups = createBatchIndex(db)
    const rows = [...groups.from('r', 1)]
    const [before, some, after] = [rows.slice(0, 10), rows.slice(10, 140), rows.slice(140)]
    expect(groups.replace('r', some, 'merged')).toBe(true)
    const merged = { id: some.at(-1)!.id, firstSeq: 11, lastSeq: 140, entries: 'merged' }
    expect([...groups.from('r', 1)]).toEqual([...before, merged, ...after])
    expect([...groups.from('r', 141)]).toEqual(after)
    // They are not there any more.
    expect(groups.replace('r', some, 'again')).toBe(false)
    db.close()
    expect(partsOf('r').groups).toEqual([10, 1, 52, 9])
  })

  test('runs that are appended in turns, forked, compacted and deleted keep their entries, and only theirs', async () => {
    const sizes = fc.array(fc.record({ run: fc.nat(2), size: fc.integer({ min: 1, max: 9 }) }), {
      minLength: 100,
      maxLength: 300,
    })
    await fc.assert(
      fc.asyncProperty(sizes, async (appends) => {
        path = join(folder, `${++files}.db`)
        let store = sqliteStore(path)
        const logs: Entry[][] = [[], [], []]
        for (const [i, { run, size }] of appends.entries()) {
          const log = logs[run]!
          const next = from(log.length + 1, log.length + size).map((seq) =>
            seq === 1 ? startEntry(`r${run}`) : delta(seq),
          )
          log.push(...next)
          await store.log.append(`r${run}`, 1, next)
          if (i % 70 === 69) {
            await store.close()
            store = sqliteStore(path)
          }
        }
        for (const [run, log] of logs.entries()) {
          if (log.length < 3) continue
          await store.log.fork(`r${run}`, log.length - 2, `f${run}`)
          const end = endEntry(log.length + 1)
          await store.log.append(`r${run}`, 1, [end])
          expect(await collect(store.log.read(`r${run}`))).toEqual([...log, end])
          expect(await seqsOf(store, `f${run}`)).toEqual(from(1, log.length - 2))
          const text = log.slice(1).map((each) => (each as { delta?: string }).delta)
          await store.upkeep!.compact(`r${run}`)
          const compacted = await collect(store.log.read(`r${run}`))
          expect(compacted.map((each) => (each as { delta?: string }).delta ?? '').join('')).toBe(text.join(''))
          expect(compacted.at(-1)).toEqual(end)
          expect(partsOf(`r${run}`).tail).toBe(0)
        }
        for (const run of logs.keys()) if (logs[run]!.length >= 3) await store.upkeep!.drop(`r${run}`)
        // A fork keeps its source: these are still there.
        for (const [run, log] of logs.entries())
          if (log.length >= 3) expect((await seqsOf(store, `f${run}`)).at(-1)).toBe(log.length - 2)
        await store.close()
      }),
      { numRuns: often(100, 20) },
    )
  })
})
