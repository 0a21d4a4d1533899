/** Reads the rows of a run piece by piece, merged, and replaces each piece by one row. */
import type { DatabaseSync } from 'node:sqlite'
import { createCompaction } from '../fold/compaction.ts'
import { createLineMerge, pieceLength } from './merge-lines.ts'
import { createMove } from './tables/move-rows.ts'

/** In ms. */
export const sliceLength = 5

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
  /** Leave the loop before something is written. */
  read(run: string, after: number): Iterable<Row>
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
  const move = createMove(db)

  return {
    read: (run, after) => select.iterate(run, after) as Iterable<unknown> as Iterable<Row>,
    bounds: (run) => new Set(forks.all(run).map(({ seq }) => Number(seq))),
    replace(run, rows, text) {
      const [from, to] = [rows[0]!, rows.at(-1)!]
      const { count, ids } = look.get(run, from.first_seq, to.first_seq)!
      if (count !== rows.length || ids !== rows.reduce((sum, { id }) => sum + id, 0)) return false
      remove.run(run, from.first_seq, to.first_seq)
      // The last position is kept: readers of changes that have come so far miss nothing.
      insert.run(to.id, run, from.first_seq, to.last_seq, text)
      move(run, { firstSeq: from.first_seq, lastSeq: to.last_seq, tick: to.id, text })
      return true
    },
  }
}

/**
 * Returns a function that reads on for one slice. It gives the next piece of a run, or `reading` if the piece is not complete yet, or
 * undefined after the last.
 */
export function compactPieces(run: string, pieces: Pieces, clock: () => number): () => Piece | 'reading' | undefined {
  const lines = createLineMerge(createCompaction(pieces.bounds(run)))
  let after = 0
  let rows: Row[] = []
  let length = 0

  /** Returns whether the slice ended before the piece did. */
  function readOn(): boolean {
    const began = clock()
    for (const row of pieces.read(run, after)) {
      after = row.first_seq
      rows.push(row)
      lines.add(row.entries)
      length += row.entries.length
      if (length >= pieceLength) return false
      if (clock() - began >= sliceLength) return true
    }
    return false
  }

  function finish(): Piece {
    const { text, before, after: left } = lines.finish()
    const bytes = rows.reduce((sum, row) => sum + Buffer.byteLength(row.entries) + 1, -1)
    const piece = { rows, text, bytes, entries: { before, after: left } }
    rows = []
    length = 0
    return piece
  }

  return () => {
    if (readOn()) return 'reading'
    return rows.length === 0 ? undefined : finish()
  }
}
