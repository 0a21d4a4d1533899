/**
 * Opens a database for reading. In WAL mode SQLite creates a file beside it even then. Where it cannot, in a read-only folder or on a read-only
 * disk, no other process can write either, and the file is read as it is (`immutable=1`).
 */
import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { MillraceError } from '../../part/error.ts'

export function openToRead(path: string, timeout: number): DatabaseSync {
  const db = open(urlOf(path), timeout)
  return db ?? new DatabaseSync(immutable(path), { readOnly: true })
}

/** The URL with which the file can be read. */
export function readingUrl(path: string): string {
  const db = open(urlOf(path), 5000)
  db?.close()
  return (db === undefined ? immutable(path) : urlOf(path)).href
}

function urlOf(path: string): URL {
  const url = pathToFileURL(path)
  url.searchParams.set('mode', 'ro')
  return url
}

/** Undefined if the file beside it cannot be created. */
function open(url: URL, timeout: number): DatabaseSync | undefined {
  const db = new DatabaseSync(url, { timeout, readOnly: true })
  try {
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
    return db
  } catch (error) {
    db.close()
    if (cannotPrepare.has(Number((error as { errcode?: unknown }).errcode) & 0xff)) return undefined
    throw error
  }
}

/** SQLITE_READONLY and SQLITE_CANTOPEN. If the database itself cannot be opened, `open` fails before. */
const cannotPrepare: ReadonlySet<number> = new Set([8, 14])

function immutable(path: string): URL {
  // Its newest entries would be missing.
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    const why = `its newest entries are in ${path}-wal, which cannot be read in a folder that is read-only`
    const message = `cannot read the database ${path}: ${why}. Copy the folder to where you can write.`
    throw new MillraceError('store-failed', message, { status: 503 })
  }
  const url = urlOf(path)
  url.searchParams.set('immutable', '1')
  return url
}
