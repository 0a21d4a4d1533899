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
  const first = db.prepare('SELECT run, seq, piece, next FROM indexed_later LIMIT 1')
  const addText = db.prepare('INSERT INTO indexed_texts (run, seq, piece, kind) VALUES (?, ?, ?, ?) RETURNING id')
  const addWords = db.prepare('INSERT INTO search (rowid, text) VALUES (?, ?)')
  const goOn = db.prepare('UPDATE indexed_later SET piece = ?, next = ? WHERE run = ? AND seq = ?')
  const done = db.prepare('DELETE FROM indexed_later WHERE run = ? AND seq = ?')
  return {
    step() {
      const row = first.get()
      if (row === undefined) return false
      const [run, seq, number] = [Number(row.run), Number(row.seq), Number(row.piece)]
      const piece = pieces.at(run, seq, Number(row.next))
      if (piece !== undefined && piece.text.trim() !== '') {
        addWords.run(addText.get(run, seq, number, piece.kind)!.id!, spaced(piece.text))
      }
      if (piece?.next === undefined) done.run(run, seq)
      else goOn.run(number + 1, piece.next, run, seq)
      return true
    },
  }
}
