/**
 * Puts texts into the full-text index. One that stands whole in the row that is being read goes there at once. Others wait in
 * `indexed_later`, and are read again in pieces: long ones, of which each would be a long transaction, and those whose deltas came in
 * several rows. While one waits, those behind it wait as well: a search finds the newest first by the order in which they came.
 */
import type { DatabaseSync } from 'node:sqlite'
import { isDelta, type Entry } from '../../part/entry.ts'
import type { SearchHit } from '../../part/records.ts'
import { decodeEntries } from '../encode.ts'
import { entryText, spaced, textKinds } from './entry-texts.ts'
import { isOfEntry } from './is-of-entry.ts'
import { pieceLength } from './block-piece.ts'
import { createPieceReader } from './piece-reader.ts'
import { createTextSweep } from './text-sweep.ts'

/** Characters of the log that are parsed for one text: about 0.3 ms. */
const mostParsed = 64 * 1024

/** Call all of them inside a transaction. */
export interface TextIndex {
  /** Call it first in each transaction: another process may have gone on. `isRemoved`: with a run that was removed since. */
  begin(isRemoved: boolean): void
  /** The text of an entry, if it has one itself. `length`: that of its line. */
  addEntry(run: number, entry: Entry, length: number): void
  /** The text of a block that began with entry `seq`. `end` is its last entry, whose line stands `at` this character of the row. */
  addBlock(run: number, seq: number, end: Entry & { id: string }, place: { row: string; at: number }): void
  /** Goes on with the texts that wait: with one piece, or until the time is over. Returns false if none waits. */
  step(isOver: () => boolean): boolean
}

export function createTextIndex(db: DatabaseSync): TextIndex {
  const pieces = createPieceReader(db)
  const sweep = createTextSweep(db, (run, { block, start, text }, next) => {
    put(run, block.seq, start, () => {
      add(run, block.seq, start, block.type === 'text-delta' ? 'text' : 'reasoning', text)
      return next
    })
  })
  // Not RETURNING: see `statements.ts`.
  const addText = db.prepare('INSERT INTO indexed_texts (run, seq, start, kind) VALUES (?, ?, ?, ?)')
  const addWords = db.prepare('INSERT INTO search (rowid, text) VALUES (?, ?)')
  const first = db.prepare('SELECT run, seq, start FROM indexed_later LIMIT 1')
  const waits = db.prepare('SELECT start FROM indexed_later WHERE run = ? AND seq = ?')
  const addLater = db.prepare('INSERT OR IGNORE INTO indexed_later (run, seq, start) VALUES (?, ?, 0)')
  const goOn = db.prepare('UPDATE indexed_later SET start = ? WHERE run = ? AND seq = ?')
  const done = db.prepare('DELETE FROM indexed_later WHERE run = ? AND seq = ?')
  let isWaiting = true

  function add(run: number, seq: number, start: number, kind: SearchHit['kind'], text: string): void {
    if (text.trim() === '') return
    addWords.run(addText.run(run, seq, start, kind).lastInsertRowid, spaced(text))
  }

  /** `addPiece` adds a piece of a text that waits, and returns where the next one begins. */
  function put(run: number, seq: number, start: number, addPiece: () => number | undefined): void {
    // Another process has added it.
    if (waits.get(run, seq)?.start !== start) return
    let next: number | undefined
    try {
      next = addPiece()
    } catch (error) {
      // Also a text that ends twice, which is there already.
      if (!isOfEntry(error)) throw error
    }
    if (next === undefined) done.run(run, seq)
    else goOn.run(next, run, seq)
  }

  /** At once if the text is known. */
  function addOrWait(run: number, seq: number, kind: SearchHit['kind'], text: string | undefined): void {
    if (text !== undefined) return add(run, seq, 0, kind, text)
    addLater.run(run, seq)
    isWaiting = true
  }

  return {
    begin(isRemoved) {
      isWaiting = first.get() !== undefined
      pieces.forget()
      if (isRemoved) sweep.check()
    },
    addEntry(run, entry, length) {
      const kind = textKinds[entry.type]
      if (kind === undefined || kind === 'text' || kind === 'reasoning') return
      addOrWait(run, entry.seq, kind, isWaiting || length >= pieceLength ? undefined : entryText(entry))
    },
    addBlock(run, seq, end, place) {
      const kind = end.type === 'text-end' ? 'text' : 'reasoning'
      addOrWait(run, seq, kind, isWaiting ? undefined : textIn(place, seq, `${kind}-delta`, end.id))
    },
    step(isOver) {
      const row = first.get()
      if (row === undefined) return false
      const [run, seq, start] = [Number(row.run), Number(row.seq), Number(row.start)]
      if (sweep.step(run, seq, isOver)) return true
      put(run, seq, start, () => {
        const piece = pieces.at(run, seq, start)
        if (piece !== undefined) add(run, seq, start, piece.kind, piece.text)
        return piece?.next
      })
      return true
    },
  }
}

/** Undefined if the row does not have all of it, if it has more than one piece, or if a line is damaged. */
function textIn(
  { row, at }: { row: string; at: number },
  seq: number,
  type: Entry['type'],
  id: string,
): string | undefined {
  const start = row.lastIndexOf(`{"seq":${seq},`, at)
  if (start < 0 || at - start > mostParsed) return undefined
  const pieces: string[] = []
  try {
    for (const entry of decodeEntries([row.slice(start, at - 1)])) {
      if (isDelta(entry) && entry.type === type && entry.id === id) pieces.push(entry.delta)
    }
  } catch {
    return undefined
  }
  const text = pieces.join('')
  return text.length < pieceLength ? text : undefined
}
