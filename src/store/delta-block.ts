/**
 * Deltas of one text that are stored together are one line: they differ in their texts only, and in their times by some ms. A model
 * that is read in bursts says hundreds in one tick. Their lines would be nine tenths repetition, and writing them a third of a delta's cost.
 */
import type { Entry } from '../part/entry.ts'
import { isPlainDelta, type PlainDelta } from '../part/entry-lines.ts'
import { lastTime } from '../part/entry-shapes.ts'
import type { TickRow } from './sqlite-groups.ts'

/** Entries `seq`, `seq + 1` and so on. A line of the log. */
export interface DeltaBlock extends Omit<PlainDelta, 'delta'> {
  deltas: string[]
  /** ms from `timestamp` to the time of each. Absent if they all have the same. */
  offsets?: number[]
}

/** More are several blocks: SQL finds each offset by counting, and more would save little space. */
const mostDeltas = 64
/** Characters that an entry counts where memory is limited: its line would have about as many. */
const entrySize = 100

/** The index behind the entries from `i` on that can be a block: `i` if the first cannot. */
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

/** The line of entries that {@link endOfBlock} has found. */
export function blockLine(entries: readonly Entry[], from: number, to: number): string {
  const given = entries.slice(from, to) as PlainDelta[]
  const { seq, timestamp, step, type, id } = given[0]!
  const block: DeltaBlock = { seq, timestamp, step, type, id, deltas: given.map(({ delta }) => delta) }
  if (given.some((each) => each.timestamp !== timestamp)) {
    block.offsets = given.map((each) => each.timestamp - timestamp)
  }
  return JSON.stringify(block)
}

/** `views.ts` says the same in SQL. */
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

/** The size in memory of entries that are stored as this text: about their characters, if each had a line. */
export function sizeOf(text: string, entries: number): number {
  return Math.max(text.length, entries * entrySize)
}

/** That of a row. The numbers of a compacted one say nothing of how many entries it has. */
export function sizeOfRow({ entries, firstSeq, lastSeq }: Omit<TickRow, 'id'>): number {
  return entries.includes('"deltas":[') ? sizeOf(entries, lastSeq - firstSeq + 1) : entries.length
}
