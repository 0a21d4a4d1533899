/** One run that one client follows: a cursor into its log, read as fast as the connection accepts it. A slow client costs one batch. */
import type { Editor } from '../turn/own-pipeline.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { openDelivery, type DeliveryContext } from '../../delivery/open-delivery.ts'
import { readReplayState } from '../../delivery/run-reader.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import { toCallId } from '../../wire/ag-ui/ag-ui-ids.ts'
import type { AgUiEvent, AgUiOptions } from '../../wire/ag-ui/ag-ui-event.ts'
import { agUiObjectsWire } from '../../wire/ag-ui/ag-ui.ts'
import { createClientCalls, type ClientCalls } from './client-calls.ts'
import { numberedWire, type NumberedEvent, type Position } from './message.ts'
import type { Handler } from '../handler-context.ts'
import type { Principal } from '../../part/principal.ts'
import type { Admission } from '../http/admission.ts'
import type { Socket } from 'socket.io'

export interface FollowOptions {
  runId: string
  /** The client's id of the run, until an event names another. */
  label: string
  threadId: string
  /** The client's position. Default: the beginning. */
  after?: Position
  /** The run was started or continued for this client, so nothing of it is superseded, and its earlier parts have ended. */
  isNew: boolean
  /** The calls whose results the client has sent with its request. */
  answered?: ReadonlySet<string>
  options: Partial<AgUiOptions>
  policy: DisconnectPolicy
  drain: Drain
  emit(events: readonly SentEvent[]): void
  /** No more events follow. */
  onEnd(): void
}

export interface FollowedRun {
  readonly runId: string
  readonly threadId: string
  /** The client's id of the run, or ours. */
  readonly label: string
  readonly isOver: boolean
  readonly calls: ClientCalls
  /** Settles when it has read the entries stored at its start: until then `calls` may be incomplete. */
  caughtUp: Promise<void>
  /** Starts sending. Call it once. */
  begin(): void
  leave(): void
}

export async function followRun(context: SessionContext, options: FollowOptions): Promise<FollowedRun> {
  const { runtime, signal, onWaiting } = context
  const { log, runs } = runtime.store
  const { runId, label, threadId, after = { seq: 0 }, isNew, answered, policy, drain, emit, onEnd } = options
  const calls = createClientCalls({ log, runId, signal, onWaiting })
  const lastSeq = isNew ? after.seq : ((await runs.get(runId))?.lastSeq ?? 0)
  const caughtUp = Promise.withResolvers<void>()
  if (lastSeq === 0) caughtUp.resolve()
  /** The client's ids of the run and its thread. */
  let of = { runId: label, threadId }
  let isOver = false

  function takeLabel(event: AgUiEvent): void {
    if (event.type === 'RUN_STARTED') of = { runId: event.runId, threadId }
  }

  function finish(): void {
    if (isOver) return
    isOver = true
    // A session keeps ended runs for their calls: they must not retain their readers.
    source = undefined
    caughtUp.resolve()
    onEnd()
  }

  const replayState = isNew ? undefined : await readReplayState(log, runId)
  // Superseded attempts can be left out only for a client that has seen nothing.
  const isFresh = after.seq === 0 && after.index === undefined
  if (replayState !== undefined && !isFresh) replayState.filter = (entries) => entries
  const wire = numberedWire(agUiObjectsWire, after, {
    entry(entry) {
      calls.note(entry)
      if (entry.seq >= lastSeq) caughtUp.resolve()
    },
    begun: takeLabel,
  })
  const from = after.seq === 0 ? 0 : after.seq + 1
  const wireOptions = { ...options.options, live: true, liveFrom: isNew ? from : 0 }
  const answer = await openDelivery(context, {
    runId,
    wire,
    options: wireOptions,
    from,
    policy,
    ...omitUndefined({ replayState }),
  })
  let source: typeof answer.source | undefined = answer.source
  const ask = () => source?.next(send, fail)

  function send(piece: NumberedEvent<AgUiEvent>[] | undefined): void {
    if (isOver) return
    if (piece === undefined) return finish()
    const events: SentEvent[] = []
    for (const { event, seq, index } of piece) {
      takeLabel(event)
      if (event.type === 'TOOL_CALL_RESULT' && answered?.has(toCallId(event.toolCallId)) === true) continue
      events.push({ event, of, seq, index })
    }
    emit(events)
    drain.whenDrained(ask)
  }

  function fail(error: unknown): void {
    context.onError(error)
    finish()
  }

  return {
    runId,
    threadId,
    get label() {
      return of.runId
    },
    get isOver() {
      return isOver
    },
    calls,
    caughtUp: caughtUp.promise,
    begin: ask,
    leave() {
      source?.cancel()
      finish()
    },
  }
}

/** What the server shares with all sockets, and who this one is. */
export interface SessionContext extends DeliveryContext, Editor {
  /** The client. The runtime is scoped to it. */
  principal: Principal
  admission: Admission | undefined
  /** The HTTP routes. */
  handler: Handler
  /** Aborts when the server has closed. */
  signal: AbortSignal
  /** +1 when a tool result begins to wait for its request, -1 when it ends. */
  onWaiting(change: 1 | -1): void
}

/** Backpressure of one connection: the sender continues once the network has accepted its data. */
interface Drain {
  /** Calls `next` once the connection can take more: at once if it can now. Never, once the connection is closed. */
  whenDrained(next: () => void): void
}

/**
 * A transport is not `writable` while the network has not accepted the sent data; with polling, while no request waits for a response. `ready`
 * reports that it is again; `upgrade`, that another transport has replaced it.
 */
export function createDrain(conn: Socket['conn']): Drain {
  let waiting: (() => void)[] = []

  function listen(): void {
    const { transport } = conn
    const look = () => {
      transport.off('ready', look)
      conn.off('upgrade', look)
      if (conn.readyState === 'closed') waiting = []
      else if (!conn.transport.writable) listen()
      else {
        const ready = waiting
        waiting = []
        for (const next of ready) next()
      }
    }
    transport.once('ready', look)
    conn.once('upgrade', look)
  }

  return {
    whenDrained(next) {
      if (conn.transport.writable) return next()
      if (waiting.push(next) === 1) listen()
    },
  }
}

/*
 * Sends many events for one client in one write. `socket.emit` takes each event through four layers and costs 11 µs of CPU; in one write with 20
 * others it costs 2. On the network both are the same: one packet per event, each in its own frame.
 */

/** Engine.IO's type of a message. */
const message = '4'
/** Socket.IO's type of an event in the namespace `/`. */
const type = '2'
/** Between the packets of a polling response. JSON escapes it. */
const separator = '\u001e'

export interface SentEvent {
  event: AgUiEvent
  /** Its run and its thread, by the client's ids. */
  of: { runId: string; threadId: string }
  /** The position after it. */
  seq: number
  index?: number | undefined
}

/** Has the same effect as `socket.emit('event', event, { ...of, seq, index })` for each. */
export function emitEvents({ conn }: Socket, events: readonly SentEvent[]): void {
  if (events.length === 0) return
  let last: SentEvent['of'] | undefined
  let open = ''
  const packets = events.map(({ event, of, seq, index }) => {
    // Usually equal for all events.
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

/** Unmasked text frames, concatenated. */
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
