import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** Events of an SSE body that arrives in these pieces of bytes; throws on a line that is no SSE. */
export function parseSse(...pieces: Uint8Array[]): EventSourceMessage[] {
  const events: EventSourceMessage[] = []
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onError(error) {
      throw error
    },
  })
  const decoder = new TextDecoder()
  for (const piece of pieces) parser.feed(decoder.decode(piece, { stream: true }))
  parser.feed(decoder.decode())
  return events
}

/** The same bytes, cut at these places. */
export function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...cuts].map((from, i) => bytes.subarray(from, cuts[i] ?? bytes.length))
}
