/**
 * `POST /v1/messages` and `POST /v1/messages/count_tokens`: Anthropic Messages. A message is the answer of one run; its id is `msg_<run>`. The stream begins
 * before the model has accepted the request, and a failure is its last event: a status that is no success makes clients repeat the request.
 */
import { keepRunning } from '../http/wait-until.ts'
import type { HandlerContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { deliverRun } from '../../delivery/deliver-run.ts'
import { deliveryResponse, withRunId } from '../../delivery/delivery-response.ts'
import { collectAnswer, openDelivery } from '../../delivery/open-delivery.ts'
import { statusOf } from '../../delivery/http-error.ts'
import { readReplayState } from '../../delivery/run-reader.ts'
import { MillraceError, type ErrorValue } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Turned } from '../../runtime/continue.ts'
import { startersPolicy } from '../../runtime/disconnect-policy.ts'
import type { Agent } from '../../runtime/runtime.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { reasoningTokens } from '../../wire/messages/from-messages.ts'
import type { MessagesOptions } from '../../wire/messages/messages-answer.ts'
import { messagesJsonWire } from '../../wire/messages/messages-json.ts'
import { messagesWire } from '../../wire/messages/messages.ts'
import { readJson } from '../http/body.ts'
import { bindKey, idempotencyKey } from '../routes/idempotency.ts'
import { hasActed } from '../openai/acted.ts'
import { withoutRetry } from '../openai/error.ts'
import { findAgent } from '../openai/models.ts'
import { header } from '../openai/parameters.ts'
import { readModel } from '../openai/request.ts'
import { estimateTokens } from '../responses/estimate-tokens.ts'
import { continueHistory } from '../turn/continue-history.ts'
import { runsOfTokens } from '../turn/runs-of-tokens.ts'
import { messagesError, messagesRunError, requestId } from './error.ts'
import { readMessagesRequest, type MessagesRequest } from './request.ts'

/** Conversations with images are long. */
const maxBodyBytes = 32 * 1024 * 1024

export function mountMessages(routes: Routes): void {
  routes.post('/v1/messages', 'runs.start', (context, { raw }) => answered(context, () => postMessages(context, raw)))
  routes.post('/v1/messages/count_tokens', 'agents.list', (context, { raw }) =>
    answered(context, () => countTokens(context, raw)),
  )
}

/** In the form of the protocol, with an id for the request. */
async function answered({ onError }: HandlerContext, respond: () => Promise<Response>): Promise<Response> {
  try {
    const response = await respond()
    if (!response.headers.has('request-id')) response.headers.set('request-id', requestId())
    return response
  } catch (error) {
    const response = messagesError(error as Error)
    if (response.status >= 500) onError(error)
    return response
  }
}

interface Read {
  agent: Agent
  asked: MessagesRequest
  body: Record<string, unknown>
}

async function readRequest(context: HandlerContext, request: Request): Promise<Read> {
  const body = await readJson(request, Math.max(context.maxBodyBytes, maxBodyBytes))
  const agent = findAgent(context.runtime.agents, readModel(body))
  const runOf = await runsOfTokens(context.reasoning, reasoningTokens(body['messages']))
  const declared = Object.keys(agent.pipeline.input?.properties ?? {})
  const asked = readMessagesRequest(body, { declared, runOf })
  return { agent, asked, body }
}

interface Session {
  /** The thread of a session. */
  name: string
  labels: Record<string, string>
}

/** Of Claude Code. Its sub-agents share the session, and so do its titles, which are conversations of their own. */
function sessionOf(request: Request, { isAside }: MessagesRequest): Session | undefined {
  const session = header(request, 'x-claude-code-session-id')
  if (session === undefined) return undefined
  const agent = header(request, 'x-claude-code-agent-id')
  const name = [session, ...(agent === undefined ? [] : [agent]), ...(isAside ? ['title'] : [])].join(':')
  return { name, labels: { session, ...(agent !== undefined && { sessionAgent: agent }) } }
}

