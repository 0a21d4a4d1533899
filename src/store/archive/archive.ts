/** Where runs go that have ended: a folder, a SQLite file, or Postgres. Their rows stay in the store. */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { StoredRow } from '../run-row.ts'
import { folderArchive } from './folder-archive.ts'
import { postgresArchive } from './postgres-archive.ts'
import { isPostgresUrl } from './postgres-url.ts'
import { sqliteArchive } from './sqlite-archive.ts'

export interface Archive {
  /** For who will write to it: rejects if a package is missing. */
  load?(): Promise<void>
  /** Where a run is, or would be. */
  placeOf(row: Pick<StoredRow, 'startedAt'>): string
  /** Stores the entries of a run that has ended. Resolves once they survive a crash. The same again changes nothing. */
  put(row: StoredRow, entries: AsyncIterable<readonly Entry[]>): Promise<void>
  /** The entries of a run at its place, in batches. Rejects with `store-failed` if they are missing or damaged. */
  read(run: string, place: string): AsyncIterable<Entry[]>
  /** Removes a run. Nothing happens if it is not there. */
  remove(run: string, place: string): Promise<void>
  /** Bytes in use. It may have to look at every run. */
  size(): Promise<number>
  /** Removes what crashes have left, and gives unused space back. */
  tidy(): Promise<void>
  close(): Promise<void>
}

/**
 * Postgres if it is an address of that, a SQLite file if the name ends in `.db`, else a folder. Opened when it is first used. Throws `bad-config`
 * for another address.
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
