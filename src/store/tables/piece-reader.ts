/** Reads the texts of the full-text index from the log, in pieces. */
import type { DatabaseSync } from 'node:sqlite'
import type { Entry } from '../../part/entry.ts'
import type { SearchHit } from '../../part/records.ts'
import { decodeLine } from '../encode.ts'
import { BlockPiece, pieceLength } from './block-piece.ts'
import { entryText, textKinds } from './entry-texts.ts'
import { createRowDecoder } from './row-entries.ts'
import { createTickReader } from './tick-reader.ts'

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
  /** Rows may have changed since the last piece. */
  forget(): void
}

export function createPieceReader(db: DatabaseSync): PieceReader {
  const reader = createTickReader(db)
  const event = db.prepare('SELECT type, tick, at, length FROM indexed_events WHERE run = ? AND seq = ?')
  const block = db.prepare(
    `SELECT r.id AS log, b.type, b.event_id, b.tick_seq, b.last_seq FROM indexed_blocks b JOIN runs r ON r.number = b.log
     WHERE b.run = ? AND b.seq = ?`,
  )
  const rowOf = db.prepare('SELECT CAST(entries AS BLOB) AS bytes FROM ticks WHERE id = ?')
  const decode = createRowDecoder()
  // What was read last is often read again: the next text of a row, the next piece of a text.
  let row = { id: 0, bytes: Buffer.alloc(0) }
  let whole = { key: '', text: '' }

  function lineOf(tick: number, at: number, length: number): string {
    if (row.id !== tick) row = { id: tick, bytes: Buffer.from((rowOf.get(tick)?.bytes ?? []) as Uint8Array) }
    return row.bytes.toString('utf8', at - 1, at - 1 + length)
  }

  /** The deltas of a block after this `seq`. */
  function ofBlock(run: number, seq: number, start: number): Omit<Piece, 'kind'> {
    const found = block.get(run, seq)
    if (found === undefined) return { text: '', next: undefined }
    const last = Number(found.last_seq ?? 0)
    const piece = new BlockPiece({ seq, type: String(found.type), id: String(found.event_id), last }, start)
    for (const { id, lastSeq, entries } of reader.from(String(found.log), Math.max(Number(found.tick_seq), piece.at))) {
      for (const entry of decode(id, entries)) if (!piece.add(entry)) return { text: piece.text, next: piece.at }
      if (lastSeq >= last) break
    }
    return { text: piece.text, next: undefined }
  }

  function textOf(tick: number, at: number, length: number): string {
    const key = `${tick}:${at}:${length}`
    if (whole.key !== key) {
      const [entry] = decodeLine(lineOf(tick, at, length))
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
    forget() {
      row = { id: 0, bytes: Buffer.alloc(0) }
    },
  }
}
