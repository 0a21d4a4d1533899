/**
 * Who may use a data folder. One server owns it: two would each take the other's runs for crashed. Single runs of the
 * command line share it, and keep a server out while they last. The lock is the operating system's (SQLite's file
 * locks): it ends with its process, however that ends, and a recycled process id cannot hold it.
 */
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export type Release = () => void

/** Undefined when another process holds the folder in a way that excludes this one. */
export function lockData(data: string, how: 'alone' | 'shared'): Release | undefined {
  mkdirSync(resolve(data), { recursive: true, mode: 0o700 })
  // The file stays empty and is never deleted: whoever deleted it could part two holders.
  const db = new DatabaseSync(join(resolve(data), 'server.lock'), { timeout: 0 })
  try {
    // Nothing is ever written: a journal would only be left lying by a process that is killed.
    db.exec('PRAGMA journal_mode = MEMORY')
    db.exec(how === 'alone' ? 'BEGIN EXCLUSIVE' : 'BEGIN; SELECT count(*) FROM sqlite_schema')
  } catch (error) {
    db.close()
    if ((Number((error as { errcode?: unknown }).errcode) & 0xff) === 5) return undefined
    throw error
  }
  return () => db.close()
}
