/** `GET /ag-ui/:agentId/connect?threadId=`: a client opens a thread, or returns to it. */
import { deliveryResponse, withRunId } from '../../delivery/delivery-response.ts'
import { openDelivery, readHistory, type OpenOptions } from '../../delivery/open-delivery.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { readInput, readKept, entryAt } from '../../fold/read-view.ts'
import { hasEnded, type RunRow, timeOf } from '../../part/log.ts'
import { conversation } from '../../runtime/conversation.ts'
import type { AgUiEvent, AgUiMessage, AgUiOptions } from '../../wire/ag-ui/ag-ui-event.ts'
import { agUiWire, agUiObjectsWire } from '../../wire/ag-ui/ag-ui.ts'
import { textWire } from '../../wire/text/text.ts'
import { toAgUiMessages } from '../../wire/ag-ui/to-ag-ui-messages.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import { bad, readQuery, preferredType } from '../http/query.ts'
import { pipelineOfRun } from '../../runtime/own-text.ts'
import { chatPolicy } from '../routes/chat-request.ts'
import { threadNamed } from '../routes/existing-thread.ts'
import { readReplayState, type ReplayState } from '../../delivery/run-reader.ts'
import type { EntryOf } from '../../part/entry.ts'
import { messagesOf } from '../../part/message.ts'
import { plainThread } from '../../part/principal.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { createEventMessages } from '../../wire/ag-ui/event-messages.ts'
import { objects } from '../../wire/framing/objects.ts'
import { sse } from '../../wire/framing/text-frames.ts'
import { projectAgUi } from '../../wire/ag-ui/ag-ui-projection.ts'
import { createWire, type Framing, type Wire } from '../../wire/wire.ts'

/** Protocols whose clients return, so that a run stops when all of them have left. Runs of others continue. */
const interactive: ReadonlySet<string> = new Set([agUiWire.name, uiWire.name, textWire.name])

/**
 * The conversation and its newest run: an active one from its last continuation, then live; a suspended one with its open requests; otherwise the
 * snapshot alone. Without `protocolVersion` the client counts as older than 1.0, as in a run's input.
 */
export async function connectThread(context: RequestContext, request: Request): Promise<Response> {
  const { runtime } = context
  const { threadId: name, protocolVersion } = readQuery(new URL(request.url), { threadId: 2048, protocolVersion: 20 })
  if (name === undefined || name === '') throw bad('threadId', 'the id of a thread (?threadId=…)')
  const threadId = await threadNamed(context, name)
  const [row] = await runtime.store.runs.list({ threadId, limit: 1 })
  if (row === undefined) throw new MillraceError('unknown-thread', `There is no thread ${name}.`)
  const transport = await transportOf(request)
  const joined = hasEnded(row.status) ? undefined : await joinRun(runtime, row.id)
  if (joined === undefined || joined.replayState.isAnswered) return ended(context, row, transport)
  const { wire } = transport
  const options = { ...joined.options, old: protocolVersion === undefined }
  const policy = interactive.has(row.protocol) ? chatPolicy(runtime, await pipelineOfRun(runtime, row)) : 'detach'
  const answer = await openDelivery(context, { ...joined, runId: row.id, wire, options, policy })
  return deliveryResponse(wire, row.id, answer)
}

async function ended(
  { runtime: { store } }: HandlerContext,
  { id, threadId, owner }: RunRow,
  { wire, frame }: AgUiTransport,
) {
  const [{ messages }, input, stored] = await Promise.all([
    conversation(store, threadId, id),
    readInput(store.log, id),
    readKept(store, id),
  ])
  const runId = stored?.labels?.['runId'] ?? id
  const { state } = { ...input, ...stored?.resumedInput } as { state?: unknown }
  const timestamp = timeOf(store)
  const metadata = { millrace: { runId: id } }
  const thread = owner === undefined ? threadId : plainThread(threadId)
  const events: AgUiEvent[] = [
    { type: 'RUN_STARTED', timestamp, threadId: thread, runId, protocolVersion: '1.0', metadata },
    { type: 'MESSAGES_SNAPSHOT', timestamp, messages: toAgUiMessages(messages) },
    ...(state == null ? [] : [{ type: 'STATE_SNAPSHOT' as const, timestamp, snapshot: state }]),
    { type: 'RUN_FINISHED', timestamp, threadId: thread, runId, outcome: { type: 'success' } },
  ]
  const headers = omitUndefined({
    'content-type': wire.contentType,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  return withRunId(new Response(frame(events) as BodyInit, { headers }), id)
}

/** Lets a client that did not make the request read a run: its conversation as a snapshot, then its last part from the start. */
type Joining = Required<Pick<OpenOptions<AgUiOptions, never>, 'how' | 'from' | 'replayState'>> & {
  options: Partial<AgUiOptions>
}

/** A continued run has an AG-UI run for each part: the client gets the last one, and the earlier ones as messages in the snapshot. */
export async function joinRun(runtime: Runtime, runId: string): Promise<Joining> {
  const { log } = runtime.store
  const replayState = await readReplayState(log, runId)
  const { resumedAt: from } = replayState
  const how = 'joined' as const
  if (from === 0) return { how, from, replayState, options: { joins: true } }
  return {
    how,
    from,
    replayState,
    options: { joins: true, messages: await messagesBefore(runtime, runId, replayState) },
  }
}

async function messagesBefore(
  runtime: Runtime,
  runId: string,
  { resumedAt, filter }: ReplayState,
): Promise<AgUiMessage[]> {
  const { log } = runtime.store
  const start = (await entryAt(log, runId, 1)) as EntryOf<'run-start'> | undefined
  const history = await readHistory(runtime, runId)
  const before = [...history, ...messagesOf(start?.input ?? {})]
  const encoder = agUiObjectsWire.createEncoder({ resumedAt, history }, { joins: true, messages: [] })
  const said = createEventMessages()
  for await (const batch of log.read(runId, { before: resumedAt })) {
    for (const entry of filter(batch)) for (const event of encoder.encode(entry)) said.apply(event)
  }
  return [...toAgUiMessages(before), ...said.list]
}

/** How AG-UI events are sent over HTTP: as SSE, or as protobuf if the client names it. */
type Bytes = string | Uint8Array

interface AgUiTransport {
  wire: Wire<AgUiOptions, Bytes>
  /** Frames a whole body. */
  frame(events: readonly AgUiEvent[]): Bytes
}

const protobufType = 'application/vnd.ag-ui.event+proto'

/**
 * A wildcard in `Accept` means SSE, which every client can read. The official encoder would send protobuf to curl. A client that names both with
 * equal weight gets protobuf, in any order, as from the official servers.
 */
export async function transportOf(request: Request): Promise<AgUiTransport> {
  const wanted = preferredType(request, ['text/event-stream', protobufType], protobufType)
  if (wanted !== protobufType) return { wire: agUiWire, frame: frameWith(sse<AgUiEvent>()) }
  protobuf ??= createProtobuf()
  return protobuf
}

let protobuf: Promise<AgUiTransport> | undefined

/** The package is loaded for the first client that needs it. */
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
