/**
 * Consecutive deltas of one text are stored as one line: they differ only in their texts, and by a few ms in their times. A model that is read in
 * bursts sends hundreds in one tick. Separate lines would be nine tenths repetition, and writing them a third of a delta's cost.
 */
import type { Entry } from '../../part/entry.ts'
import { isPlainDelta, type PlainDelta } from '../../part/entry-lines.ts'
import { lastTime } from '../../part/entry-shapes.ts'
import type { TickRow } from './batch-index.ts'

/** The entries `seq`, `seq + 1` and so on, as one line of the log. */
export interface DeltaBlock extends Omit<PlainDelta, 'delta'> {
  deltas: string[]
  /** ms from `timestamp` to the time of each delta. Absent if all times are equal. */
  offsets?: number[]
}

/** Maximum deltas in a block: SQL finds each offset by counting, and longer blocks would save little space. */
const mostDeltas = 64
/** Characters that count for an entry where memory is limited, about the length of its own line. */
const entrySize = 100

/** The index after the longest block of entries from `i` on: `i` if the first entry cannot be in one. */
export function endOfBlock(entries: readonly Entry[], i: number): number {
  const first = entries[i]!
  if (!isPlainDelta(first) || !Number.isSafeInteger(first.timestamp)) return i
  const { type, id, step } = first
  const most = Math.min(entries.length, i + mostDeltas)
  let end = i + 1
  for (; end < most; end++) {
    const next = entries[end]!
    if (next.type !== type || next.seq !== first.seq + end - i || next.step !== step) break
    if (!isPlainDelta(next) || next.id !== id || !Number.isSafeInteger(next.timestamp)) break
  }
  return end
}

/** The line of a range that {@link endOfBlock} found. */
export function blockLine(entries: readonly Entry[], from: number, to: number): string {
  const given = entries.slice(from, to) as PlainDelta[]
  const { seq, timestamp, step, type, id } = given[0]!
  const block: DeltaBlock = { seq, timestamp, step, type, id, deltas: given.map(({ delta }) => delta) }
  if (given.some((each) => each.timestamp !== timestamp)) {
    block.offsets = given.map((each) => each.timestamp - timestamp)
  }
  return JSON.stringify(block)
}

/** `views.ts` has the same rule in SQL. */
export function isBlock(stored: Entry | DeltaBlock): stored is DeltaBlock {
  if (!('deltas' in stored) || 'delta' in stored) return false
  const { deltas, offsets = [] } = stored
  return (
    Array.isArray(deltas) &&
    deltas.length > 1 &&
    typeof deltas[0] === 'string' &&
    Array.isArray(offsets) &&
    Number.isSafeInteger(stored.seq) &&
    stored.timestamp >= 0 &&
    stored.timestamp <= lastTime &&
    typeof stored.step === 'string' &&
    typeof stored.id === 'string'
  )
}

/** Adds its entries to a list. */
export function addEntries({ seq, timestamp, step, type, id, deltas, offsets }: DeltaBlock, entries: Entry[]): void {
  for (const [i, delta] of deltas.entries()) {
    const offset = offsets?.[i]
    const at = timestamp + (typeof offset === 'number' ? offset : 0)
    entries.push({ seq: seq + i, timestamp: at, step, type, id, delta: typeof delta === 'string' ? delta : '' })
  }
}

/** The size in memory of entries that are stored as this text: about the characters of one line per entry. */
export function sizeOf(text: string, entries: number): number {
  return Math.max(text.length, entries * entrySize)
}

/** The size of a row. The numbers of a compacted row do not give its number of entries. */
export function sizeOfRow({ entries, firstSeq, lastSeq }: Omit<TickRow, 'id'>): number {
  return entries.includes('"deltas":[') ? sizeOf(entries, lastSeq - firstSeq + 1) : entries.length
}
