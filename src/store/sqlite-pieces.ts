/** Reads the rows of a run piece by piece, merged, and replaces each piece by one row. */
import type { DatabaseSync } from 'node:sqlite'
import { createCompaction } from '../fold/compaction.ts'
import { sizeOfRow } from './delta-block.ts'
import { createLineMerge, pieceLength } from './merge-lines.ts'
import type { TickGroups, TickRow } from './sqlite-groups.ts'
import { createMove } from './tables/move-rows.ts'

/** In ms. */
export const sliceLength = 5

export interface Piece {
  rows: TickRow[]
  /** The merged entries as JSON lines. */
  text: string
  bytes: number
  entries: { before: number; after: number }
}

export interface Pieces {
  /** Leave the loop before something is written. */
  read(run: string, after: number): Iterable<TickRow>
  /** The `seq`s at which forks branch off, forks of forks included. */
  bounds(run: string): Set<number>
  /** Call this inside a transaction. Changes nothing and returns false if the rows are not what they were. */
  replace(run: string, rows: TickRow[], text: string): boolean
}

export function createPieces(db: DatabaseSync, groups: TickGroups): Pieces {
  const forks = db.prepare(
    `WITH RECURSIVE branch (run, seq) AS (
       SELECT run, seq FROM forks WHERE source = ?
       UNION SELECT forks.run, min(forks.seq, branch.seq) FROM forks JOIN branch ON forks.source = branch.run
     ) SELECT DISTINCT seq FROM branch`,
  )
  const move = createMove(db)

  return {
    read: (run, after) => groups.from(run, after + 1),
    bounds: (run) => new Set(forks.all(run).map(({ seq }) => Number(seq))),
    replace(run, rows, text) {
      // The last position is kept: readers of changes that have come so far miss nothing.
      if (!groups.replace(run, rows, text)) return false
      const [from, to] = [rows[0]!, rows.at(-1)!]
      move(run, { firstSeq: from.firstSeq, lastSeq: to.lastSeq, tick: to.id, text })
      return true
    },
  }
}

/**
 * Returns a function that reads on for one slice. It gives the next piece of a run, or `reading` if the piece is not complete yet, or
 * undefined after the last.
 */
export function compactPieces(run: string, pieces: Pieces, clock: () => number): () => Piece | 'reading' | undefined {
  const lines = createLineMerge(run, createCompaction(pieces.bounds(run)))
  let after = 0
  let rows: TickRow[] = []
  let length = 0

  /** Returns whether the slice ended before the piece did. */
  function readOn(): boolean {
    const began = clock()
    for (const row of pieces.read(run, after)) {
      after = row.lastSeq
      rows.push(row)
      lines.add(row.entries)
      length += sizeOfRow(row)
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
