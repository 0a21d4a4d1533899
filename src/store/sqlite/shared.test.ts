/** One file: opened again, and opened by several stores, as by several processes. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { suspendedRun } from '../contract/views.contract.ts'
import { cutAt, endEntry, entry, exampleRun, startEntry } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'
import { sharedContract } from '../contract/shared.contract.ts'
import { live, readAll } from '../contract/tools.contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `${++files}`, 'millrace.db')
const delta = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}` })

describe('shared SQLite database', () => {
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

  test('runs that the other has begun are found out beside new ones: equal entries are stored once, others refused', async () => {
    const path = newPath()
    const [one, two] = [sqliteStore(path), sqliteStore(path)]
    await one.log.append('known', 1, [startEntry('known'), delta(2)])
    await one.log.append('taken', 1, [startEntry('taken')])
    const others = { ...startEntry('taken'), agent: 'another' } as Entry
    const results = await Promise.allSettled([
      two.log.append('new', 1, [startEntry('new')]),
      two.log.append('known', 1, [startEntry('known'), delta(2), delta(3)]),
      two.log.append('taken', 1, [others, delta(2)]),
      two.log.append('new', 1, [delta(2)]),
    ])
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.code))).toEqual([
      'stored',
      'stored',
      'bad-entry',
      'stored',
    ])
    expect(await readAll(two, 'known')).toEqual([startEntry('known'), delta(2), delta(3)])
    expect(await readAll(two, 'taken')).toEqual([startEntry('taken')])
    for (const store of [one, two]) {
      expect(await readAll(store, 'new')).toEqual([startEntry('new'), delta(2)])
      expect((await store.runs.list()).map(({ id }) => id)).toEqual(['new', 'taken', 'known'])
    }
    await Promise.all([one.close(), two.close()])
  })

  test('two stores on one file: runs that another process left running want an owner, its active runs do not', async () => {
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

  test('runs that want an owner are found at once among two thousand suspended runs', async () => {
    const path = newPath()
    const first = sqliteStore(path)
    const [later, past] = [Date.now() + 3_600_000, Date.now() - 1]
    const ids = Array.from({ length: 2000 }, (_, i) => `r${i}`)
    await Promise.all(ids.map((id, i) => first.log.append(id, 1, suspendedRun(id, i % 200 === 0 ? past : later))))
    await first.log.post('r1', 'answer:a', {})
    await first.close()
    const store = sqliteStore(path)
    const { value } = await store.fleet.wanted(live())[Symbol.asyncIterator]().next()
    expect(value).toHaveLength(11)
    await store.close()
  })
})

sharedContract('sqlite', async () => {
  const path = newPath()
  return [sqliteStore(path), sqliteStore(path)]
})
