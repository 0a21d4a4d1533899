/** `POST /api/chat`, `POST /api/beddel/chat`, `GET /api/chat/:id/stream`. */
import { MillraceError } from '../part/error.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { continueOrStart, type Turn } from '../run/continue.ts'
import { turnKey } from '../run/turn-key.ts'
import { fromClientMessages, toolAnswers } from '../wire/ui-message.ts'
import { textWire } from '../wire/text.ts'
import { uiWire } from '../wire/ui.ts'
import type { Wire } from '../wire/wire.ts'
import { awaitAcceptance } from './acceptance.ts'
import { optionalText, readJson } from './body.ts'
import type { HandlerContext } from './handler.ts'
import { errorResponse } from './http-error.ts'
import { streamResponse } from './stream-response.ts'

export async function postChat(context: HandlerContext, request: Request, defaultWire: Wire): Promise<Response> {
  const { runtime, maxBodyBytes } = context
  const body = await readJson(request, maxBodyBytes)
  const agentId = optionalText(body, 'agentId')
  if (agentId === undefined) {
    const known = runtime.agents.list().map(({ id }) => id)
    throw new MillraceError('bad-input', `agentId is missing. Known agents: ${known.join(', ') || 'none'}.`)
  }
  const wire = wireOf(request, defaultWire)
  const threadId = optionalText(body, 'id')
  // One request can be given several forms of the same messages: decoded once for the model, once for its answers.
  const messages = fromClientMessages(body['messages'])
  const key = turnKey(body)
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
  const pipeline = runtime.agents.get(agentId)?.pipeline
  const policy = pipeline?.onDisconnect ?? { cancelAfter: 15_000 }

  // While the status waits, the client is as present as it will be while it reads.
  const release = runtime.attach(run.id, policy)
  if (how === 'started') {
    const streams = pipeline === undefined || mayStream(pipeline)
    const accepted = await awaitAcceptance(runtime.store, run.id, { streams, signal: request.signal })
    if (accepted.kind === 'error') {
      release({ finished: true })
      return withRunId(errorResponse(accepted.error), run.id)
    }
    if (accepted.kind === 'value') {
      release({ finished: true })
      return withRunId(Response.json(accepted.output ?? null), run.id)
    }
  }
  const ui7 = request.headers.get('x-millrace-ui') === '7'
  const response = await streamResponse({
    runtime,
    runId: run.id,
    wire,
    from,
    policy,
    encoder: { ui7, resumedAt: from },
  })
  release()
  return response
}

/** The active answer of a chat, from its start: what `useChat({resume: true})` asks for after a reload. */
export async function getChatStream(context: HandlerContext, request: Request, threadId: string): Promise<Response> {
  const { runtime } = context
  const { log, runs } = runtime.store
  const none = () => new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } })
  const row = (await runs.list({ threadId, limit: 1 }))[0]
  if (row?.status !== 'running') return none()
  let resumedAt = 0
  let answered = false
  for await (const batch of log.read(row.id)) {
    for (const { type, seq } of batch) {
      if (type === 'resume') resumedAt = seq
      if (type === 'answer-end' || type === 'run-end') answered = true
    }
  }
  if (answered) return none()
  const policy = runtime.agents.get(row.agent)?.pipeline.onDisconnect ?? { cancelAfter: 15_000 }
  const ui7 = request.headers.get('x-millrace-ui') === '7'
  const wire = wireOf(request, uiWire)
  return streamResponse({ runtime, runId: row.id, wire, replay: true, policy, encoder: { ui7, resumedAt } })
}

function wireOf(request: Request, otherwise: Wire): Wire {
  const accept = request.headers.get('accept') ?? ''
  if (accept.includes('text/plain')) return textWire
  return accept.includes('text/event-stream') ? uiWire : otherwise
}

/** Every key of the body that is not the route's own is the pipeline's. */
function inputOf(body: Record<string, unknown>): Record<string, unknown> {
  const { agentId, messages, id, trigger, messageId, ...input } = body
  void [agentId, messages, id, trigger, messageId]
  return input
}

function mayStream({ workflow }: Pipeline): boolean {
  return workflow.some((step) => step.type === 'llm' && step.config.stream)
}

function withRunId(response: Response, runId: string): Response {
  response.headers.set('x-millrace-run-id', runId)
  return response
}
