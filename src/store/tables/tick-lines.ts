/** Splits a row of `ticks` into its entries, without parsing deltas: they are most of a log, and the tables need few of them. */

/** A line of a tick: `at` (from 1) and `length` are its place in bytes. */
export interface TickLine {
  text: string
  at: number
  length: number
  isDelta: boolean
}

/** A delta as this version writes it. Others are recognised once they are parsed. */
const delta =
  /\{"seq":\d+,"timestamp":[\d.]+,"step":"(?:[^"\\]|\\.)*","type":"(?:text-delta|reasoning-delta|tool-input-delta)"/y

export function* tickLines(entries: string): Generator<TickLine> {
  const isAscii = Buffer.byteLength(entries) === entries.length
  let at = 1
  for (let from = 0; from < entries.length;) {
    const found = entries.indexOf('\n', from)
    const end = found < 0 ? entries.length : found
    delta.lastIndex = from
    const isDelta = delta.test(entries)
    const text = entries.slice(from, end)
    const length = isAscii ? text.length : Buffer.byteLength(text)
    yield { text, at, length, isDelta }
    at += length + 1
    from = end + 1
  }
}
