/** Reads the texts of the full-text index from the log, in pieces. */
import type { DatabaseSync } from 'node:sqlite'
import { isDelta, type Entry } from '../../part/entry.ts'
import type { SearchHit } from '../../part/records.ts'
import { decodeEntries, decodeLine } from '../encode.ts'
import { entryText, textKinds } from './entry-texts.ts'
import { createTickReader } from './tick-reader.ts'

/** Characters of a piece. Words of a search are found together only within one. */
export const pieceLength = 16 * 1024

export interface Piece {
  kind: SearchHit['kind']
  text: string
  /** Where the next piece begins; undefined after the last. */
  next: number | undefined
}

export interface PieceReader {
  /**
   * The piece that begins here: after so many characters of a text, or after this `seq` of one that came in deltas; 0 is the
   * first. Undefined if the entry has no text.
   */
  at(run: number, seq: number, start: number): Piece | undefined
}

export function createPieceReader(db: DatabaseSync): PieceReader {
  const reader = createTickReader(db)
  const event = db.prepare('SELECT type, tick, at, length FROM indexed_events WHERE run = ? AND seq = ?')
  const block = db.prepare(
    `SELECT r.id AS log, b.type, b.event_id, b.tick_seq, b.last_seq FROM indexed_blocks b JOIN runs r ON r.number = b.log
     WHERE b.run = ? AND b.seq = ?`,
  )
  const line = db.prepare('SELECT CAST(substr(CAST(entries AS BLOB), ?2, ?3) AS TEXT) AS line FROM ticks WHERE id = ?1')
  // What was read last is often read again: the next block of a row, the next piece of a text.
  let row = { id: 0, text: '', entries: [] as Entry[] }
  let whole = { key: '', text: '' }

  /** The entries of a row. If a line is damaged, the others. */
  function decode(id: number, text: string): Entry[] {
    if (id !== row.id || text !== row.text) {
      let entries: Entry[]
      try {
        entries = decodeEntries([text])
      } catch {
        entries = text.split('\n').flatMap(decodeLine)
      }
      row = { id, text, entries }
    }
    return row.entries
  }

  /** The deltas of a block after this `seq`. */
  function ofBlock(run: number, seq: number, start: number): Omit<Piece, 'kind'> {
    const found = block.get(run, seq)
    if (found === undefined) return { text: '', next: undefined }
    const last = Number(found.last_seq ?? 0)
    const pieces: string[] = []
    let length = 0
    let at = Math.max(seq, start)
    for (const { id, lastSeq, entries } of reader.from(String(found.log), Math.max(Number(found.tick_seq), at))) {
      for (const entry of decode(id, entries)) {
        if (entry.seq <= at || !isDelta(entry)) continue
        if (entry.seq > last) break
        if (entry.type !== found.type || entry.id !== found.event_id) continue
        // A piece ends between two words, if it can.
        if (length >= pieceLength && (/^\s/u.test(entry.delta) || length >= 2 * pieceLength)) {
          return { text: pieces.join(''), next: at }
        }
        pieces.push(entry.delta)
        // One that was merged since may begin before the piece.
        if ((entry.firstSeq ?? entry.seq) > start) length += entry.delta.length
        at = entry.seq
      }
      if (lastSeq >= last) break
    }
    return { text: pieces.join(''), next: undefined }
  }

  function textOf(tick: number, at: number, length: number): string {
    const key = `${tick}:${at}`
    if (whole.key !== key) {
      const [entry] = decodeLine(String(line.get(tick, at, length)?.line))
      whole = { key, text: entry === undefined ? '' : entryText(entry) }
    }
    return whole.text
  }

  function ofText(text: string, start: number): Omit<Piece, 'kind'> {
    if (text.length - start <= pieceLength) return { text: text.slice(start), next: undefined }
    const space = text.slice(start + pieceLength, start + 2 * pieceLength).search(/\s/u)
    const end = start + pieceLength + Math.max(space, 0)
    return { text: text.slice(start, end), next: end }
  }

  return {
    at(run, seq, start) {
      const found = event.get(run, seq)
      const kind = found && textKinds[found.type as Entry['type']]
      if (found === undefined || kind === undefined) return undefined
      if (kind === 'text' || kind === 'reasoning') return { kind, ...ofBlock(run, seq, start) }
      return { kind, ...ofText(textOf(Number(found.tick), Number(found.at), Number(found.length)), start) }
    },
  }
}
