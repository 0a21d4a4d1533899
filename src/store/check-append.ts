import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { hasEnded, type RunRow } from '../part/log.ts'

/**
 * Checks entries against a run's row. Returns the entries that are not stored yet, or the reason why none is stored. Throws `bad-entry` for entries
 * that only a bug can produce. `isStored`: whether the stored entry of the same `seq` is equal.
 */
export function admitEntries(
  run: string,
  row: AppendedRow | undefined,
  epoch: number,
  entries: readonly Entry[],
  isStored: (entry: Entry) => boolean,
): 'fenced' | 'duplicate' | readonly Entry[] {
  const stored = countStored(run, row, epoch, entries, isStored)
  if (stored === 'fenced') return 'fenced'
  if (stored === entries.length) return 'duplicate'
  return stored === 0 ? entries : entries.slice(stored)
}

type AppendedRow = Pick<RunRow, 'epoch' | 'lastSeq' | 'status'>

/** The number of leading entries that are stored already. */
function countStored(
  run: string,
  row: AppendedRow | undefined,
  epoch: number,
  entries: readonly Entry[],
  isStored: (entry: Entry) => boolean,
): 'fenced' | number {
  if (row && epoch < row.epoch) return 'fenced'
  if (row && epoch > row.epoch) {
    throw bad(`run ${run} has epoch ${row.epoch}, got ${epoch}: claim the run before you append`)
  }
  const last = row?.lastSeq ?? 0
  const first = entries[0]?.seq ?? last + 1
  const hasRunEnded = row !== undefined && hasEnded(row.status)
  // An owner that lost the acknowledgement of the run's end sends it again.
  if (hasRunEnded && entries.at(-1)!.seq > last) return 'fenced'
  const isGap = first > last + 1 && entries[0]?.firstSeq === undefined
  if (isGap) throw bad(`run ${run} expects seq ${last + 1}, got ${first}: entries before it are missing`)
  let stored = 0
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!
    const { seq, type } = entry
    const expected = i === 0 ? first : entries[i - 1]!.seq + 1
    // Merged deltas of a compacted run come after a gap.
    const isNext = seq === expected || (entry.firstSeq !== undefined && seq > expected)
    if (!isNext) throw bad(`run ${run} expects seq ${expected}, got ${seq}`)
    if (seq <= last) stored++
    if (type === 'run-end' && i < entries.length - 1) throw bad(`run ${run}: nothing may follow run-end (${seq})`)
    if (seq > last || isStored(entry)) continue
    if (hasRunEnded) return 'fenced'
    throw bad(`run ${run} has another entry with seq ${seq}: is another writer active?`)
  }
  if (!row && entries[0]?.type !== 'run-start') {
    throw bad(`run ${run} starts with ${entries[0]?.type}; the first entry must be run-start`)
  }
  return stored
}

/** Whether both entries have the same JSON. */
export function isSameEntry(a: Entry, b: Entry): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

function bad(message: string): MillraceError {
  return new MillraceError('bad-entry', message, { status: 409 })
}
