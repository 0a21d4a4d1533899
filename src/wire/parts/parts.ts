/**
 * The log itself as a wire: every entry as recorded. NDJSON, or SSE with the `seq` as event id, so that an `EventSource`
 * reconnects with `Last-Event-ID`. Both continue across suspends and end after `run-end`.
 *
 * | part | frame |
 * |---|---|
 * | every part | its entry as one line of JSON |
 * | a failure that is not in the log | `{"type":"error","error":{code,message}}`, without `seq` because it is not an entry |
 */
import type { Entry } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import type { Encoder, Wire } from '../wire.ts'

export const partsWire: Wire = {
  name: 'parts',
  contentType: 'application/x-ndjson',
  // No empty lines: `JSON.parse('')` throws in typical readers.
  keepAlive: '',
  createEncoder: () => createPartsEncoder((json) => `${json}\n`),
}

export const partsSseWire: Wire = {
  name: 'parts-sse',
  contentType: 'text/event-stream',
  keepAlive: ': keep-alive\n\n',
  createEncoder: () =>
    createPartsEncoder((json, seq) => (seq === undefined ? `data: ${json}\n\n` : `id: ${seq}\ndata: ${json}\n\n`)),
}

function createPartsEncoder(frame: (json: string, seq?: number) => string): Encoder {
  function skip(entry: Entry): void {
    if (entry.type === 'run-end') encoder.state = 'complete'
  }
  const encoder = {
    state: 'open' as Encoder['state'],
    encode(entry: Entry) {
      if (encoder.state !== 'open') return ''
      skip(entry)
      return frame(JSON.stringify(entry), entry.seq)
    },
    skip,
    fail(error: ErrorValue) {
      if (encoder.state !== 'open') return ''
      encoder.state = 'complete'
      return frame(JSON.stringify({ type: 'error', error }))
    },
  }
  return encoder
}
