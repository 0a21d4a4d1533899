/** Splits a row of `ticks` into its entries, without parsing deltas: they are most of a log, and the tables need few of them. */
import { decodeLine } from '../encode.ts'

/** A line of a tick: `at` (from 1) and `length` are its place in bytes, `from` is that in characters. */
export interface TickLine {
  /** That of its first entry, if it is several deltas. */
  seq: number
  text: string
  from: number
  at: number
  length: number
  isDelta: boolean
}

/** The start of a line as this version writes it, and of a delta. Others are recognised once they are parsed. */
const start = /\{"seq":(\d+),/y
const delta =
  /\{"seq":\d+,"timestamp":[\d.]+,"step":"(?:[^"\\]|\\.)*","type":"(?:text-delta|reasoning-delta|tool-input-delta)"/y

/**
 * `after`: only entries with a greater `seq`. Deltas that are recognised as such are left out while they are not wanted. `place`: the line
 * to begin with.
 */
export function* tickLines(
  entries: string,
  after = 0,
  wantsDeltas = () => true,
  place: Pick<TickLine, 'from' | 'at'> = { from: 0, at: 1 },
): Generator<TickLine> {
  let isAscii: boolean | undefined
  /** How far `at` has been counted: up to this character. */
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
