/**
 * Compares texts that come from two sides, however they are cut into deltas: compaction merges them. What one side is ahead is kept, until
 * the other has said it, too.
 */
import type { Entry } from '../../part/entry.ts'

export type Delta = Extract<Entry, { delta: string }>
export type SideName = 'a' | 'b'

/** Two entries that differ. Absent: the other side has no such text. */
export type Pair = Partial<Record<SideName, Entry>>

export interface Texts {
  /** Returns what differs. */
  say(side: SideName, block: string, entry: Delta): Pair | undefined
  /** When both sides have said what they have to say here: what only one has said. */
  rest(): Pair | undefined
}

/** A delta, and what of it the other side has not said. */
interface Piece {
  entry: Delta
  text: string
  /** The delta of the other side that has its beginning. */
  met?: Delta
}

interface Ahead {
  side: SideName
  pieces: Piece[]
}

export function createTexts(): Texts {
  const blocks = new Map<string, Ahead>()
  return {
    say(side, block, entry) {
      const ahead = blocks.get(block)
      const own: Piece = { entry, text: entry.delta }
      if (ahead?.side === side) {
        ahead.pieces.push(own)
        return undefined
      }
      const pieces = ahead?.pieces ?? []
      while (own.text !== '' && pieces.length > 0) {
        const piece = pieces[0]!
        const length = Math.min(own.text.length, piece.text.length)
        if (own.text.slice(0, length) !== piece.text.slice(0, length)) return pair(side, entry, piece.entry)
        own.text = own.text.slice(length)
        own.met = piece.entry
        piece.text = piece.text.slice(length)
        piece.met = entry
        if (piece.text === '') pieces.shift()
      }
      if (own.text !== '') blocks.set(block, { side, pieces: [own] })
      else if (pieces.length === 0) blocks.delete(block)
      return undefined
    },
    rest() {
      let found: Pair | undefined
      for (const { side, pieces } of blocks.values()) {
        const piece = pieces.find(({ text }) => text !== '')
        if (piece === undefined) continue
        if (piece.met !== undefined) return pair(side, piece.entry, piece.met)
        found = { [side]: piece.entry, ...found }
      }
      return found
    },
  }
}

function pair(side: SideName, own: Entry, other: Entry): Pair {
  return side === 'a' ? { a: own, b: other } : { a: other, b: own }
}
