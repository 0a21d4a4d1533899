import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { exampleRun } from '../example-run.contract.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { DeltaRows } from './delta-rows.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-delta-rows-'))
afterAll(() => rmSync(root, { recursive: true }))

const row = (id: number) => ({ id, run: 'r', firstSeq: id, lastSeq: id })

test('knows the rows of deltas, in ascending order', () => {
  const rows = new DeltaRows()
  for (const id of [1, 2, 3, 5]) rows.wrote(row(id), id !== 2)
  expect([1, 2, 3, 4, 5, 6].map((id) => rows.at(id)?.id)).toEqual([1, undefined, 3, undefined, 5, undefined])
  // All were asked for, so none is kept.
  expect(rows.at(5)).toBeUndefined()
})

test.each([true, false])(
  'forgets them when an id is given again (deltas: %s), and when there are too many',
  (deltas) => {
    const rows = new DeltaRows()
    for (const id of [1, 2, 3]) rows.wrote(row(id), true)
    rows.wrote(row(3), deltas)
    expect([1, 2, 3].map((id) => rows.at(id)?.id)).toEqual([undefined, undefined, deltas ? 3 : undefined])
    const many = new DeltaRows()
    for (let id = 10; id < 100_010; id++) many.wrote(row(id), true)
    many.wrote(row(100_010), true)
    expect([10, 100_009, 100_010].map((id) => many.at(id)?.id)).toEqual([undefined, undefined, 100_010])
  },
)

test('the tables may be as far behind as it remembers, for any time', () => {
  const rows = new DeltaRows()
  const behind = 90_000
  for (let id = 1; id <= 3 * behind; id++) {
    rows.wrote({ id, run: `r${id % 7}`, firstSeq: 2 * id, lastSeq: 2 * id + 1 }, true)
    const done = id - behind
    if (done < 1) continue
    const expected = { id: done, run: `r${done % 7}`, firstSeq: 2 * done, lastSeq: 2 * done + 1 }
    // `toEqual` would take a minute.
    if (JSON.stringify(rows.at(done)) !== JSON.stringify(expected)) expect(rows.at(done)).toEqual(expected)
  }
})

test('a row that has the id of a deleted one is in the tables', async () => {
  const path = join(root, 'again.db')
  const store = sqliteStore(path)
  const db = new DatabaseSync(path)
  const lastId = () => Number(db.prepare('SELECT max(id) AS id FROM ticks').get()!.id)
  const [first, second] = [exampleRun('first', 20), exampleRun('second', 20)]
  await store.log.append('first', 1, first.slice(0, 3))
  await store.records!.settle()
  for (const entry of first.slice(3, 9)) await store.log.append('first', 1, [entry])
  const last = lastId()
  // Before the tables have seen the rows of the deltas, they are gone: by this process, or by another one.
  db.exec(`DELETE FROM ticks WHERE id > ${last - 6}`)
  for (const entry of second) await store.log.append('second', 1, [entry])
  expect(lastId()).toBeGreaterThan(last)
  await store.records!.settle()
  const { rows } = await store.records!.query('SELECT agent_id, count(*) FROM agent_stream_events GROUP BY agent_id')
  expect(rows).toContainEqual(['second', second.length])
  db.close()
  await store.close()
})
