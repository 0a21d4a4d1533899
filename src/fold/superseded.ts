/**
 * Finds superseded entries: those of an attempt that a crash ended and that a later `step-reset` discards.
 *
 * A client that reads a run from its start should not see an attempt and then its retraction: the server first notes the
 * stored entries, then passes only those that are not superseded to the encoder. A client that resumes in the middle gets
 * every entry including the reset, because it may have seen the attempt. Resets after the noted entries are passed on.
 */
import type { Entry } from '../part/entry.ts'
import { isUnder } from '../part/path.ts'

export interface Superseded {
  /** First pass: registers an entry. O(1); memory grows with the number of steps and resets. */
  note(entry: Entry): void
  /** Second pass: whether this entry belongs to a superseded attempt, or is its `step-reset`. */
  has(entry: Entry): boolean
  /** Nothing is superseded. */
  readonly isEmpty: boolean
}

interface Range {
  path: string
  from: number
  to: number
}

export function createSuperseded(): Superseded {
  const starts = new Map<string, number>()
  const ranges: Range[] = []
  return {
    note({ type, step, seq }) {
      if (type === 'step-start') starts.set(step, seq)
      else if (type === 'step-reset') ranges.push({ path: step, from: starts.get(step) ?? seq, to: seq })
    },
    get isEmpty() {
      return ranges.length === 0
    },
    has({ step, seq }) {
      return ranges.some(({ path, from, to }) => seq >= from && seq <= to && isUnder(step, path))
    },
  }
}

/** The entries without superseded ones, for a client that reads from the start. They keep their `seq`s, so there may be gaps. */
export function withoutSuperseded(entries: readonly Entry[]): Entry[] {
  const superseded = createSuperseded()
  for (const entry of entries) superseded.note(entry)
  return entries.filter((entry) => !superseded.has(entry))
}
