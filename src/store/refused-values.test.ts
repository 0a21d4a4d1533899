import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { startEntry } from './example-run.contract.ts'
import { sqliteStore } from './sqlite/store.ts'
import { watchStore } from './watch-store.ts'

describe('refused values', () => {
  test('a value that SQLite refuses fails its own run alone, and is no failure of the store', async () => {
    const failures: unknown[] = []
    const { store } = watchStore(sqliteStore(':memory:'), { onChange: (failure) => failures.push(failure) })
    onTestFinished(() => store.close())
    const wrong = { ...startEntry('wrong'), agent: {} } as unknown as Entry
    const appends = [
      store.log.append('right', 1, [startEntry('right')]),
      store.log.append('wrong', 1, [wrong]),
      store.log.append('none', 1, [{ ...startEntry('none'), threadId: null } as unknown as Entry]),
    ]
    const settled = await Promise.allSettled(appends)
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    for (const each of settled.slice(1)) expect(each).toMatchObject({ reason: { code: 'bad-entry', status: 400 } })
    expect(failures).toEqual([])
  })

  test('forks that were made from each other in a circle, by hand, are read to an end', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
    onTestFinished(() => rmSync(dir, { recursive: true }))
    const store = sqliteStore(join(dir, 'x.db'))
    onTestFinished(() => store.close())
    for (const id of ['a', 'b']) await store.log.append(id, 1, [startEntry(id)])
    const other = new DatabaseSync(join(dir, 'x.db'))
    other.exec("INSERT INTO forks (run, source, seq) VALUES ('a', 'b', 9), ('b', 'a', 9)")
    other.exec("INSERT OR IGNORE INTO index_queue (run) VALUES ('a'), ('b')")
    other.close()
    for await (const batch of store.log.read('a')) expect(batch).toHaveLength(1)
    await store.records!.settle()
  })
})
