/** Counts the bytes of a response body and throws when a limit is exceeded. */
import { bodyTooLarge, lineTooLong, type ReadLimits } from './read-limits.ts'

/** Throws `line-too-long` or `body-too-large`. */
export type ByteMeter = (bytes: Uint8Array) => void

export interface MeterOptions {
  /** Subject of error messages: `openai:gpt-5`. */
  who: string
  limits: ReadLimits
  /**
   * Which limits apply. `document` (a JSON body): `bodyBytes`. `lines` (one answer as a stream of events): `lineBytes`, and four
   * times `bodyBytes`. `message` (one message of an MCP server): `lineBytes`. `messages` (a stream of these, of unlimited
   * length): `lineBytes` for each.
   */
  shape: 'document' | 'lines' | 'message' | 'messages'
}

const lineFeed = 10
const carriageReturn = 13

const betweenEvents: [number, number] = [lineFeed, lineFeed]

/** A stream is never held in memory as a whole, and its framing is many times longer than its text. */
const streamFactor = 4

export function createByteMeter({ who, limits, shape }: MeterOptions): ByteMeter {
  const bodyBytes = shape === 'lines' ? limits.bodyBytes * streamFactor : limits.bodyBytes
  let total = 0
  // The bytes that an SSE parser buffers: everything since the last empty line.
  let event = 0
  /** The last two bytes: an empty line may be split between pieces. */
  let tail = betweenEvents

  function readLines(bytes: Uint8Array): void {
    const { length } = bytes
    // Most pieces end with an event.
    if (length > 1 && bytes[length - 1] === lineFeed && bytes[length - 2] === lineFeed) {
      event = 0
      tail = betweenEvents
      return
    }
    const rest = bytes.length - endOfEvents(bytes, tail)
    event = rest === bytes.length ? event + rest : rest
    tail = [bytes.at(-2) ?? tail[1], bytes.at(-1) ?? tail[1]]
    if (event > limits.lineBytes) throw lineTooLong(who, limits)
  }

  return (bytes) => {
    total += bytes.length
    if (shape === 'lines' || shape === 'messages') readLines(bytes)
    if (shape === 'message' && total > limits.lineBytes) throw lineTooLong(who, limits)
    if ((shape === 'document' || shape === 'lines') && total > bodyBytes) throw bodyTooLarge(who, bodyBytes)
  }
}

/** The index after the last empty line, 0 if there is none. Usually found at the end at once. */
function endOfEvents(bytes: Uint8Array, [second, first]: readonly [number, number]): number {
  const at = (i: number) => (i >= 0 ? bytes[i]! : i === -1 ? first : second)
  for (let i = bytes.lastIndexOf(lineFeed); i >= 0; i = i === 0 ? -1 : bytes.lastIndexOf(lineFeed, i - 1)) {
    const before = at(i - 1)
    if (before === lineFeed || (before === carriageReturn && at(i - 2) === lineFeed)) return i + 1
  }
  // Lines that end in CR alone: the standard allows them and nobody sends them.
  for (let i = bytes.lastIndexOf(carriageReturn); i >= 0; i = i === 0 ? -1 : bytes.lastIndexOf(carriageReturn, i - 1)) {
    if (at(i - 1) === carriageReturn) return i + 1
  }
  return 0
}
