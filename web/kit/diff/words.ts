/** Two texts, word by word. */
import { align, type Pair } from './align.ts'

export interface DiffPiece {
  /** In both, or only in one. */
  kind: 'same' | 'a' | 'b'
  text: string
}

export function diffWords(a: string, b: string): DiffPiece[] {
  const pieces: DiffPiece[] = []
  /** What only one has, since the last piece of both. */
  const own = { a: '', b: '' }
  const flush = () => {
    if (own.a !== '') pieces.push({ kind: 'a', text: own.a })
    if (own.b !== '') pieces.push({ kind: 'b', text: own.b })
    own.a = own.b = ''
  }
  const pairs = align(wordsOf(a), wordsOf(b), (word) => word)
  pairs.forEach(([x, y], i) => {
    const isShared = x !== undefined && y !== undefined
    // A space between two changes belongs to them.
    const isGap = isShared && /^\s+$/u.test(x) && own.a + own.b !== '' && isChange(pairs[i + 1])
    if (isShared && !isGap) {
      flush()
      const last = pieces.at(-1)
      if (last?.kind === 'same') last.text += x
      else pieces.push({ kind: 'same', text: x })
      return
    }
    own.a += x ?? ''
    own.b += y ?? ''
  })
  flush()
  return pieces
}

function isChange(pair: Pair<string> | undefined): boolean {
  return pair !== undefined && (pair[0] === undefined || pair[1] === undefined)
}

function wordsOf(text: string): string[] {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []
}
