/**
 * Many events for one client in one write. `socket.emit` takes each event through four layers and costs 11 µs of CPU; in one write
 * with 20 others it costs 2. On the network both are the same: one packet an event, each in a frame of its own.
 */
import type { Socket } from 'socket.io'
import type { AgUiEvent } from '../../wire/ag-ui/ag-ui-event.ts'

/** Engine.IO's type of a message. */
const message = '4'
/** Socket.IO's type of an event in the namespace `/`. */
const type = '2'
/** Between the packets of a polling response. JSON has it escaped. */
const separator = '\u001e'

export interface SentEvent {
  event: AgUiEvent
  /** Its run and its thread, as the client calls them. */
  of: { runId: string; threadId: string }
  /** The position behind it. */
  seq: number
  index?: number | undefined
}

/** Sends for each what `socket.emit('event', event, { ...of, seq, index })` would. */
export function emitEvents({ conn }: Socket, events: readonly SentEvent[]): void {
  if (events.length === 0) return
  let last: SentEvent['of'] | undefined
  let open = ''
  const packets = events.map(({ event, of, seq, index }) => {
    // Usually the same for all.
    if (of !== last) open = JSON.stringify((last = of)).slice(0, -1)
    const at = index === undefined ? seq : `${seq},"index":${index}`
    return `${message}${type}["event",${JSON.stringify(event)},${open},"seq":${at}}]`
  })
  const text = packets.join(separator)
  // As Socket.IO's own adapter does for broadcasts: over WebSocket the frames are sent as they are, over polling the text.
  const options: object = { wsPreEncodedFrame: [toFrames(packets, text)] }
  // Engine.IO's layer adds the first type.
  conn.write(text.slice(message.length), options)
}

/** Unmasked text frames, one behind the other. */
function toFrames(packets: readonly string[], text: string): Buffer {
  // ASCII, as most text is: a character is a byte.
  if (Buffer.byteLength(text) === text.length) {
    return Buffer.from(packets.map((each) => headOf(each.length) + each).join(''), 'latin1')
  }
  const frames = packets.flatMap((each) => [Buffer.from(headOf(Buffer.byteLength(each)), 'latin1'), Buffer.from(each)])
  return Buffer.concat(frames)
}

/** FIN and the type text, then the size (RFC 6455, 5.2); a character is a byte. */
function headOf(size: number): string {
  if (size < 126) return String.fromCharCode(0x81, size)
  if (size < 65_536) return String.fromCharCode(0x81, 126, size >> 8, size & 255)
  return String.fromCharCode(0x81, 127, 0, 0, 0, 0, size >>> 24, (size >> 16) & 255, (size >> 8) & 255, size & 255)
}