/** Starts the run, or finds the one that the request repeats or continues. */
async function startRun(context: HandlerContext, request: Request, { agent, asked, body }: Read): Promise<Turned> {
  const { runtime } = context
  const { model, sent, lead, settings, input } = asked
  const session = sessionOf(request, asked)
  const key = idempotencyKey(request)
  if (key !== undefined) await bindKey(runtime.store.log, key, body)
  return continueHistory(runtime, {
    turn: {
      agentId: agent.id,
      answers: [],
      input,
      settings,
      protocol: messagesWire.name,
      labels: { model, ...session?.labels },
      ...(asked.thinking !== 'shown' && { wireOptions: { thinking: asked.thinking } }),
      traceparent: request.headers.get('traceparent'),
      handOver: true,
      onBusy: 'queue',
      keepsSuspended: true,
      ...omitUndefined({ turnKey: key === undefined ? undefined : `key:${key}` }),
    },
    sent: sent.messages,
    lead,
    orphans: sent.orphans,
    threadId: header(request, 'X-Thread-Id'),
    session: session?.name,
    previous: undefined,
    turnId: session?.name,
    reading: session === undefined ? 'exact' : 'spoken',
    unknownCall: (place) => new BadParameter(place, 'is of no call that this conversation has made.'),
  })
}

async function postMessages(context: HandlerContext, request: Request): Promise<Response> {
  const { runtime, reasoning, messages, openai } = context
  const read = await readRequest(context, request)
  const { asked, agent } = read
  const { run, how, from } = await startRun(context, request, read)
  const { id: runId } = run
  keepRunning(context.waitUntil(request), run)
  const options: Partial<MessagesOptions> = omitUndefined({
    toolOutputMaxChars: openai.streamToolOutputMaxChars,
    serverTools: messages.serverTools,
    reasoning: await reasoning.sealReasoning(runId),
    thinking: asked.thinking,
    model: asked.model,
    from,
  })
  const policy = startersPolicy(agent.pipeline, messagesWire.name, runtime.store.durable)
  const common = omitUndefined({ runId, how, from, options, policy })
  if (asked.stream) {
    const replayState = how === 'joined' ? await readReplayState(runtime.store.log, runId, { whole: true }) : undefined
    const delivery = { ...common, ...omitUndefined({ replayState }), wire: messagesWire }
    return deliveryResponse(messagesWire, runId, await openDelivery(context, delivery))
  }
  const { signal } = request
  const asWhole = { ...common, signal, streams: false, framesValue: true }
  const delivered = await deliverRun(context, { ...asWhole, wire: messagesJsonWire })
  if (delivered.kind === 'error') return failed(context, runId, delivered.error)
  if (delivered.kind === 'response') return withoutRetry(delivered.response)
  if (delivered.kind !== 'stream') return new Response(null, { status: 499 })
  const [result] = (await collectAnswer(delivered.answer, signal))?.flat() ?? []
  if (result === undefined) return new Response(null, { status: 499 })
  if ('message' in result) return withRunId(Response.json(result.message), runId)
  const { type, message } = result.error
  return failed(context, runId, { code: 'run-failed', message }, type)
}

async function failed(
  { runtime }: HandlerContext,
  runId: string,
  { code, message, retryAfter }: ErrorValue,
  type = code === 'rate-limited' ? 'rate_limit_error' : 'run_failed',
): Promise<Response> {
  const mayRetry = !(await hasActed(runtime.store.log, runId))
  const error = new MillraceError(code, message, omitUndefined({ retryAfter }))
  // Another server goes on, or begins again.
  if (statusOf(error) === 503) return withRunId(messagesError(error), runId)
  return withRunId(messagesRunError(error, type, mayRetry), runId)
}

/** Starts no run, and calls no model. */
async function countTokens(context: HandlerContext, request: Request): Promise<Response> {
  const { asked } = await readRequest(context, request)
  return Response.json({ input_tokens: estimateTokens(asked) })
}
