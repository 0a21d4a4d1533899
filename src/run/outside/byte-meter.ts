/** Counts the bytes of a response body and throws when a limit is exceeded. */
import { bodyTooLarge, lineTooLong, type ReadLimits } from './read-limits.ts'

/** Throws `line-too-long` or `body-too-large`. */
export type ByteMeter = (bytes: Uint8Array) => void

export interface MeterOptions {
  /** Subject of error messages: `openai:gpt-5`. */
  who: string
  limits: ReadLimits
  /**
   * Which limits apply. `document` (a JSON body): `bodyBytes`. `lines` (one answer as a stream of events): both. `message` (one
   * message of an MCP server): `lineBytes`. `messages` (a stream of these, of unlimited length): `lineBytes` for each.
   */
  shape: 'document' | 'lines' | 'message' | 'messages'
}

const lineFeed = 10
const carriageReturn = 13

export function createByteMeter({ who, limits, shape }: MeterOptions): ByteMeter {
  let total = 0
  // The bytes that an SSE parser buffers: everything since the last empty line.
  let event = 0
  let isLineEmpty = true
  let before = 0

  function readLines(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i]!
      event += 1
      if (byte === lineFeed || byte === carriageReturn) {
        const isSecondOfPair = byte === lineFeed && before === carriageReturn
        if (isLineEmpty && !isSecondOfPair) event = 0
        isLineEmpty = true
      } else isLineEmpty = false
      before = byte
      if (event > limits.lineBytes) throw lineTooLong(who, limits)
    }
  }

  return (bytes) => {
    total += bytes.length
    if (shape === 'lines' || shape === 'messages') readLines(bytes)
    if (shape === 'message' && total > limits.lineBytes) throw lineTooLong(who, limits)
    if ((shape === 'document' || shape === 'lines') && total > limits.bodyBytes) throw bodyTooLarge(who, limits)
  }
}
