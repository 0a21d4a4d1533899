/** Reads the texts of the full-text index from the log, in pieces. */
import type { DatabaseSync } from 'node:sqlite'
import { type Entry, isDelta } from '../../part/entry.ts'
import type { SearchHit } from '../../part/records.ts'
import { decodeLine, decodeEntries } from '../encode.ts'
import { restoreWithoutPrompt } from '../shared-texts.ts'
import { createTexts } from '../sqlite/texts.ts'
import { entryText, textKinds } from './entry-texts.ts'
import { createTickReader } from './tick-reader.ts'

export interface SearchPiece {
  kind: SearchHit['kind']
  text: string
  /** The start of the next piece; undefined after the last. */
  next: number | undefined
}

export interface PieceReader {
  /**
   * The piece that begins at `start`: a number of characters of a text, or a `seq` of one that came in deltas; 0 is the first. Undefined if the
   * entry has no text.
   */
  at(run: number, seq: number, start: number): SearchPiece | undefined
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
  const texts = createTexts(db)
  const restore = (entry: unknown) => restoreWithoutPrompt(entry, texts.find)
  // Caches the last read: the next text of a row and the next piece of a text often need it.
  let row = { id: 0, bytes: Buffer.alloc(0) }
  let whole = { key: '', text: '' }

  function lineOf(tick: number, at: number, length: number): string {
    if (row.id !== tick) row = { id: tick, bytes: Buffer.from((rowOf.get(tick)?.bytes ?? []) as Uint8Array) }
    return row.bytes.toString('utf8', at - 1, at - 1 + length)
  }

  /** The deltas of a block after this `seq`. */
  function ofBlock(run: number, seq: number, start: number): Omit<SearchPiece, 'kind'> {
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
      const [entry] = decodeLine(lineOf(tick, at, length), restore)
      whole = { key, text: entry === undefined ? '' : entryText(entry) }
    }
    return whole.text
  }

  function ofText(text: string, start: number): Omit<SearchPiece, 'kind'> {
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

/** Decodes rows of `ticks`. Caches the last read: the next text of the row and the next piece of a text often need it. */
export function createRowDecoder(): (id: number, text: string) => Entry[] {
  let row = { id: 0, text: '', entries: [] as Entry[] }
  return (id, text) => {
    if (id !== row.id || text !== row.text) row = { id, text, entries: decode(text) }
    return row.entries
  }
}

/** If a line is damaged, returns the others. */
function decode(text: string): Entry[] {
  try {
    return decodeEntries([text])
  } catch {
    return text.split('\n').flatMap((line) => decodeLine(line))
  }
}

/* A piece of a text that came in deltas. Its boundaries do not depend on the reader, so that a search finds the indexed pieces. */

/** Characters of a piece. Words of a search are found together only within one piece. */
export const pieceLength = 16 * 1024

/** A text in the log: the deltas of this type and id after entry `seq`, up to entry `last`. */
export interface TextBlock {
  seq: number
  type: string
  id: string
  last: number
}

export class BlockPiece {
  readonly block: TextBlock
  /** The piece begins after this entry; 0 is the beginning of the text. */
  readonly start: number
  /** The last entry that it has. */
  at: number
  readonly #deltas: string[] = []
  #length = 0

  constructor(block: TextBlock, start: number) {
    this.block = block
    this.start = start
    this.at = Math.max(block.seq, start)
  }

  get text(): string {
    return this.#deltas.join('')
  }

  /** Adds an entry if it is of this text. Returns false if it belongs to the next piece. Entries come in log order. */
  add(entry: Entry): boolean {
    const { block, start } = this
    if (entry.seq <= this.at || entry.seq > block.last) return true
    if (!isDelta(entry) || entry.type !== block.type || entry.id !== block.id) return true
    // Programs may append deltas of the wrong type.
    if (typeof entry.delta !== 'string') return true
    // Ends between two words if possible.
    if (this.#length >= pieceLength && (/^\s/u.test(entry.delta) || this.#length >= 2 * pieceLength)) return false
    this.#deltas.push(entry.delta)
    // A merged delta may begin before the piece.
    if ((entry.firstSeq ?? entry.seq) > start) this.#length += entry.delta.length
    this.at = entry.seq
    return true
  }
}
