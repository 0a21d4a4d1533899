import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { exampleRun } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-private-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const modes = (path: string) => ['', '-wal', '-shm'].map((end) => (statSync(path + end).mode & 0o777).toString(8))

describe('private database', () => {
  test.skipIf(process.platform === 'win32')(
    'only the owner may read a database, new or old, whatever the rights of its folder',
    async () => {
      chmodSync(folder, 0o755)
      const path = join(folder, 'a.db')
      const store = sqliteStore(path)
      await store.log.append('r', 1, exampleRun('r'))
      expect(modes(path)).toEqual(['600', '600', '600'])

      // As an earlier version has left them: another process still has them open.
      for (const end of ['', '-wal', '-shm']) chmodSync(path + end, 0o644)
      const next = sqliteStore(path)
      expect(modes(path)).toEqual(['600', '600', '600'])
      await next.close()
      await store.close()
    },
  )

  test.skipIf(process.platform === 'win32')('the database of another program keeps its mode', () => {
    const path = join(folder, 'other.db')
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE theirs (x)')
    other.close()
    chmodSync(path, 0o644)
    expect(() => sqliteStore(path)).toThrow(/another program/u)
    expect((statSync(path).mode & 0o777).toString(8)).toBe('644')
  })
})
