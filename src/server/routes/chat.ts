/** `POST /api/chat`, `POST /api/beddel/chat`, `GET /api/chat/:id/stream`. */
import { fromErrorValue, MillraceError } from '../../part/error.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import { continueOrStart, type Turn } from '../../runtime/continue.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { turnKey } from '../../runtime/turn-key.ts'
import { fromClientMessages, toolAnswers } from '../../wire/ui/ui-message.ts'
import { textWire } from '../../wire/text/text.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import type { Wire } from '../../wire/wire.ts'
import { preferredType } from '../http/accept.ts'
import { awaitAcceptance } from '../../answer/acceptance.ts'
import { optionalText, readJson } from '../http/body.ts'
import type { HandlerContext } from '../handler.ts'
import { errorResponse } from '../../answer/http-error.ts'
import { mayStream } from '../../answer/may-stream.ts'
import { isAnsweredAsItIs, stepResponse } from '../../answer/step-response.ts'
import { replayFilter, streamAnswer, type StreamedAnswer } from '../../answer/stream-response.ts'
import { listedAgents } from '../../runtime/listed.ts'

export async function postChat(context: HandlerContext, request: Request, defaultWire: Wire): Promise<Response> {
  const { runtime, maxBodyBytes } = context
  const body = await readJson(request, maxBodyBytes)
  const agentId = optionalText(body, 'agentId')
  if (agentId === undefined) {
    const known = listedAgents(runtime.agents).map(({ id }) => id)
    throw new MillraceError('bad-input', `agentId is missing. Known agents: ${known.join(', ') || 'none'}.`)
  }
  const wire = wireOf(request, defaultWire)
  const threadId = optionalText(body, 'id')
  const messages = fromClientMessages(body['messages'])
  // Message ids are unique only within a thread: some clients count from 1.
  const key = threadId === undefined ? undefined : turnKey(body)
  const turn: Turn = {
    agentId,
    messages,
    answers: toolAnswers(body['messages']),
    input: inputOf(body),
    protocol: wire.name,
    traceparent: request.headers.get('traceparent'),
    onBusy: 'interrupt',
    history: 'client',
    ...(threadId === undefined ? undefined : { threadId, labels: { chatId: threadId } }),
    ...(key === undefined ? undefined : { turnKey: key }),
  }
  const { run, how, from } = await continueOrStart(runtime, turn)
  // Read `run.result` only if needed: it reads the log.
  if (context.waitUntil !== undefined) context.waitUntil(run.result)
  const pipeline = runtime.agents.get(agentId)?.pipeline
  const policy = pipeline?.onDisconnect ?? defaultPolicy(runtime)

  // The client counts as connected while it waits for the status.
  const release = runtime.attach(run.id, policy)
  let answer: StreamedAnswer | undefined
  let finished = false
  try {
    const joined = how === 'joined'
    const resumedAt = joined ? (await standing(runtime, run.id)).resumedAt : from
    const filter = joined ? await replayFilter(runtime, run.id) : undefined
    const options = { ui7: isUi7(request) }
    // Created while the model request is still pending.
    answer = streamAnswer(context, { runId: run.id, wire, from, filter, policy, context: { resumedAt }, options })
    const { reader } = answer
    const streams = pipeline === undefined || mayStream(pipeline, (id) => runtime.agents.get(id)?.pipeline)
    const accepted = await awaitAcceptance(runtime, run.id, { reader, streams, from, signal: request.signal })
    if (accepted.kind === 'left') return new Response(null, { status: 499 })
    const { head } = accepted.kind === 'response' ? accepted : {}
    const isRaw = head !== undefined && isAnsweredAsItIs(head, wire)
    finished = isRaw || accepted.kind === 'value' || accepted.kind === 'error'
    if (isRaw) return await stepResponse(context, { runId: run.id, head, policy, from, signal: request.signal })
    if (accepted.kind === 'value') return withRunId(Response.json(accepted.output ?? null), run.id)
    // The UI stream has a chunk for a stopped answer, so there it is not an HTTP error.
    if (accepted.kind === 'error' && (accepted.error.code !== 'aborted' || wire.showsAbort !== true)) {
      return withRunId(errorResponse(fromErrorValue(accepted.error)), run.id)
    }
    const { response } = answer
    answer = undefined
    return response
  } finally {
    answer?.drop(finished)
    release({ finished })
  }
}

/** The active answer of a chat from its start, or 204. `useChat({resume: true})` requests it after a reload. */
export async function getChatStream(context: HandlerContext, request: Request, threadId: string): Promise<Response> {
  const { runtime } = context
  const none = () => new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } })
  const row = (await runtime.store.runs.list({ threadId, limit: 1 }))[0]
  if (row?.status !== 'running') return none()
  const { resumedAt, answered } = await standing(runtime, row.id)
  if (answered) return none()
  // A run that was not started by a chat (but by /api/runs or a program) goes on when a reader disconnects.
  const isChat = row.protocol === uiWire.name || row.protocol === textWire.name
  const policy = isChat ? (runtime.agents.get(row.agent)?.pipeline.onDisconnect ?? defaultPolicy(runtime)) : 'detach'
  const wire = wireOf(request, uiWire)
  const options = { ui7: isUi7(request) }
  const filter = await replayFilter(runtime, row.id)
  return streamAnswer(context, { runId: row.id, wire, filter, policy, context: { resumedAt }, options }).response
}

/** Clients can come back to a run only if the store is durable. Otherwise a run stops when its client disconnects. */
function defaultPolicy({ store }: Runtime): DisconnectPolicy {
  return store.durable ? { cancelAfter: 15_000 } : 'cancel'
}

/** The state of a run for a client that connects later. */
async function standing({ store }: Runtime, runId: string): Promise<{ resumedAt: number; answered: boolean }> {
  const found = { resumedAt: 0, answered: false }
  for await (const batch of store.log.read(runId)) {
    for (const { type, seq } of batch) {
      if (type === 'resume') found.resumedAt = seq
      else if (type === 'answer-end' || type === 'run-end') found.answered = true
    }
  }
  return found
}

function isUi7(request: Request): boolean {
  return request.headers.get('x-millrace-ui') === '7'
}

function wireOf(request: Request, otherwise: Wire): Wire {
  const wanted = preferredType(request, ['text/plain', 'text/event-stream'])
  if (wanted === undefined) return otherwise
  return wanted === 'text/plain' ? textWire : uiWire
}

/** All other keys of the body are input for the pipeline. */
function inputOf(body: Record<string, unknown>): Record<string, unknown> {
  const { agentId, messages, id, trigger, messageId, ...input } = body
  void [agentId, messages, id, trigger, messageId]
  return input
}

function withRunId(response: Response, runId: string): Response {
  response.headers.set('x-millrace-run-id', runId)
  return response
}
