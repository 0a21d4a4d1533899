/** Puts texts into the full-text index, one piece at a time: a long text is not one long transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { spaced } from './entry-texts.ts'
import { createPieceReader } from './piece-reader.ts'

export interface LaterTexts {
  /** Indexes one piece. Returns false if there is none. Call it inside a transaction. */
  step(): boolean
}

export function createLaterTexts(db: DatabaseSync): LaterTexts {
  const pieces = createPieceReader(db)
  const first = db.prepare('SELECT run, seq, start FROM indexed_later LIMIT 1')
  // Not RETURNING: it begins a statement transaction, for which FTS5 writes what it has gathered, each text as a segment of its own.
  const addText = db.prepare('INSERT INTO indexed_texts (run, seq, start, kind) VALUES (?, ?, ?, ?)')
  const addWords = db.prepare('INSERT INTO search (rowid, text) VALUES (?, ?)')
  const goOn = db.prepare('UPDATE indexed_later SET start = ? WHERE run = ? AND seq = ?')
  const done = db.prepare('DELETE FROM indexed_later WHERE run = ? AND seq = ?')
  return {
    step() {
      const row = first.get()
      if (row === undefined) return false
      const [run, seq, start] = [Number(row.run), Number(row.seq), Number(row.start)]
      const piece = pieces.at(run, seq, start)
      if (piece !== undefined && piece.text.trim() !== '') {
        addWords.run(addText.run(run, seq, start, piece.kind).lastInsertRowid, spaced(piece.text))
      }
      if (piece?.next === undefined) done.run(run, seq)
      else goOn.run(piece.next, run, seq)
      return true
    },
  }
}
