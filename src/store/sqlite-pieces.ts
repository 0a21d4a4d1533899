/** Reads the rows of a run piece by piece, merged, and replaces each piece by one row. */
import type { DatabaseSync } from 'node:sqlite'
import { createCompaction } from '../fold/compaction.ts'
import { decodeEntries } from './encode.ts'
import { refillRun } from './tables/remove-run.ts'

/** Characters of a piece: what can be read and merged in a few ms. The row that reaches it is included. */
const pieceLength = 64 * 1024

interface Row {
  id: number
  first_seq: number
  last_seq: number
  entries: string
}

export interface Piece {
  rows: Row[]
  /** The merged entries as JSON lines. */
  text: string
  bytes: number
  entries: { before: number; after: number }
}

export interface Pieces {
  read(run: string, after: number): Row[]
  /** The `seq`s at which forks branch off, forks of forks included. */
  bounds(run: string): Set<number>
  /** Call this inside a transaction. Changes nothing and returns false if the rows are not what they were. */
  replace(run: string, rows: Row[], text: string): boolean
}

export function createPieces(db: DatabaseSync): Pieces {
  const select = db.prepare(
    'SELECT id, first_seq, last_seq, entries FROM ticks WHERE run = ? AND first_seq > ? ORDER BY first_seq',
  )
  const forks = db.prepare(
    `WITH RECURSIVE branch (run, seq) AS (
       SELECT run, seq FROM forks WHERE source = ?
       UNION SELECT forks.run, min(forks.seq, branch.seq) FROM forks JOIN branch ON forks.source = branch.run
     ) SELECT DISTINCT seq FROM branch`,
  )
  const look = db.prepare(
    'SELECT count(*) AS count, sum(id) AS ids FROM ticks WHERE run = ? AND first_seq BETWEEN ? AND ?',
  )
  const remove = db.prepare('DELETE FROM ticks WHERE run = ? AND first_seq BETWEEN ? AND ?')
  const insert = db.prepare('INSERT INTO ticks (id, run, first_seq, last_seq, entries) VALUES (?, ?, ?, ?, ?)')

  return {
    read(run, after) {
      const rows: Row[] = []
      let length = 0
      for (const row of select.iterate(run, after) as Iterable<unknown>) {
        rows.push(row as Row)
        length += (row as Row).entries.length
        if (length >= pieceLength) break
      }
      return rows
    },
    bounds: (run) => new Set(forks.all(run).map(({ seq }) => Number(seq))),
    replace(run, rows, text) {
      const [from, to] = [rows[0]!, rows.at(-1)!]
      const { count, ids } = look.get(run, from.first_seq, to.first_seq)!
      if (count !== rows.length || ids !== rows.reduce((sum, { id }) => sum + id, 0)) return false
      remove.run(run, from.first_seq, to.first_seq)
      // The last position is kept: readers of changes that have come so far miss nothing.
      insert.run(to.id, run, from.first_seq, to.last_seq, text)
      // The tables over the log say where in a row an entry stands.
      refillRun(db, run)
      return true
    },
  }
}

/** Returns a function that gives the next piece of a run, or undefined. */
export function compactPieces(run: string, pieces: Pieces): () => Piece | undefined {
  const merge = createCompaction(pieces.bounds(run))
  let after = 0
  return () => {
    const rows = pieces.read(run, after)
    if (rows.length === 0) return undefined
    after = rows.at(-1)!.first_seq
    const before = rows.map(({ entries }) => entries).join('\n')
    const lines = before.split('\n')
    const entries = decodeEntries([before])
    const lineOf = new Map(entries.map((entry, i) => [entry, lines[i]!]))
    const merged = merge(entries)
    // What was not merged stays as it was written.
    const text = merged.map((entry) => lineOf.get(entry) ?? JSON.stringify(entry)).join('\n')
    return { rows, text, bytes: Buffer.byteLength(before), entries: { before: lines.length, after: merged.length } }
  }
}
