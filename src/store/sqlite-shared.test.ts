/** One file: opened again, and opened by several stores, as by several processes. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { suspendedRun } from './contract/views.contract.ts'
import { cutAt, endEntry, entry, exampleRun, startEntry } from './example-run.contract.ts'
import { sqliteStore } from './sqlite-store.ts'
import { live, readAll } from './contract/tools.contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `${++files}`, 'millrace.db')
const delta = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}` })

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
