/** `POST /api/chat`, `POST /api/beddel/chat`, `GET /api/chat/:id/stream`. */
import { fromErrorValue, MillraceError } from '../part/error.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import { continueOrStart, type Turn } from '../run/continue.ts'
import type { Runtime } from '../run/runtime.ts'
import { turnKey } from '../run/turn-key.ts'
import { fromClientMessages, toolAnswers } from '../wire/ui-message.ts'
import { textWire } from '../wire/text.ts'
import { uiWire } from '../wire/ui.ts'
import type { Wire } from '../wire/wire.ts'
import { preferredType } from './accept.ts'
import { awaitAcceptance } from './acceptance.ts'
import { optionalText, readJson } from './body.ts'
import type { HandlerContext } from './handler.ts'
import { errorResponse } from './http-error.ts'
import { mayStream } from './may-stream.ts'
import { isAnsweredAsItIs, stepResponse } from './step-response.ts'
import { replayFilter, streamAnswer, type StreamedAnswer } from './stream-response.ts'
import { listedAgents } from '../run/listed.ts'

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
  // One request can be given several forms of the same messages: decoded once for the model, once for its answers.
  const messages = fromClientMessages(body['messages'])
  // Without a conversation of its own a message id means nothing: clients count theirs from 1.
  const key = threadId === undefined ? undefined : turnKey(body)
  const turn: Turn = {
    agentId,
    messages,
    answers: toolAnswers(body['messages']),
    input: inputOf(body),
    protocol: wire.name,
    onBusy: 'interrupt',
    history: 'client',
    ...(threadId === undefined ? undefined : { threadId, labels: { chatId: threadId } }),
    ...(key === undefined ? undefined : { turnKey: key }),
  }
  const { run, how, from } = await continueOrStart(runtime, turn)
  // Asked for only where it is wanted: to know the result is to read the log.
  if (context.waitUntil !== undefined) context.waitUntil(run.result)
  const pipeline = runtime.agents.get(agentId)?.pipeline
  const policy = pipeline?.onDisconnect ?? defaultPolicy(runtime)

  // While the status waits, the client is as present as it will be while it reads.
  const release = runtime.attach(run.id, policy)
  let answer: StreamedAnswer | undefined
  let finished = false
  try {
    const joined = how === 'joined'
    const resumedAt = joined ? (await standing(runtime, run.id)).resumedAt : from
    const filter = joined ? await replayFilter(runtime, run.id) : undefined
    const encoder = { ui7: isUi7(request), resumedAt }
    // Made while the model is still being asked.
    answer = streamAnswer(context, { runId: run.id, wire, from, filter, policy, encoder })
    const { reader } = answer
    const streams = pipeline === undefined || mayStream(pipeline, (id) => runtime.agents.get(id)?.pipeline)
    const accepted = await awaitAcceptance(runtime, run.id, { reader, streams, from, signal: request.signal })
    if (accepted.kind === 'left') return new Response(null, { status: 499 })
    const { head } = accepted.kind === 'response' ? accepted : {}
    const isRaw = head !== undefined && isAnsweredAsItIs(head, wire)
    finished = isRaw || accepted.kind === 'value' || accepted.kind === 'error'
    if (isRaw) return await stepResponse(context, { runId: run.id, head, policy, from, signal: request.signal })
    if (accepted.kind === 'value') return withRunId(Response.json(accepted.output ?? null), run.id)
    // That an answer was stopped is no failure where the protocol can say it.
    if (accepted.kind === 'error' && (accepted.error.code !== 'aborted' || wire !== uiWire)) {
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

/** The active answer of a chat, from its start: what `useChat({resume: true})` asks for after a reload. */
export async function getChatStream(context: HandlerContext, request: Request, threadId: string): Promise<Response> {
  const { runtime } = context
  const none = () => new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } })
  const row = (await runtime.store.runs.list({ threadId, limit: 1 }))[0]
  if (row?.status !== 'running') return none()
  const { resumedAt, answered } = await standing(runtime, row.id)
  if (answered) return none()
  // What was started to run on its own (by /api/runs, a program) is not stopped because somebody looked at it.
  const isChat = row.protocol === uiWire.name || row.protocol === textWire.name
  const policy = isChat ? (runtime.agents.get(row.agent)?.pipeline.onDisconnect ?? defaultPolicy(runtime)) : 'detach'
  const wire = wireOf(request, uiWire)
  const encoder = { ui7: isUi7(request), resumedAt }
  const filter = await replayFilter(runtime, row.id)
  return streamAnswer(context, { runId: row.id, wire, filter, policy, encoder }).response
}

/** A client that comes back finds its run in a durable store only: without one, what it left would run for nobody. */
function defaultPolicy({ store }: Runtime): DisconnectPolicy {
  return store.durable ? { cancelAfter: 15_000 } : 'cancel'
}

/** Where a run stands for a client that comes to it later. */
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

/** Every key of the body that is not the route's own is the pipeline's. */
function inputOf(body: Record<string, unknown>): Record<string, unknown> {
  const { agentId, messages, id, trigger, messageId, ...input } = body
  void [agentId, messages, id, trigger, messageId]
  return input
}

function withRunId(response: Response, runId: string): Response {
  response.headers.set('x-millrace-run-id', runId)
  return response
}
