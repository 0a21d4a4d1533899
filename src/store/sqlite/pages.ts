/** Reads the `ticks` table in pages: the entries of one run, those of a fork from its source, and the changes of all runs. */
import { parseJson } from '../../part/json.ts'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Entry } from '../../part/entry.ts'
import type { Change } from '../../part/log.ts'
import type { RunUser } from '../../part/principal.ts'
import { sizeOf, sizeOfRow } from './delta-block.ts'
import { decodeEntries, type Restore } from '../encode.ts'
import { ofFork, type Origin } from '../run-row.ts'
import type { BatchIndex } from './batch-index.ts'

/** Page limits: about 256 KB of text, or 256 rows. The row that reaches a limit is included. */
const pageLength = 256 * 1024
export const pageRows = 256

export interface SqlitePages {
  /**
   * Entries after this one; at most `rows` rows of the table. With `types`, a row without such entries yields only its last one, so that unwanted
   * text is not parsed.
   */
  read(run: string, after: number, rows?: number, types?: readonly Entry['type'][]): Entry[]
  changes(after: number): Change[]
  position(): number
  /** The origin of a fork. */
  origin(run: string): Origin | undefined
  /** Call this inside a transaction. */
  addFork(run: string, origin: Origin): void
}

export function createPages(db: DatabaseSync, groups: BatchIndex, restore: Restore): SqlitePages {
  // An empty row is the placeholder of a deleted one.
  const later = db.prepare(
    `SELECT id, run, entries FROM ticks WHERE id > ? AND entries <> '' ORDER BY id LIMIT ${pageRows}`,
  )
  const last = db.prepare('SELECT coalesce(max(id), 0) AS n FROM ticks')
  // Migrations read entries before the table has all of its columns.
  const fork = db.prepare('SELECT * FROM forks WHERE run = ?')
  let insertFork: StatementSync | undefined
  // Shared entries of a fork are not changes: the tables would not be notified.
  const queueFork = db.prepare('INSERT OR IGNORE INTO index_queue (run) VALUES (?)')

  function origin(run: string): Origin | undefined {
    const row = fork.get(run)
    if (row === undefined) return undefined
    return {
      source: String(row.source),
      seq: Number(row.seq),
      at: row.at === null ? undefined : Number(row.at),
      user: typeof row.user === 'string' ? (parseJson(row.user) as RunUser) : undefined,
    }
  }

  function rowsOf(run: string, after: number, rows: number, types?: readonly Entry['type'][]): Entry[] {
    // As JSON.stringify writes it. Within a string its quotes would be escaped.
    const marks = types?.map((type) => `"type":"${type}"`)
    const texts: string[] = []
    let length = 0
    for (const row of groups.from(run, after + 1)) {
      const { entries: text } = row
      const holdsOne = marks === undefined || marks.some((mark) => text.includes(mark))
      texts.push(holdsOne ? text : text.slice(text.lastIndexOf('\n') + 1))
      length += sizeOfRow(row)
      if (texts.length >= rows || length >= pageLength) break
    }
    const entries = decodeEntries(texts, restore)
    // The cursor may be inside the first row.
    const from = entries.findIndex(({ seq }) => seq > after)
    return from < 0 ? [] : entries.slice(from)
  }

  return {
    read(run, after, rows = pageRows, types) {
      let from = run
      let end = Infinity
      const own = origin(run)
      const seen = new Set<string>()
      for (let at = own; at !== undefined && after < at.seq && !seen.has(at.source); at = origin(at.source)) {
        seen.add(at.source)
        from = at.source
        end = Math.min(end, at.seq)
      }
      if (from === run || own === undefined) return rowsOf(from, after, rows, types)
      const entries = rowsOf(from, after, rows)
      return entries.filter(({ seq }) => seq <= end).map((entry) => ofFork(entry, run, own))
    },
    changes(after) {
      const changes: Change[] = []
      let length = 0
      for (const { id, run, entries } of later.iterate(after)) {
        const text = String(entries)
        const change = { n: Number(id), run: String(run), entries: decodeEntries([text], restore) }
        changes.push(change)
        length += sizeOf(text, change.entries.length)
        if (length >= pageLength) break
      }
      return changes
    },
    position: () => Number(last.get()!.n),
    origin,
    addFork(run, { source, seq, at, user }) {
      insertFork ??= db.prepare('INSERT INTO forks (run, source, seq, at, user) VALUES (?, ?, ?, ?, ?)')
      insertFork.run(run, source, seq, at ?? null, user === undefined ? null : JSON.stringify(user))
      queueFork.run(run)
    },
  }
}
