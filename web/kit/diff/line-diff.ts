/** The lines of two texts that differ, with those around them. */
import { align } from './align.ts'

export interface DiffLine {
  /** `gap`: equal lines that are left out. */
  kind: 'same' | 'out' | 'in' | 'gap'
  text: string
}

const around = 2

/** Empty if the texts are equal. */
export function diffLines(a: string, b: string): DiffLine[] {
  if (a === b) return []
  const all = align(linesOf(a), linesOf(b), (line) => line).map(([x, y]): DiffLine => {
    if (x === undefined) return { kind: 'in', text: y! }
    return { kind: y === undefined ? 'out' : 'same', text: x }
  })
  const isNear = (at: number) =>
    all.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== 'same')
  return all.flatMap((line, at): DiffLine[] => {
    if (isNear(at)) return [line]
    return at > 0 && isNear(at - 1) && at < all.length - 1 ? [{ kind: 'gap', text: '…' }] : []
  })
}

/** The end of the last line begins none. */
function linesOf(text: string): string[] {
  return text.replace(/\n$/u, '').split('\n')
}
