/** A file with runs, as an older version left it. */
import { DatabaseSync } from 'node:sqlite'
import { exampleRun } from '../example-run.contract.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { newFile } from '../tables/testing/indexed-store.ts'
import { makeOlder, type OldVersion } from './older.ts'

export async function oldFile(version: OldVersion, runs = 3): Promise<string> {
  const path = newFile()
  const store = sqliteStore(path)
  for (let n = 0; n < runs; n++) await store.log.append(`run${n}`, 1, exampleRun(`run${n}`, 200))
  await store.close()
  const db = new DatabaseSync(path)
  makeOlder(db, version)
  db.exec('PRAGMA journal_mode = DELETE; VACUUM')
  db.close()
  return path
}
