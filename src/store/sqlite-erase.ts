/**
 * Leaves no byte of what was deleted. SQLite overwrites deleted rows and freed pages (`secure_delete`). Three things are left:
 *
 * - The words of texts: the full-text index has no texts, so that it can only note which are gone. It forgets their words when it merges
 *   its segments, all of them.
 * - The WAL, in which pages stand as they were, until it is truncated. Who reads meanwhile keeps it.
 * - Copies of rows that SQLite has moved from one page to another: it does not overwrite the place that they came from while that page is
 *   in use. Only `VACUUM` does away with them: it writes the file anew, in which commits wait. For a small file that takes a moment.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Erased } from '../part/upkeep.ts'

export interface EraseContext {
  /** Does something in a transaction. `pages`: about how many pages of the file it changes. */
  write<T>(what: string, apply: () => T, pages: number): Promise<T>
  /** Does something again and again until it returns false or the slice is over. Returns whether more is to do. */
  slice(step: () => boolean): boolean
  /** `Checkpoints.erase`. Undefined for a database in memory. */
  eraseFile: ((rewrites: boolean) => Promise<boolean>) | undefined
}

/** Bytes of a file that is written anew without being asked for: about 0.2 s. */
const smallFile = 16 * 1024 * 1024
/** Pages of the full-text index that are merged in one go: about 2 ms. */
const mostPages = 16
/** Rows of the index that say which texts of a segment are gone have ids from here on. */
const firstTombstone = 2 ** 53

export function createErase(db: DatabaseSync, { write, slice, eraseFile }: EraseContext) {
  const state = db.prepare('SELECT generation, erased FROM index_state')
  const mark = db.prepare('UPDATE index_state SET erased = max(erased, ?)')
  const tombstone = db.prepare(`SELECT 1 FROM search_data WHERE id >= ${firstTombstone} LIMIT 1`)
  const merge = db.prepare(`INSERT INTO search (search, rank) VALUES ('merge', ?)`)
  const changes = db.prepare('SELECT total_changes() AS n')
  const size = db.prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size')
  let last: Promise<unknown> = Promise.resolve()

  /** Returns whether there was something to merge. A negative number of pages begins with all segments. */
  function mergeSome(pages: number): boolean {
    const before = Number(changes.get()!.n)
    merge.run(pages)
    // One change is the command itself.
    return Number(changes.get()!.n) - before > 1
  }

  async function forgetWords(rest: () => Promise<void>): Promise<void> {
    let isBegun = false
    const some = () =>
      slice(() => {
        if (isBegun) return mergeSome(mostPages)
        isBegun = true
        return tombstone.get() !== undefined && mergeSome(-mostPages)
      })
    while (await write('erase the words of deleted runs', some, 256)) await rest()
  }

  async function erase(rest: () => Promise<void>, rewrites: boolean): Promise<Erased> {
    const { generation, erased } = state.get()!
    if (generation === erased && !rewrites) return 'nothing'
    await forgetWords(rest)
    const all = rewrites || Number(size.get()!.bytes) <= smallFile
    if (eraseFile !== undefined && !(await eraseFile(all))) return 'read'
    await write('note that deleted runs are erased', () => mark.run(generation!), 1)
    return all ? 'nothing' : 'moved'
  }

  /** One at a time: what comes second often finds nothing to do. */
  return (rest: () => Promise<void>, rewrites: boolean): Promise<Erased> => {
    const done = last.then(() => erase(rest, rewrites))
    last = done.catch(() => undefined)
    return done
  }
}
