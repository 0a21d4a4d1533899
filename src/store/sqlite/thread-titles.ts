/** The table `thread_titles` of a SQLite file. */
import { toThreadTitle, type ThreadTitle, type ThreadTitles } from '../../part/thread-title.ts'
import { fold } from '../run-query.ts'
import type { TableContext } from './ledger.ts'

/** `title_folded`: the same in lower case, for searches. `time`: epoch ms. */
export const threadTitlesTable = `
  CREATE TABLE thread_titles (
    thread TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    title_folded TEXT NOT NULL,
    user TEXT NOT NULL,
    tenant TEXT NOT NULL,
    time INTEGER NOT NULL
  ) WITHOUT ROWID;`

export function createSqliteThreadTitles({ db, write, reading }: TableContext): ThreadTitles {
  const has = db.prepare('SELECT 1 FROM runs WHERE thread_id = ? LIMIT 1')
  const remove = db.prepare('DELETE FROM thread_titles WHERE thread = ?')
  const insert = db.prepare('INSERT INTO thread_titles VALUES (?, ?, ?, ?, ?, ?)')
  const find = db.prepare('SELECT thread, title, user, tenant, time FROM thread_titles WHERE thread = ?')
  return {
    put(given) {
      const { thread, title, user, tenant, time } = toThreadTitle(given)
      return write('name a thread', () => {
        if (has.get(thread) === undefined) return false
        remove.run(thread)
        if (title !== '') insert.run(thread, title, fold(title), user, tenant, time)
        return true
      })
    },
    of: async (threads) =>
      reading('read the titles of threads', () => {
        const rows = threads.map((thread) => find.get(thread) as ThreadTitle | undefined)
        return new Map(rows.flatMap((row) => (row === undefined ? [] : [[row.thread, { ...row }] as const])))
      }),
  }
}
