/**
 * What a crash made void: the entries of an attempt that a later `step-reset` supersedes.
 *
 * A client that reads a run from its start shall not be shown an attempt and then its retraction: the server notes the
 * stored entries once, then feeds the encoder only those it does not find superseded. A client that resumes in the
 * middle gets every entry, the reset included: it may have seen the attempt. Resets that come after the noted entries are
 * passed on as they are.
 */
import type { Entry } from './entry.ts'
import { isUnder } from './path.ts'

export interface Superseded {
  /** First pass: takes an entry into account. O(1); memory: the open attempts and the resets. */
  note(entry: Entry): void
  /** Second pass: whether this entry belongs to a superseded attempt, or is the `step-reset` that says so. */
  has(entry: Entry): boolean
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
    has({ step, seq }) {
      return ranges.some(({ path, from, to }) => seq >= from && seq <= to && isUnder(step, path))
    },
  }
}

/** Stored entries as a fresh reader should see them. Keeps their `seq`s, so there may be gaps. */
export function withoutSuperseded(entries: readonly Entry[]): Entry[] {
  const superseded = createSuperseded()
  for (const entry of entries) superseded.note(entry)
  return entries.filter((entry) => !superseded.has(entry))
}
