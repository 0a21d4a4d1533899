import { DatabaseSync } from 'node:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { delta, live } from '../contract/tools.contract.ts'
import { startEntry } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-version-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const cure = /newer Millrace has migrated the database \(schema 999, .*restart this process with that version/

describe('schema version', () => {
  test('once a newer version has migrated the file, an open store writes and reads nothing more, and says why', async () => {
    const path = join(root, 'millrace.db')
    const store = sqliteStore(path)
    await store.log.append('r', 1, [startEntry('r')])
    const following = (async () => {
      for await (const batch of store.log.read('r', { after: 1, signal: live() })) return batch
    })()
    following.catch(() => undefined)

    const newer = new DatabaseSync(path)
    newer.exec('BEGIN; DELETE FROM inbox; PRAGMA user_version = 999; COMMIT')

    const failure = await store.log.append('r', 1, [delta(2)]).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'store-failed', detail: expect.stringMatching(cure) })
    await expect(store.log.append('r', 1, [delta(2)])).rejects.toMatchObject({ code: 'store-failed' })
    await expect(store.runs.get('r')).rejects.toMatchObject({
      code: 'store-version',
      message: expect.stringMatching(cure),
    })
    await expect(following).rejects.toMatchObject({ code: 'store-version' })
    expect(newer.prepare('SELECT count(*) AS n FROM ticks').get()!['n']).toBe(1)
    newer.close()
    await store.close()
  })

  test('a follower notices a newer version as well; commits of the same version change nothing', async () => {
    const path = join(root, 'followed.db')
    const [store, other] = [sqliteStore(path), sqliteStore(path)]
    await store.log.append('r', 1, [startEntry('r')])
    const reader = store.log.read('r', { after: 1, signal: live() })[Symbol.asyncIterator]()
    await other.log.append('s', 1, [startEntry('s')])
    const next = reader.next()
    next.catch(() => undefined)
    await store.log.append('r', 1, [delta(2)])
    expect((await next).value).toEqual([delta(2)])
    const later = reader.next()
    later.catch(() => undefined)
    const newer = new DatabaseSync(path)
    newer.exec('PRAGMA user_version = 999')
    newer.close()
    await expect(later).rejects.toMatchObject({ code: 'store-version' })
    await Promise.all([store.close(), other.close()])
  })

  test('nobody need wait or write: reads fail a moment later, and its tables are not made anew', async () => {
    const path = join(root, 'idle.db')
    const store = sqliteStore(path)
    await store.log.append('r', 1, [startEntry('r')])
    await store.records!.settle()
    const newer = new DatabaseSync(path)
    newer.exec('PRAGMA user_version = 999')
    await vi.waitFor(() => expect(store.runs.list()).rejects.toMatchObject({ code: 'store-version' }))
    await expect(store.records!.reindex()).rejects.toMatchObject({ code: 'store-version' })
    expect(newer.prepare('SELECT count(*) AS n FROM indexed_runs').get()).toEqual({ n: 1 })
    newer.close()
    await store.close()
  })

  test('rows that the tables lack are left to the newer version', async () => {
    const path = join(root, 'behind.db')
    const store = sqliteStore(path)
    await store.log.append('r', 1, [startEntry('r')])
    const newer = new DatabaseSync(path)
    newer.exec('PRAGMA user_version = 999')
    await vi.waitFor(() => expect(store.runs.list()).rejects.toMatchObject({ code: 'store-version' }))
    // Several times as long as it waits before it fills them.
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(newer.prepare('SELECT count(*) AS n FROM indexed_runs').get()).toEqual({ n: 0 })
    newer.close()
    await store.close()
  })
})
