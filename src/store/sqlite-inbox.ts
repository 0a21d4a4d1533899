/** The `inbox` table: the unique constraint on (run, key) makes the first post win. */
import type { DatabaseSync } from 'node:sqlite'
import type { InboxMessage, Posted } from '../part/log.ts'
import { decodeMessage } from './encode.ts'
import type { EncodedMessage } from './post-all.ts'

export interface InboxTable {
  /** Call this inside a transaction. */
  post(run: string, message: EncodedMessage): Posted
  next(run: string, after: number): InboxMessage | undefined
}

export function createInboxTable(db: DatabaseSync): InboxTable {
  const insert = db.prepare(
    `INSERT INTO inbox (run, n, key, message) SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3 FROM inbox WHERE run = ?1
     ON CONFLICT (run, key) DO NOTHING`,
  )
  const winner = db.prepare('SELECT message FROM inbox WHERE run = ? AND key = ?')
  const next = db.prepare('SELECT n, key, message FROM inbox WHERE run = ? AND n > ? ORDER BY n LIMIT 1')
  return {
    post(run, { key, message, text }) {
      if (insert.run(run, key, text).changes === 1) return { first: true, message }
      return { first: false, message: decodeMessage(String(winner.get(run, key)?.message)) }
    },
    next(run, after) {
      const row = next.get(run, after)
      return row && { n: Number(row.n), key: String(row.key), message: decodeMessage(String(row.message)) }
    },
  }
}
