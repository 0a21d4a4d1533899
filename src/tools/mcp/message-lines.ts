/** The messages in what a program prints to its stdout: one in a line. Lines that are none are passed over, such as stray prints. */
import { parseJSONRPCMessage, type JSONRPCMessage } from '@modelcontextprotocol/client'
import { isObject } from '../../pipeline/json-schema/keywords.ts'

const lineFeed = 10

export interface MessageLines {
  /** Undefined: a line has more bytes than allowed. */
  read(chunk: Buffer): JSONRPCMessage[] | undefined
}

/** `most`: bytes of a line. */
export function createMessageLines(most: number): MessageLines {
  /** The bytes since the last line feed. They are joined once, at the end of the line, however long it is. */
  let pieces: Buffer[] = []
  let pending = 0

  function whole(end: Buffer): Buffer {
    const line = pieces.length === 0 ? end : Buffer.concat([...pieces, end])
    pieces = []
    pending = 0
    return line
  }

  return {
    read(chunk) {
      const messages: JSONRPCMessage[] = []
      let start = 0
      for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
        if (pending + end - start > most) return undefined
        const message = messageIn(whole(chunk.subarray(start, end)))
        if (message !== undefined) messages.push(message)
        start = end + 1
      }
      const rest = chunk.length - start
      pending += rest
      if (pending > most) return undefined
      if (rest > 0) pieces.push(chunk.subarray(start))
      return messages
    },
  }
}

const opening = '{"jsonrpc"'

/** A print without a line break, or a byte order mark, may stand before it. */
function messageIn(line: Buffer): JSONRPCMessage | undefined {
  const at = line.indexOf(0x7b)
  if (at < 0) return undefined
  const text = line.toString('utf8', at)
  const found = asMessage(text)
  if (found !== undefined) return found
  const behind = text.indexOf(opening, 1)
  return behind < 0 ? undefined : asMessage(text.slice(behind))
}

function asMessage(text: string): JSONRPCMessage | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) && value['jsonrpc'] === '2.0' ? parseJSONRPCMessage(value) : undefined
  } catch {
    return undefined
  }
}
