/** Reads rows of `ticks` for the tables. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { createBatchIndex, type TickRow } from '../sqlite/batch-index.ts'
import { decodeLine } from '../encode.ts'

export interface TickOfRun extends TickRow {
  run: string
}

/**
 * A row that a slice has left in its middle is cached for the next one: it may have thousands of entries, and reading it takes about as long as a
 * slice.
 */
export interface TickReader {
  /**
   * The rows of a run, starting with the one that has this entry or, if it was merged, the merged one. Leave the loop before the transaction ends.
   */
  from(run: string, seq: number): Generator<TickRow>
  /** The first of them. */
  at(run: string, seq: number): TickRow | undefined
  /** The first row after this one, over all runs. Call `rest` before the transaction ends. */
  after(id: number): TickOfRun | undefined
  rest(): void
}

export function createTickReader(db: DatabaseSync): TickReader {
  const groups = createBatchIndex(db)
  // Arrays: every row of the log is read here, and rows as objects are slow.
  const arrays = { returnArrays: true }
  const later = db.prepare('SELECT id, first_seq, last_seq, entries, run FROM ticks WHERE id > ? ORDER BY id', arrays)
  const stamp = db.prepare('SELECT first_seq, last_seq, octet_length(entries) FROM ticks WHERE id = ?', arrays)
  let rows: Iterator<unknown> | undefined
  let row: TickOfRun | undefined
  /** Whether `row` is from an earlier transaction. */
  let isKept = false
  let bytes = 0
  let ofRun: { run: string; row: TickRow; bytes: number } | undefined

  /** Whether the row is unchanged: compaction may have replaced it. */
  function isSame({ id, firstSeq, lastSeq }: TickRow, length: number): boolean {
    const [first, last, found] = (stamp.get(id) ?? []) as unknown as number[]
    return first === firstSeq && last === lastSeq && found === length
  }

  function rest(): void {
    if (rows !== undefined) {
      rows.return?.()
      rows = undefined
      bytes = row === undefined ? 0 : Buffer.byteLength(row.entries)
    }
    isKept = true
  }

  return {
    from: groups.from,
    at(run, seq) {
      if (
        ofRun?.run === run &&
        ofRun.row.firstSeq <= seq &&
        ofRun.row.lastSeq >= seq &&
        isSame(ofRun.row, ofRun.bytes)
      ) {
        return ofRun.row
      }
      ofRun = undefined
      for (const found of groups.from(run, seq)) {
        ofRun = { run, row: found, bytes: Buffer.byteLength(found.entries) }
        return found
      }
      return undefined
    },
    after(id) {
      if (row !== undefined && row.id > id && (!isKept || isSame(row, bytes))) {
        isKept = false
        return row
      }
      if (row?.id !== id || isKept) rest()
      isKept = false
      rows ??= later.iterate(id)
      const { done, value } = rows.next()
      row = done ? undefined : fromArray(value as SQLOutputValue[])
      if (done) rows = undefined
      return row
    },
    rest,
  }
}

function fromArray([id, firstSeq, lastSeq, entries, run]: SQLOutputValue[]): TickOfRun {
  return {
    id: Number(id),
    firstSeq: Number(firstSeq),
    lastSeq: Number(lastSeq),
    entries: String(entries),
    run: String(run),
  }
}

/* Splits a row of `ticks` into its entries, without parsing deltas: they are most of a log, and the tables need few of them. */

/** A line of a tick: `at` (from 1) and `length` are its place in bytes, `from` is its index in characters. */
export interface TickLine {
  /** The `seq` of its first entry, if it is a block of deltas. */
  seq: number
  text: string
  from: number
  at: number
  length: number
  isDelta: boolean
}

/** The prefix of a line as this version writes it, and of a delta. Other lines are recognized after parsing. */
const start = /\{"seq":(\d+),/y
const delta =
  /\{"seq":\d+,"timestamp":[\d.]+,"step":"(?:[^"\\]|\\.)*","type":"(?:text-delta|reasoning-delta|tool-input-delta)"/y

/** `after`: only entries with a greater `seq`. Recognized deltas are skipped while they are not wanted. `place`: the line to begin with. */
export function* tickLines(
  entries: string,
  after = 0,
  wantsDeltas = () => true,
  place: Pick<TickLine, 'from' | 'at'> = { from: 0, at: 1 },
): Generator<TickLine> {
  let isAscii: boolean | undefined
  /** The character up to which `at` was counted. */
  let counted = place.from
  let { at } = place
  for (let { from } = place, end = 0; from < entries.length; from = end + 1) {
    const found = entries.indexOf('\n', from)
    end = found < 0 ? entries.length : found
    delta.lastIndex = from
    const isDelta = delta.test(entries)
    if (isDelta && !wantsDeltas()) continue
    start.lastIndex = from
    const head = start.exec(entries)
    const text = entries.slice(from, end)
    const seq = head === null ? (decodeLine(text)[0]?.seq ?? 0) : Number(head[1])
    if (seq <= after) continue
    isAscii ??= Buffer.byteLength(entries) === entries.length
    at += isAscii ? from - counted : Buffer.byteLength(entries.slice(counted, from))
    counted = from
    yield {
      seq,
      text,
      from,
      at,
      length: isAscii ? text.length : Buffer.byteLength(text),
      isDelta,
    }
  }
}
