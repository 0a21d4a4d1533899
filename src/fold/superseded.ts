/**
 * Finds superseded entries: those of an attempt that a crash ended and that a later `step-reset` discards.
 *
 * A client that reads a run from its start should not see an attempt and then its retraction: the server first notes the
 * stored entries, then passes only those that are not superseded to the encoder. A client that resumes in the middle gets
 * every entry including the reset, because it may have seen the attempt. Resets after the noted entries are passed on.
 */
import type { Entry } from '../part/entry.ts'
import { parentPath } from '../part/path.ts'

export interface Superseded {
  /** First pass: registers an entry. O(1); memory grows with the number of steps and resets. */
  note(entry: Entry): void
  /** Between the passes: forgets where attempts began, of which a long run has thousands. */
  noted(): void
  /** Second pass: whether this entry belongs to a superseded attempt, or is its `step-reset`. */
  has(entry: Entry): boolean
  /** Nothing is superseded. */
  readonly isEmpty: boolean
}

interface Range {
  from: number
  to: number
}

export function createSuperseded(): Superseded {
  const starts = new Map<string, number>()
  /** Per path, in order. They do not overlap. */
  const ranges = new Map<string, Range[]>()

  function isIn(path: string, seq: number): boolean {
    const list = ranges.get(path)
    if (list === undefined) return false
    let low = 0
    let high = list.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (list[middle]!.to < seq) low = middle + 1
      else high = middle
    }
    return low < list.length && list[low]!.from <= seq
  }

  return {
    note({ type, step, seq }) {
      if (type === 'step-start') starts.set(step, seq)
      else if (type === 'step-reset') {
        const range = { from: starts.get(step) ?? seq, to: seq }
        const list = ranges.get(step)
        if (list === undefined) ranges.set(step, [range])
        else list.push(range)
      }
    },
    noted: () => starts.clear(),
    get isEmpty() {
      return ranges.size === 0
    },
    has({ type, step, seq }) {
      // What was said to an attempt that does not count was said all the same.
      if (ranges.size === 0 || type === 'message') return false
      for (let path = step; ; path = parentPath(path)) {
        if (isIn(path, seq)) return true
        if (path === '') return false
      }
    },
  }
}

/** The entries without superseded ones, for a client that reads from the start. They keep their `seq`s, so gaps are possible. */
export function withoutSuperseded(entries: readonly Entry[]): Entry[] {
  const superseded = createSuperseded()
  for (const entry of entries) superseded.note(entry)
  return entries.filter((entry) => !superseded.has(entry))
}
