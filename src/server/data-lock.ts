/**
 * Locks a data folder. A server locks it exclusively: two servers would each treat the other's runs as crashed. `millrace run`
 * takes a shared lock, which keeps servers out until it ends. These are SQLite's file locks: the operating system
 * releases them when the process ends, even after a crash, and a reused process id cannot hold one.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MillraceError, messageOf } from '../part/error.ts'
import { createPrivate, makePrivate } from '../store/sqlite/private-database.ts'

export type Release = () => void

/**
 * Undefined when another process holds a conflicting lock for longer than `patience` ms. The wait covers processes that only
 * check the lock. Throws `data-lock`.
 */
export function lockData(data: string, how: 'alone' | 'shared', patience = 200): Release | undefined {
  mkdirSync(resolve(data), { recursive: true, mode: 0o700 })
  // The file stays empty and is never deleted: after a deletion two processes could lock different files. Read permission is enough to lock it.
  createPrivate(fileOf(data))
  makePrivate(fileOf(data))
  let db: DatabaseSync
  try {
    db = new DatabaseSync(fileOf(data), { timeout: patience })
  } catch (error) {
    throw unusable(data, error)
  }
  try {
    // Nothing is written, and a killed process would leave a journal file behind.
    db.exec('PRAGMA journal_mode = MEMORY')
    db.exec(how === 'alone' ? 'BEGIN EXCLUSIVE' : 'BEGIN; SELECT count(*) FROM sqlite_schema')
  } catch (error) {
    db.close()
    if ((Number((error as { errcode?: unknown }).errcode) & 0xff) === 5) return undefined
    throw unusable(data, error)
  }
  return () => db.close()
}

/** Whether a server (or, with `anyone`, also a single run) holds the folder now. Creates no file. */
export function isHeld(data: string, by: 'server' | 'anyone'): boolean {
  if (!existsSync(fileOf(data))) return false
  try {
    // Wait briefly: another process may be checking the lock too.
    const release = lockData(data, by === 'server' ? 'shared' : 'alone', 20)
    release?.()
    return release === undefined
  } catch {
    // The lock file belongs to another account, and so does the log.
    return false
  }
}

/** The lock file is not empty, is a folder, or belongs to another account. */
function unusable(data: string, cause: unknown): MillraceError {
  const cure =
    'It must be an empty file that you can write to. Stop all processes that use the folder, then delete the file.'
  return new MillraceError('data-lock', `${fileOf(data)} cannot be locked: ${messageOf(cause)}. ${cure}`, { cause })
}

function fileOf(data: string): string {
  return join(resolve(data), 'server.lock')
}
