/** Entries with gaps between their `seq`s: those of compacted runs. */
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { mergedAround } from '../fold/compaction.ts'

/** The index of the first entry after this `seq`. Without gaps it is found at once. */
export function indexAfter(entries: readonly Entry[], seq: number): number {
  const guess = seq + 1 - (entries[0]?.seq ?? 0)
  if (guess <= 0) return 0
  if (entries[guess]?.seq === seq + 1) return guess
  let low = 0
  let high = Math.min(entries.length, guess)
  while (low < high) {
    const middle = (low + high) >> 1
    if (entries[middle]!.seq <= seq) low = middle + 1
    else high = middle
  }
  return low
}

/** Throws `compacted` if a cursor stands inside merged deltas: what comes after it is not known any more. `entries` follow it. */
export function refuseMerged(run: string, after: number, entries: readonly Entry[]): void {
  const found = after === 0 || entries[0]?.firstSeq === undefined ? undefined : mergedAround(after, entries)
  if (found === undefined) return
  const { first, last } = found
  const what = `run ${run} was compacted: its entries ${first} to ${last} are merged, and ${after} is among them`
  throw new MillraceError('compacted', `${what}. Use ${first - 1} or ${last}, or read from the start`, { status: 410 })
}
