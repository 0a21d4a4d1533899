import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { diskFault, hasDisks, mountDisk } from '../../../test/support/disk.ts'
import { readAll } from '../contract/tools.contract.ts'
import { exampleRun } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'
import { root } from '../tables/testing/indexed-store.ts'
import { oldFile } from '../testing/old-file.ts'
import type { OldVersion } from '../testing/older.ts'

describe('migration', () => {
  afterAll(() => rmSync(root, { recursive: true }))

  test.skipIf(!hasDisks).each<OldVersion>([1, 6, 7, 12])(
    `of schema %d, a real disk that fills up leaves the file as it was${diskFault}`,
    async (version) => {
      const path = await oldFile(version, 40)
      const before = readFileSync(path)
      // Room for the file and a few pages of a journal.
      const disk = mountDisk(before.length + 4 * 4096)!
      onTestFinished(() => disk.free())
      const there = join(disk.dir, 'millrace.db')
      copyFileSync(path, there)
      // As if it was filled by others after it was looked at.
      const looks = [1e9, 0]
      const opening = () => sqliteStore(there, { migration: { freeSpace: () => looks.shift() } })
      expect(opening).toThrow(
        expect.objectContaining({ code: 'store-full', message: expect.stringMatching(/too full to migrate/u) }),
      )
      const db = new DatabaseSync(there, { readOnly: true })
      expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: version })
      db.close()
      expect(readFileSync(there).equals(before)).toBe(true)
      copyFileSync(there, path)
      const store = sqliteStore(path)
      expect(await readAll(store, 'run7')).toEqual(exampleRun('run7', 200))
      await store.close()
    },
  )
})
