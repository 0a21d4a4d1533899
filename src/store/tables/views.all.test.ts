/** The views in an older SQLite than ours: with the program that users open the database with. Debian 12 has 3.40. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { recordAll } from '../../../test/support/recorded.ts'
import { exampleRun } from '../example-run.contract.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { namedQueries } from './named-queries.ts'
import { views } from './views.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-views-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const { stdout: version, status } = spawnSync('sqlite3', ['--version'], { encoding: 'utf8' })

test.skipIf(status !== 0)(
  'the program sqlite3 reads the same rows from every view, and runs every named query',
  async () => {
    const path = join(folder, 'a.db')
    const store = sqliteStore(path)
    await recordAll(store)
    // Deltas in groups, and in the tail of a run that goes on.
    const long = exampleRun('long', 500)
    for (let i = 0; i < long.length - 10; i += 5) await store.log.append('long', 1, long.slice(i, i + 5))
    await store.records!.settle()
    const asked = (sql: string) => {
      const text = execFileSync('sqlite3', ['-json', '-readonly', path, sql], { encoding: 'utf8', maxBuffer: 2 ** 28 })
      return text === '' ? [] : (JSON.parse(text) as Record<string, unknown>[])
    }
    const told = async (sql: string) => {
      const { columns, rows } = await store.records!.query(sql, { limit: 1e6 })
      return rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])))
    }
    const sorted = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).toSorted()
    for (const [name] of views) {
      const sql = `SELECT * FROM ${name}`
      expect([name, version, sorted(asked(sql))]).toEqual([name, version, sorted(await told(sql))])
    }
    for (const { sql, defaults } of Object.values(namedQueries)) {
      const values = Object.entries({ execution: `'slow'`, ...defaults })
      const text = values.reduce((query, [name, value]) => query.replaceAll(`:${name}`, String(value)), sql)
      expect(asked(text).length).toBe((await told(text)).length)
    }
    await store.close()
  },
)
