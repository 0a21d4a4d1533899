/** How a file of an older version is migrated: alone, announced, and whole or not at all. */
import { readFileSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import { readAll } from '../contract/tools.contract.ts'
import { exampleRun } from '../example-run.contract.ts'
import { createTeller, migrateFile, type MigrationNews } from './migrate.ts'
import { migrationOf, steps } from './schema.ts'
import { sqliteStore } from './store.ts'
import { root } from '../tables/testing/indexed-store.ts'
import { oldFile } from '../testing/old-file.ts'
import type { OldVersion } from '../testing/older.ts'

describe('migration', () => {
  afterAll(() => rmSync(root, { recursive: true }))

  test.each<OldVersion>([1, 6, 7])('of schema %d, it is told what it takes, and takes no more', async (version) => {
    const path = await oldFile(version, 40)
    const before = statSync(path).size
    const news: MigrationNews[] = []
    const plan = migrationOf(path)!
    expect(plan).toMatchObject({ from: version, size: before })
    const sizes: number[] = []
    const store = sqliteStore(path, {
      migration: {
        tell(each) {
          news.push(each)
          sizes.push(statSync(path).size + (statSync(`${path}-journal`, { throwIfNoEntry: false })?.size ?? 0))
        },
      },
    })
    expect(news[0]).toEqual({ type: 'begins', ...plan, free: expect.any(Number) })
    expect(news.at(-1)).toMatchObject({ type: 'ended', from: version, to: plan.to })
    const percents = news.flatMap((each) => (each.type === 'progress' ? [each.percent] : []))
    expect(percents).toEqual(percents.toSorted((a, b) => a - b))
    expect(percents.at(-1)).toBe(100)
    // A page or two more for each table that is new.
    const margin = 60 * 4096
    expect(Math.max(...sizes)).toBeLessThan(before + plan.needs + margin)
    expect(statSync(path).size).toBeLessThan(before * (version < 6 ? 2.2 : 1.2) + margin)
    expect(await readAll(store, 'run7')).toEqual(exampleRun('run7', 200))
    await store.close()
  })

  const message =
    /The disk is too full to migrate .*: about [\d.]+ MB more are needed, [\d.]+ MB were free\. The file is as it was\. Make room/u

  test.each<OldVersion>([1, 6, 7, 12])(
    'of schema %d, a disk that is too full is told before anything',
    async (version) => {
      const path = await oldFile(version, 40)
      const before = readFileSync(path)
      const free = migrationOf(path)!.needs - 1
      expect(() => sqliteStore(path, { migration: { freeSpace: () => free } })).toThrow(message)
      expect(readFileSync(path).equals(before)).toBe(true)
    },
  )

  // From schema 7 on the file does not grow: `sqlite-migrate.all.test.ts` fills a disk.
  test.each<OldVersion>([1, 6])(
    'of schema %d, a disk that fills up leaves it as it was, and how much is missing is said',
    async (version) => {
      const path = await oldFile(version, 40)
      const before = readFileSync(path)
      const free = 100_000
      // What another program takes meanwhile: SQLite's own limit says the same as a disk.
      const db = new DatabaseSync(path)
      db.exec(`PRAGMA max_page_count = ${before.length / 4096 + 5}`)
      let left = 1e9
      const opening = () => migrateFile(db, path, steps, { freeSpace: () => left, tell: () => (left = free) })
      expect(opening).toThrow(
        expect.objectContaining({ code: 'store-full', message: expect.stringMatching(/too full to migrate/u) }),
      )
      expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
      expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: version })
      db.close()
      expect(readFileSync(path).equals(before)).toBe(true)
      const store = sqliteStore(path)
      expect(await readAll(store, 'run7')).toEqual(exampleRun('run7', 200))
      await store.close()
    },
  )

  test('a log has a line when it begins, every few seconds, for each warning, and when it is over', () => {
    const lines: string[] = []
    let now = 0
    const tell = createTeller('m.db', (line) => lines.push(line), { now: () => now })
    tell({ type: 'begins', from: 6, to: 12, size: 5e6, needs: 5.5e6, free: 1e9 })
    for (let percent = 1; percent <= 10; percent++) {
      now += 1000
      tell({ type: 'progress', percent })
    }
    tell({ type: 'warning', message: 'your view' })
    tell({ type: 'ended', from: 6, to: 12, ms: 10_000 })
    expect(lines).toEqual([
      'm.db was written by an older Millrace (schema 6, this version needs 12; 4.9 MB; a migration needs about 5.4 MB more, 976.6 MB are free); migrating …',
      'm.db: 5 % is migrated',
      'm.db: 10 % is migrated',
      'warning: your view',
      'm.db is migrated to schema 12, in 10.0 s',
    ])
  })
})
