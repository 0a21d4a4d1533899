/** How AG-UI events are sent over HTTP: as SSE, or as protobuf if the client names it. */
import { objects } from '../../wire/framing/objects.ts'
import { sse } from '../../wire/framing/sse.ts'
import type { AgUiEvent, AgUiOptions } from '../../wire/ag-ui/ag-ui-event.ts'
import { projectAgUi } from '../../wire/ag-ui/ag-ui-projection.ts'
import { agUiWire } from '../../wire/ag-ui/ag-ui.ts'
import { createWire, type Framing, type Wire } from '../../wire/wire.ts'
import { preferredType } from '../http/accept.ts'

type Bytes = string | Uint8Array

export interface AgUiTransport {
  wire: Wire<AgUiOptions, Bytes>
  /** All of a body. */
  frame(events: readonly AgUiEvent[]): Bytes
}

const protobufType = 'application/vnd.ag-ui.event+proto'

/**
 * A wildcard in `Accept` means SSE, which everybody can read. The official encoder would send protobuf to curl. A client that names both alike gets
 * protobuf, in whichever order, as from the official servers.
 */
export async function transportOf(request: Request): Promise<AgUiTransport> {
  const wanted = preferredType(request, ['text/event-stream', protobufType], protobufType)
  if (wanted !== protobufType) return { wire: agUiWire, frame: frameWith(sse<AgUiEvent>()) }
  protobuf ??= createProtobuf()
  return protobuf
}

let protobuf: Promise<AgUiTransport> | undefined

/** The package is loaded for the first client that asks for it. */
async function createProtobuf(): Promise<AgUiTransport> {
  const { EventEncoder } = await import('@ag-ui/encoder')
  const encoder = new EventEncoder({ accept: protobufType })
  const framing = bytes((event) => encoder.encodeBinary(event as Parameters<typeof encoder.encodeBinary>[0]))
  const { name, showsAbort, showsHistory } = agUiWire
  const wire = createWire<AgUiEvent, AgUiOptions, Uint8Array>({
    name,
    project: projectAgUi,
    framing,
    ...(showsAbort && { showsAbort }),
    ...(showsHistory && { showsHistory }),
  })
  return { wire, frame: frameWith(framing) }
}

function frameWith<Out extends Bytes>(framing: Framing<AgUiEvent, Out>) {
  return (events: readonly AgUiEvent[]): Out => {
    const frames = framing.open()
    for (const event of events) frames.send(event)
    return frames.take()
  }
}

/** Each event as bytes, one after the other. There is no frame for a keep-alive. */
function bytes(encode: (event: AgUiEvent) => Uint8Array): Framing<AgUiEvent, Uint8Array> {
  const collected = objects<AgUiEvent>()
  return {
    contentType: protobufType,
    keepAlive: new Uint8Array(),
    open() {
      const events = collected.open()
      return {
        ...events,
        get muted() {
          return events.muted
        },
        take: () => join(events.take().map(encode)),
      }
    },
  }
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
