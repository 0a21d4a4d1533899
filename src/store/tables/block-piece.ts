/** A piece of a text that came in deltas. It is the same whoever reads it, so that a search finds what was indexed. */
import { isDelta, type Entry } from '../../part/entry.ts'

/** Characters of a piece. Words of a search are found together only within one. */
export const pieceLength = 16 * 1024

/** A text in the log: the deltas of this type and id after entry `seq`, up to entry `last`. */
export interface Block {
  seq: number
  type: string
  id: string
  last: number
}

export class BlockPiece {
  readonly block: Block
  /** The piece begins after this entry; 0 is the beginning of the text. */
  readonly start: number
  /** The last entry that it has. */
  at: number
  readonly #deltas: string[] = []
  #length = 0

  constructor(block: Block, start: number) {
    this.block = block
    this.start = start
    this.at = Math.max(block.seq, start)
  }

  get text(): string {
    return this.#deltas.join('')
  }

  /** Adds an entry if it is of this text. Returns false if it is that of the next piece. Entries come in the order of the log. */
  add(entry: Entry): boolean {
    const { block, start } = this
    if (entry.seq <= this.at || entry.seq > block.last) return true
    if (!isDelta(entry) || entry.type !== block.type || entry.id !== block.id) return true
    // Programs may append what is no delta.
    if (typeof entry.delta !== 'string') return true
    // It ends between two words, if it can.
    if (this.#length >= pieceLength && (/^\s/u.test(entry.delta) || this.#length >= 2 * pieceLength)) return false
    this.#deltas.push(entry.delta)
    // One that was merged since may begin before the piece.
    if ((entry.firstSeq ?? entry.seq) > start) this.#length += entry.delta.length
    this.at = entry.seq
    return true
  }
}
