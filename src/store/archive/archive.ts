/** Where runs go that have ended: a folder, or a SQLite file. Their rows stay in the store. */
import type { Entry } from '../../part/entry.ts'
import type { StoredRow } from '../run-row.ts'
import { folderArchive } from './folder-archive.ts'
import { sqliteArchive } from './sqlite-archive.ts'

export interface Archive {
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

/** A SQLite file if the name ends in `.db`, else a folder. Opened when it is first used. */
export function openArchive(path: string): Archive {
  return path.endsWith('.db') ? sqliteArchive(path) : folderArchive(path)
}
