/** An archive in a SQLite file, for the instances of one machine. It is a whole store: its tables, SQL and search cover archived runs. */
import { mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { hasEnded, type Store } from '../../part/log.ts'
import { sqliteStore } from '../sqlite/store.ts'
import { storeFailed } from '../store-error.ts'
import type { Archive } from './archive.ts'

/** All runs have the same place. */
const place = 'db'

export function sqliteArchive(path: string): Archive {
  let opened: Store | undefined

  function store(): Store {
    if (opened !== undefined) return opened
    try {
      mkdirSync(dirname(resolve(path)), { recursive: true, mode: 0o700 })
    } catch (error) {
      throw storeFailed('cannot open the archive', path, error)
    }
    return (opened = sqliteStore(path))
  }

  /** Whether the whole run is there. */
  async function isThere(run: string): Promise<boolean> {
    const row = await store().runs.get(run)
    return row !== undefined && hasEnded(row.status)
  }

  return {
    placeOf: () => place,
    async put({ id, epoch }, entries) {
      if (await isThere(id)) return
      // Batch by batch, so that rows stay short. Stored entries are skipped.
      for await (const batch of entries) await store().log.append(id, epoch, batch)
    },
    async *read(run) {
      if (!(await isThere(run)))
        throw storeFailed(`cannot read run ${run} in the archive`, path, 'the run is not there')
      yield* store().log.read(run)
    },
    async remove(run) {
      await store().upkeep!.drop(run)
    },
    size: async () => (await store().upkeep!.size()).used,
    async tidy() {
      await store().upkeep!.vacuum()
      await store().upkeep!.erase!()
    },
    async close() {
      await opened?.close()
    },
  }
}
