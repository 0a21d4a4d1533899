/** `GET /ag-ui/:agentId/connect?threadId=`: a client comes to a thread, or comes back to it. */
import { answerResponse, withRunId } from '../../answer/answer-response.ts'
import { openAnswer } from '../../answer/open-answer.ts'
import { compact } from '../../part/compact.ts'
import { MillraceError } from '../../part/error.ts'
import { readInput, readKept } from '../../fold/read-view.ts'
import { hasEnded, type RunRow } from '../../part/log.ts'
import { timeOf } from '../../part/store-time.ts'
import { conversation } from '../../runtime/conversation.ts'
import type { AgUiEvent } from '../../wire/ag-ui/ag-ui-event.ts'
import { agUiWire } from '../../wire/ag-ui/ag-ui.ts'
import { textWire } from '../../wire/text/text.ts'
import { toAgUiMessages } from '../../wire/ag-ui/to-ag-ui-messages.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import type { HandlerContext } from '../handler.ts'
import { bad, readQuery } from '../http/query.ts'
import { chatPolicy } from '../routes/chat-request.ts'
import { joinRun } from './join-run.ts'
import { transportOf, type AgUiTransport } from './transport.ts'

/** Protocols whose clients come back, so that a run stops when all of them have left. Others run on. */
const interactive: ReadonlySet<string> = new Set([agUiWire.name, uiWire.name, textWire.name])

/**
 * The conversation and its newest run: an active one from where it was last continued, then live; a suspended one with what it waits
 * for; otherwise the snapshot alone. Without `protocolVersion` the client counts as older than 1.0, as in a run's input.
 */
export async function connectThread(context: HandlerContext, request: Request): Promise<Response> {
  const { runtime } = context
  const { threadId, protocolVersion } = readQuery(new URL(request.url), { threadId: 256, protocolVersion: 20 })
  if (threadId === undefined || threadId === '') throw bad('threadId', 'the id of a thread (?threadId=…)')
  const [row] = await runtime.store.runs.list({ threadId, limit: 1 })
  if (row === undefined) throw new MillraceError('unknown-thread', `There is no thread ${threadId}.`)
  const transport = await transportOf(request)
  const joined = hasEnded(row.status) ? undefined : await joinRun(runtime, row.id)
  if (joined === undefined || joined.standing.isAnswered) return ended(context, row, transport)
  const { wire } = transport
  const options = { ...joined.options, old: protocolVersion === undefined }
  const policy = interactive.has(row.protocol) ? chatPolicy(runtime, row.agent) : 'detach'
  const answer = await openAnswer(context, { ...joined, runId: row.id, wire, options, policy })
  return answerResponse(wire, row.id, answer)
}

async function ended({ runtime: { store } }: HandlerContext, { id, threadId }: RunRow, { wire, frame }: AgUiTransport) {
  const [{ messages }, input, kept] = await Promise.all([
    conversation(store, threadId, id),
    readInput(store.log, id),
    readKept(store, id),
  ])
  const runId = kept?.labels?.['runId'] ?? id
  const { state } = { ...input, ...kept?.resumedInput } as { state?: unknown }
  const timestamp = timeOf(store)
  const metadata = { millrace: { runId: id } }
  const events: AgUiEvent[] = [
    { type: 'RUN_STARTED', timestamp, threadId, runId, protocolVersion: '1.0', metadata },
    { type: 'MESSAGES_SNAPSHOT', timestamp, messages: toAgUiMessages(messages) },
    ...(state == null ? [] : [{ type: 'STATE_SNAPSHOT' as const, timestamp, snapshot: state }]),
    { type: 'RUN_FINISHED', timestamp, threadId, runId, outcome: { type: 'success' } },
  ]
  const headers = compact({
    'content-type': wire.contentType,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  return withRunId(new Response(frame(events) as BodyInit, { headers }), id)
}
