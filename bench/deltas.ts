/**
 * A delta of the benchmark: `~`, its number in the stream (four digits, base 36) and, if latency is measured, its send time (nine
 * digits, µs of the machine's monotonic clock, which all processes share), then a full stop: no form of the server's key begins
 * with one, so nothing of a delta is held back for the next. The numbers reveal missing, duplicate and misplaced
 * deltas, which would otherwise look like a fast server.
 */
const indexDigits = 4
const stampDigits = 9

/** The monotonic clock of this machine, shared by all processes, in µs. */
export function nowMicros(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

/** Six characters; fifteen with a send time. */
export function deltaText(index: number, sentAt?: number): string {
  const digits = index.toString(36).padStart(indexDigits, '0')
  const stamp = sentAt === undefined ? '' : sentAt.toString(36).padStart(stampDigits, '0')
  return `~${digits}${stamp}.`
}

/** When a delta of fifteen characters was sent. */
export function sentAt(delta: string): number {
  return Number.parseInt(delta.slice(1 + indexDigits, -1), 36)
}

export interface Scanner {
  /** Deltas so far, all in order. */
  readonly count: number
  /** Throws if a delta is out of order. */
  push(payload: Buffer): void
}

/** Finds the deltas in a body of any protocol, however it is split. `mark` is the text before a delta, including its `~`. */
export function createScanner(mark: string, stamped: boolean, onDelta?: (sentAt: number) => void): Scanner {
  const needle = Buffer.from(mark)
  const width = indexDigits + (stamped ? stampDigits : 0)
  let rest: Buffer = Buffer.alloc(0)
  let count = 0
  /** Bytes from a delta to the next, the last time. */
  let stride = 0

  /** Searches only if the next delta is not where it should be: a search for each costs as much as a tenth of what is measured. */
  function find(data: Buffer, from: number, at: number): number {
    let i = 0
    while (i < needle.length && data[at + i] === needle[i]) i++
    return i === needle.length ? at : data.indexOf(needle, from)
  }

  function take(data: Buffer, at: number): void {
    const index = digitsAt(data, at, indexDigits)
    if (index !== count) throw new Error(`delta ${index} came where ${count} was next`)
    count++
    if (stamped) onDelta?.(digitsAt(data, at + indexDigits, stampDigits))
  }

  return {
    get count() {
      return count
    },
    push(payload) {
      const data = rest.length === 0 ? payload : Buffer.concat([rest, payload])
      let at = 0
      let last = -stride
      for (;;) {
        const found = find(data, at, Math.max(at, last + stride))
        const from = found + needle.length
        if (found === -1 || from + width > data.length) {
          at = found === -1 ? Math.max(at, data.length - needle.length + 1) : found
          break
        }
        take(data, from)
        if (last >= 0) stride = found - last
        last = found
        at = from + width
      }
      // A copy: a view would keep the whole read alive, times thousands of streams.
      rest = Buffer.from(data.subarray(at))
    },
  }
}

function digitsAt(data: Buffer, at: number, digits: number): number {
  let value = 0
  for (let i = at; i < at + digits; i++) {
    const code = data[i]!
    value = value * 36 + (code < 58 ? code - 48 : code - 87)
  }
  return value
}
