/** What users add to the database survives its migration. */
import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import { exampleRun } from '../example-run.contract.ts'
import type { MigrationNews } from './migrate.ts'
import { sqliteStore } from './store.ts'
import { makeOlder, type OldVersion } from '../testing/older.ts'
import { newFile, root } from '../tables/testing/indexed-store.ts'

afterAll(() => rmSync(root, { recursive: true }))

const table = (db: DatabaseSync) =>
  new Map(
    db
      .prepare("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'own%' ORDER BY name")
      .all()
      .map(({ name, sql }) => [String(name), String(sql)]),
  )

/** Names with every sign that SQL has a meaning for. */
const additions = `
  CREATE TABLE own_notes (run TEXT, note TEXT);
  CREATE VIEW "own ""cost"" per; day" AS SELECT date(started_at / 1000, 'unixepoch') AS day, sum(cost) AS usd FROM runs GROUP BY 1;
  CREATE VIEW own_of_view AS SELECT * FROM "own ""cost"" per; day";
  CREATE VIEW own_steps AS SELECT s.duration FROM steps s JOIN ticks t ON t.run = s.run;
  CREATE INDEX own_costs ON runs (cost);
  CREATE TRIGGER own_trigger AFTER UPDATE ON runs BEGIN INSERT INTO own_notes VALUES (new.id, new.status); END;
  CREATE TRIGGER own_of_notes AFTER INSERT ON own_notes BEGIN UPDATE own_notes SET note = 'seen'; END;`

describe('foreign databases', () => {
  test.each<OldVersion>([6, 7])(
    'of schema %d, views, triggers and indexes of the user are there as before',
    async (version) => {
      const path = newFile()
      await oldFile(path, version, additions)
      const news: MigrationNews[] = []
      const store = sqliteStore(path, { migration: { tell: (each) => news.push(each) } })
      await store.log.append('after', 1, exampleRun('after'))
      await store.records!.reindex()
      await store.close()
      expect(news.filter(({ type }) => type === 'warning')).toEqual([])
      const db = new DatabaseSync(path)
      const before = new DatabaseSync(':memory:')
      before.exec(
        `CREATE TABLE runs (cost, started_at, id, status); CREATE TABLE ticks (x); CREATE TABLE steps (x); ${additions}`,
      )
      expect(table(db)).toEqual(table(before))
      expect(db.prepare('SELECT * FROM own_of_view').all()).toHaveLength(1)
      // It did not run in the migration.
      expect(db.prepare('SELECT DISTINCT run FROM own_notes').all()).toEqual([])
      db.exec(`UPDATE runs SET status = 'failed' WHERE id = 'after'`)
      expect(db.prepare('SELECT * FROM own_notes').all()).toEqual([{ run: 'after', note: 'seen' }])
      db.close()
    },
  )

  test('broken objects are named: views stay, and objects that would harm our tables are omitted with their text', async () => {
    const path = newFile()
    await oldFile(
      path,
      6,
      `CREATE VIEW own_broken AS SELECT id, first_seq FROM ticks WHERE old_column = 1;
     CREATE VIEW own_old AS SELECT no_such FROM ticks;
     CREATE TRIGGER own_ticks AFTER INSERT ON ticks BEGIN SELECT new.old_column; END;
     CREATE INDEX own_index ON ticks (old_column);`,
      'ALTER TABLE ticks ADD COLUMN old_column',
    )
    const warnings: string[] = []
    const store = sqliteStore(path, {
      migration: { tell: (each) => each.type === 'warning' && warnings.push(each.message) },
    })
    await store.log.append('after', 1, exampleRun('after'))
    await store.close()
    expect(warnings.toSorted((a, b) => a.localeCompare(b))).toEqual([
      expect.stringMatching(
        /^your index "own_index" of "ticks" .*old_column.* left out; its text: CREATE INDEX own_index/u,
      ),
      expect.stringMatching(
        /^your trigger "own_ticks" of "ticks" .*old_column.* left out; its text: CREATE TRIGGER own_ticks/u,
      ),
      expect.stringMatching(/^your view "own_broken" .*no such column: old_column. It was kept/u),
    ])
    const db = new DatabaseSync(path)
    expect([...table(db).keys()]).toEqual(['own_broken', 'own_old'])
    db.close()
  })

  test('a view that has the name of one of ours, from before there were any, gets another', async () => {
    const path = newFile()
    await oldFile(path, 1, `CREATE VIEW [steps] AS SELECT count(*) AS n FROM runs`)
    const warnings: string[] = []
    const migration = { tell: (each: MigrationNews) => each.type === 'warning' && warnings.push(each.message) }
    await sqliteStore(path, { migration }).close()
    expect(warnings).toEqual(['Millrace has a view "steps" of its own now: yours is "steps_own".'])
    const db = new DatabaseSync(path)
    expect(db.prepare('SELECT * FROM steps_own').all()).toEqual([{ n: 3 }])
    expect(db.prepare('SELECT step FROM steps').all()).toEqual([])
    db.close()
  })
})

async function oldFile(path: string, version: OldVersion, sql: string, first = ''): Promise<void> {
  const store = sqliteStore(path)
  for (const id of ['a', 'b', 'c']) await store.log.append(id, 1, exampleRun(id))
  await store.close()
  const db = new DatabaseSync(path)
  makeOlder(db, version)
  db.exec(first)
  db.exec(sql)
  db.close()
}
