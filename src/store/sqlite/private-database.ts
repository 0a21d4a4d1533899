/**
 * Makes the files of a database readable for their owner only, whatever the folder allows: they hold conversations. SQLite gives the files beside
 * the database the mode of the database.
 */
import { chmodSync, closeSync, openSync, statSync } from 'node:fs'

/** Creates the file of a new database. */
export function createPrivate(path: string): void {
  if (path === '' || path === ':memory:' || path.startsWith('file:')) return
  try {
    // An existing file is not opened: closing it would end the locks of SQLite in this process.
    closeSync(openSync(path, 'ax', 0o600))
  } catch {
    // It exists, or SQLite reports why it cannot be created.
  }
}

/** Removes other users' access to the files of an older database. */
export function makePrivate(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    try {
      const found = statSync(file, { throwIfNoEntry: false })
      if (found !== undefined && (found.mode & 0o077) !== 0) chmodSync(file, 0o600)
    } catch {
      // It belongs to another account.
    }
  }
}
