/** Reads the texts of the full-text index from the log, in pieces. */
import type { DatabaseSync } from 'node:sqlite'
import { isDelta, type Entry } from '../../part/entry.ts'
import type { SearchHit } from '../../part/records.ts'
import { decodeLine } from '../encode.ts'
import { entryText, textKinds } from './entry-texts.ts'
import { createTickReader } from './tick-reader.ts'
import { tickLines } from './tick-lines.ts'

/** Characters of a piece. Words of a search are found together only within one. */
const pieceLength = 32 * 1024

export interface Piece {
  kind: SearchHit['kind']
  text: string
  /** Where the next piece begins; undefined after the last. */
  next: number | undefined
}

export interface PieceReader {
  /** The piece that begins at `next`: characters of a text, or the last \`seq\` before it. Undefined if the entry has no text. */
  at(run: number, seq: number, next: number): Piece | undefined
  /** The nth piece; empty if there is none. */
  read(run: number, seq: number, piece: number): string
}

export function createPieceReader(db: DatabaseSync): PieceReader {
  const reader = createTickReader(db)
  const event = db.prepare('SELECT type, tick, at, length FROM indexed_events WHERE run = ? AND seq = ?')
  const block = db.prepare(
    `SELECT r.id AS log, b.type, b.event_id, b.tick_seq, b.last_seq FROM indexed_blocks b JOIN runs r ON r.number = b.log
     WHERE b.run = ? AND b.seq = ?`,
  )
  const line = db.prepare('SELECT CAST(substr(CAST(entries AS BLOB), ?2, ?3) AS TEXT) AS line FROM ticks WHERE id = ?1')

  /** The deltas of a block after this `seq`. */
  function ofBlock(run: number, seq: number, next: number): Omit<Piece, 'kind'> {
    const row = block.get(run, seq)
    if (row === undefined) return { text: '', next: undefined }
    const last = Number(row.last_seq ?? 0)
    const pieces: string[] = []
    let length = 0
    let at = Math.max(seq, next)
    for (const { entries } of reader.from(String(row.log), Math.max(Number(row.tick_seq), at))) {
      for (const { text, isDelta: plain } of tickLines(entries)) {
        if (!plain && !text.includes('-delta"')) continue
        const entry = decodeLine(text)
        if (entry === undefined || !isDelta(entry) || entry.seq <= at) continue
        if (entry.seq > last) break
        if (entry.type !== row.type || entry.id !== row.event_id) continue
        // A piece ends between two words, if it can.
        if (length >= pieceLength && (/^\s/u.test(entry.delta) || length >= 2 * pieceLength)) {
          return { text: pieces.join(''), next: at }
        }
        pieces.push(entry.delta)
        length += entry.delta.length
        at = entry.seq
      }
      if (reader.lastSeq >= last) break
    }
    return { text: pieces.join(''), next: undefined }
  }

  function ofEntry(tick: number, at: number, length: number, next: number): Omit<Piece, 'kind'> {
    const text = line.get(tick, at, length)?.line
    const entry = decodeLine(String(text))
    const whole = entry === undefined ? '' : entryText(entry)
    if (whole.length - next <= pieceLength) return { text: whole.slice(next), next: undefined }
    const space = whole.slice(next + pieceLength, next + 2 * pieceLength).search(/\s/u)
    const end = next + pieceLength + Math.max(space, 0)
    return { text: whole.slice(next, end), next: end }
  }

  function at(run: number, seq: number, next: number): Piece | undefined {
    const row = event.get(run, seq)
    const kind = row && textKinds[row.type as Entry['type']]
    if (row === undefined || kind === undefined) return undefined
    if (kind === 'text' || kind === 'reasoning') return { kind, ...ofBlock(run, seq, next) }
    return { kind, ...ofEntry(Number(row.tick), Number(row.at), Number(row.length), next) }
  }

  return {
    at,
    read(run, seq, piece) {
      let next: number | undefined = 0
      for (let i = 0; next !== undefined; i++) {
        const found = at(run, seq, next)
        if (i === piece || found === undefined) return found?.text ?? ''
        ;({ next } = found)
      }
      return ''
    },
  }
}
