/** The archive of ended runs: a folder, a SQLite file, or Postgres. Their rows stay in the store. */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { StoredRow } from '../run-row.ts'
import { folderArchive } from './folder-archive.ts'
import { postgresArchive } from './postgres-archive.ts'
import { isPostgresUrl } from './postgres-url.ts'
import { sqliteArchive } from './sqlite-archive.ts'

export interface Archive {
  /** Call it before writing: rejects if a package is missing. */
  load?(): Promise<void>
  /** The place where a run is or would be stored. */
  placeOf(row: Pick<StoredRow, 'startedAt'>): string
  /** Stores the entries of an ended run. Resolves once they survive a crash. Storing a run again changes nothing. */
  put(row: StoredRow, entries: AsyncIterable<readonly Entry[]>): Promise<void>
  /** The entries of a run at its place, in batches. Rejects with `store-failed` if they are missing or damaged. */
  read(run: string, place: string): AsyncIterable<Entry[]>
  /** Removes a run, if it is there. */
  remove(run: string, place: string): Promise<void>
  /** Bytes in use. May visit every run. */
  size(): Promise<number>
  /** Removes leftovers of crashes, and frees unused space. */
  tidy(): Promise<void>
  close(): Promise<void>
}

/**
 * Opens Postgres for its URL, a SQLite file if the name ends in `.db`, otherwise a folder. Opened on first use. Throws `bad-config` for another
 * address.
 */
export function openArchive(place: string): Archive {
  if (isPostgresUrl(place)) return postgresArchive(place)
  const scheme = /^([a-z][\w+.-]*):\/\//iu.exec(place)?.[1]
  if (scheme !== undefined) {
    const cure = 'Write a folder, a file that ends in .db, or postgres://host/database.'
    throw new MillraceError('bad-config', `record.archive: there is no archive for ${scheme}://. ${cure}`)
  }
  return place.endsWith('.db') ? sqliteArchive(place) : folderArchive(place)
}
