/**
 * Who may use a data folder. One server owns it: two would each take the other's runs for crashed. Single runs of the
 * command line share it, and keep a server out while they last. The lock is the operating system's (SQLite's file
 * locks): it ends with its process, however that ends, and a recycled process id cannot hold it.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MillraceError, messageOf } from '../part/error.ts'

export type Release = () => void

/**
 * Undefined when another process holds the folder in a way that excludes this one, and goes on doing so for `patience` ms:
 * who only looks whether it is held lets go at once.
 */
export function lockData(data: string, how: 'alone' | 'shared', patience = 200): Release | undefined {
  mkdirSync(resolve(data), { recursive: true, mode: 0o700 })
  // The file stays empty and is never deleted: whoever deleted it could part two holders.
  let db: DatabaseSync
  try {
    db = new DatabaseSync(fileOf(data), { timeout: patience })
  } catch (error) {
    throw unusable(data, error)
  }
  try {
    // Nothing is ever written: a journal would only be left lying by a process that is killed.
    db.exec('PRAGMA journal_mode = MEMORY')
    db.exec(how === 'alone' ? 'BEGIN EXCLUSIVE' : 'BEGIN; SELECT count(*) FROM sqlite_schema')
  } catch (error) {
    db.close()
    if ((Number((error as { errcode?: unknown }).errcode) & 0xff) === 5) return undefined
    throw unusable(data, error)
  }
  return () => db.close()
}

/** Whether a server, or a server or single runs, hold the folder at this moment. What can hold nothing is not made. */
export function isHeld(data: string, by: 'server' | 'anyone'): boolean {
  if (!existsSync(fileOf(data))) return false
  try {
    // A moment's patience: another look is no holder.
    const release = lockData(data, by === 'server' ? 'shared' : 'alone', 20)
    release?.()
    return release === undefined
  } catch {
    // A lock of another account: who may not open it may not open the log either.
    return false
  }
}

/** It holds something, is a folder, or belongs to another account. */
function unusable(data: string, cause: unknown): MillraceError {
  const cure = 'It must be an empty file that you may write to. Stop what uses the folder, then delete the file.'
  return new MillraceError('data-lock', `${fileOf(data)} cannot be locked: ${messageOf(cause)}. ${cure}`, { cause })
}

function fileOf(data: string): string {
  return join(resolve(data), 'server.lock')
}
