/** Puts texts that wait into the full-text index, one piece at a time: a long text is not one long transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { indexText } from './index-text.ts'
import { createPieceReader } from './piece-reader.ts'
import type { Statements } from './statements.ts'

export interface LaterTexts {
  /** Indexes one piece. Returns false if there is none. Call it inside a transaction. */
  step(): boolean
}

export function createLaterTexts(db: DatabaseSync, statements: Statements): LaterTexts {
  const pieces = createPieceReader(db)
  const first = db.prepare('SELECT run, seq, start FROM indexed_later LIMIT 1')
  const goOn = db.prepare('UPDATE indexed_later SET start = ? WHERE run = ? AND seq = ?')
  const done = db.prepare('DELETE FROM indexed_later WHERE run = ? AND seq = ?')
  return {
    step() {
      const row = first.get()
      if (row === undefined) return false
      const [run, seq, start] = [Number(row.run), Number(row.seq), Number(row.start)]
      const piece = pieces.at(run, seq, start)
      if (piece !== undefined) indexText(statements, { run, seq, start, kind: piece.kind }, piece.text)
      if (piece?.next === undefined) done.run(run, seq)
      else goOn.run(piece.next, run, seq)
      return true
    },
  }
}
