/** How long compaction and deletion keep the event loop, by a clock of the test; what a kill in their middle leaves; what the tables say after it. */
import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { arbitraryNestedRun } from '../../../test/arbitrary-run.ts'
import { tablesOf } from '../../../test/support/agreement.ts'
import type { Entry } from '../../part/entry.ts'
import { readAll } from '../contract/tools.contract.ts'
import { exampleRun } from '../example-run.contract.ts'
import { createDropped, createBatchIndex } from './batch-index.ts'
import { createRunTable } from './runs.ts'
import { createTexts } from './texts.ts'
import { sqliteStore } from './store.ts'
import { createUpkeep } from './upkeep.ts'
import { often } from '../../../test/support/thorough.ts'
import { folder, newFile, textOf, record } from '../testing/long-run.ts'

describe('upkeep in slices', () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  test('a slice ends when its time is over, and the next one goes on', async () => {
    const path = newFile()
    const store = sqliteStore(path)
    await record(store, 'r', exampleRun('r', 4000), 4)
    await store.records!.settle()
    const db = new DatabaseSync(path)
    let now = 0
    let longest = 0
    let slices = 0
    const slice = <T>(work: () => T): T => {
      const began = now
      const result = work()
      longest = Math.max(longest, now - began)
      slices++
      return result
    }
    const groups = createBatchIndex(db)
    const texts = createTexts(db)
    const upkeep = createUpkeep(db, {
      runs: createRunTable(db),
      groups,
      texts,
      dropped: createDropped(db, groups, texts),
      reading: (_, read) => slice(read),
      write: async (_, apply) => {
        db.exec('BEGIN IMMEDIATE')
        const result = slice(apply)
        db.exec('COMMIT')
        return result
      },
      changed: () => undefined,
      // Each look at the clock finds that a ms has passed: each row takes one.
      clock: () => now++,
    })
    await upkeep.compact('r')
    // 1002 rows were read, five or six in a slice.
    expect(slices).toBeGreaterThan(1000 / 7)
    expect(longest).toBeLessThanOrEqual(7)
    expect(textOf(await readAll(store, 'r'))).toBe(textOf(exampleRun('r', 4000)))
    await store.close()

    const again = sqliteStore(path)
    const entries = exampleRun('s', 4)
    const calls = Array.from({ length: 2000 }, (_, i) => ({
      ...entries[4]!,
      seq: i + 8,
      type: 'data',
      name: 'x',
      data: i,
    }))
    await again.log.append('s', 1, [...entries.slice(0, 7), ...(calls as unknown as Entry[])])
    await again.log.append('s', 1, [{ ...entries.at(-1)!, seq: 2008 }])
    await again.records!.settle()
    await again.close()
    slices = longest = 0
    expect(await upkeep.drop('s')).toBe(true)
    // 2000 rows of events, 200 at a time.
    expect(slices).toBeGreaterThanOrEqual(3)
    expect(longest).toBeLessThanOrEqual(7)
    for (const table of ['indexed_events', 'indexed_texts', 'indexed_runs', 'indexed_agents']) {
      expect(db.prepare(`SELECT count(*) AS n FROM ${table} WHERE run = 2`).get(), table).toEqual({ n: 0 })
    }
    db.close()
  })

  test('a deletion that stops in its middle leaves a run whose tables are filled again', async () => {
    const path = newFile()
    const store = sqliteStore(path)
    await store.log.append('r', 1, exampleRun('r', 300))
    const whole = await tablesOf(store, 'word')
    const stop = async () => {
      throw new Error('stop')
    }
    await expect(store.upkeep!.drop('r', { rest: stop })).rejects.toThrow('stop')
    expect(await store.runs.get('r')).toBeDefined()
    expect(await tablesOf(store, 'word')).toEqual(whole)
    // As a crash would have left it.
    const db = new DatabaseSync(path)
    for (const table of ['indexed_runs', 'indexed_events', 'indexed_texts']) db.exec(`DELETE FROM ${table}`)
    db.exec(`DELETE FROM search`)
    db.close()
    await store.upkeep!.vacuum()
    expect(await tablesOf(store, 'word')).toEqual(whole)
    await store.close()
  })

  test('the tables over compacted runs and their forks are those that a rebuild makes', async () => {
    const path = newFile()
    const store = sqliteStore(path)
    const runs = fc.sample(arbitraryNestedRun, { numRuns: often(12), seed: 11 })
    runs.push(exampleRun('x', 3000))
    for (const [i, given] of runs.entries()) {
      const entries = given.map((entry) => (entry.type === 'run-start' ? { ...entry, runId: `r${i}` } : entry))
      await record(store, `r${i}`, entries, 7)
    }
    const last = `r${runs.length - 1}`
    await store.log.fork(last, 1500, 'f')
    await store.log.append('f', 1, exampleRun(last, 3000).slice(1500, 1700))
    await store.log.fork('f', 1600, 'g')
    const before = (await tablesOf(store, 'word')) as Record<string, unknown>
    for (let i = 0; i < runs.length; i++) await store.upkeep!.compact(`r${i}`)
    expect((await readAll(store, last)).length).toBeLessThan(50)
    const after = (await tablesOf(store, 'word')) as Record<string, string[]>
    await store.records!.reindex()
    const built = (await tablesOf(store, 'word')) as Record<string, string[]>
    const events = 'agent_stream_events'
    for (const name of Object.keys(after).filter((each) => each !== 'search'))
      expect([name, after[name]]).toEqual([name, built[name]])
    for (const name of Object.keys(after).filter((each) => each !== events && each !== 'search'))
      expect([name, after[name]]).toEqual([name, before[name]])
    // Where a text is cut for the search may differ: all of it is found.
    for (const word of ['1', '1499', '2999']) {
      const hits = await store.records!.search({ q: `"word ${word}"`, kinds: ['text'] })
      expect(hits.map(({ run }) => run)).toContain(last)
    }
    await store.close()
  })

  test('search finds the same texts after compaction', async () => {
    const store = sqliteStore(newFile())
    const entries = exampleRun('r', 8000)
    await record(store, 'r', entries, 100)
    await store.records!.settle()
    const words = [0, 1800, 3600, 5400, 7200, 7999]
    const find = async () =>
      Promise.all(
        words.map(async (word) =>
          (await store.records!.search({ q: `"word ${word}"` })).map(({ run, kind }) => [run, kind]),
        ),
      )
    const before = await find()
    expect(before.flat().length).toBeGreaterThanOrEqual(words.length)
    await store.upkeep!.compact('r')
    expect(await find()).toEqual(before)
    await store.close()
  })
})
