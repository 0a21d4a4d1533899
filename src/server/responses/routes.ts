/**
 * `POST /v1/responses` and its routes: OpenAI Responses, as OpenResponses describes it. A response is the answer of one run; its id is `resp_<run>`.
 * The stream begins before the model has accepted the request, and a failure is its last event: a status that is no success makes clients repeat
 * the request.
 */
import { keepRunning } from '../http/wait-until.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { deliverRun } from '../../delivery/deliver-run.ts'
import { deliveryResponse, withRunId } from '../../delivery/delivery-response.ts'
import { collectAnswer, openDelivery } from '../../delivery/open-delivery.ts'
import { readReplayState } from '../../delivery/run-reader.ts'
import { checkCursor } from '../../fold/read-view.ts'
import { fromErrorValue, MillraceError, type ErrorValue } from '../../part/error.ts'
import { hasEnded, type RunRow } from '../../part/log.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import { deleteRun } from '../../record/delete.ts'
import { createRest } from '../../record/housekeeping.ts'
import { awaitEntry } from '../../runtime/await-entry.ts'
import type { Turned } from '../../runtime/continue.ts'
import { startersPolicy } from '../../runtime/disconnect-policy.ts'
import type { Agent } from '../../runtime/runtime.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { encryptedContents } from '../../wire/responses/from-responses-input.ts'
import { perEntry } from '../../wire/responses/response-items.ts'
import type { ResponsesOptions } from '../../wire/responses/responses-answer.ts'
import type { EchoedRequest } from '../../wire/responses/response-object.ts'
import { responsesJsonWire } from '../../wire/responses/responses-json.ts'
import { responsesWire } from '../../wire/responses/responses.ts'
import { readJson } from '../http/body.ts'
import { readQuery, wholeNumber } from '../http/query.ts'
import { bindKey, idempotencyKey } from '../routes/idempotency.ts'
import { checkShown } from '../routes/chat-request.ts'
import { hasActed } from '../openai/acted.ts'
import { header } from '../openai/parameters.ts'
import { openAiRunError, withoutRetry } from '../openai/error.ts'
import { findAgent } from '../openai/models.ts'
import { readModel } from '../openai/request.ts'
import { answerApprovals } from '../turn/answer-approvals.ts'
import { continueHistory, namedRun } from '../turn/continue-history.ts'
import { runsOfTokens } from '../turn/runs-of-tokens.ts'
import { estimateTokens } from './estimate-tokens.ts'
import { responsesError, UnknownPrevious, unknownResponse } from './error.ts'
import { pageOf, readInputItems } from './input-items.ts'
import { asksForTokens, readResponsesRequest, type ResponsesRequest } from './request.ts'
import { readResponse, runOfResponse, storedResponse } from './stored-response.ts'

/** Conversations with images are long. */
const maxBodyBytes = 32 * 1024 * 1024
/** ms in which a run that was stopped ends. */
const patience = 1000

export function mountResponses(routes: Routes): void {
  routes.post('/v1/responses', 'runs.start', (context, { raw }) => answered(context, () => postResponse(context, raw)))
  routes.post('/v1/responses/input_tokens', 'agents.list', (context, { raw }) =>
    answered(context, () => countInput(context, raw)),
  )
  routes.post('/v1/responses/compact', 'runs.start', (context) =>
    answered(context, async () => {
      const cure = 'Send the conversation, or previous_response_id: the agent’s own compaction shortens it.'
      throw new MillraceError('not-found', `POST /v1/responses/compact is not supported. ${cure}`, { status: 404 })
    }),
  )
  routes.get('/v1/responses/:id', 'runs.read', (context, request) =>
    answered(context, () => getResponse(context, request.param('id'), new URL(request.url))),
  )
  routes.get('/v1/responses/:id/input_items', 'runs.read', (context, request) =>
    answered(context, () => listInput(context, request.param('id'), new URL(request.url))),
  )
  routes.post('/v1/responses/:id/cancel', 'runs.stop', (context, request) =>
    answered(context, () => cancelResponse(context, request.param('id'))),
  )
  routes.delete('/v1/responses/:id', 'runs.delete', (context, request) =>
    answered(context, () => deleteResponse(context, request.param('id'))),
  )
}

async function answered({ onError }: HandlerContext, respond: () => Promise<Response>): Promise<Response> {
  try {
    return await respond()
  } catch (error) {
    const response = responsesError(error as Error)
    if (response.status >= 500) onError(error)
    return response
  }
}

interface Read {
  agent: Agent
  asked: ResponsesRequest
  body: Record<string, unknown>
}

async function readRequest(context: HandlerContext, request: Request): Promise<Read> {
  const body = await readJson(request, Math.max(context.maxBodyBytes, maxBodyBytes))
  const agent = findAgent(context.runtime.agents, readModel(body))
  const runOf = await runsOfTokens(context.reasoning, encryptedContents(body['input']))
  const asked = readResponsesRequest(body, {
    declared: Object.keys(agent.pipeline.input?.properties ?? {}),
    runOf,
    isAgent: (id) => context.runtime.agents.get(id) !== undefined,
  })
  return { agent, asked, body }
}

/** Starts the run, or finds the one that the request repeats or continues. */
async function startRun(context: HandlerContext, request: Request, { agent, asked, body }: Read): Promise<Turned> {
  const { runtime } = context
  const { model, sent, lead, settings, input, echo, previousResponseId } = asked
  const previous =
    previousResponseId === undefined ? undefined : await previousRun(context, agent.id, previousResponseId)
  if (sent.approvals.length > 0) {
    const answered = await answerApprovals(runtime, {
      agentId: agent.id,
      protocol: responsesWire.name,
      approvals: sent.approvals,
      unknown: (place) => new BadParameter(place, 'names no request for approval of this agent.'),
    })
    // With outputs of the client's own calls the next run begins, once this one has handed them over.
    if (sent.messages.at(-1)?.message.role !== 'tool') return answered
    await answered.run.result
    if ((await runtime.store.runs.get(answered.run.id))?.status !== 'completed') return answered
  }
  const key = idempotencyKey(request)
  if (key !== undefined) await bindKey(runtime.store.log, key, body)
  return continueHistory(runtime, {
    turn: {
      agentId: agent.id,
      answers: [],
      input,
      settings,
      protocol: responsesWire.name,
      labels: { model },
      wireOptions: { request: echo, background: asked.background },
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
    // Of Codex.
    session: header(request, 'thread-id'),
    previous,
    turnId: asked.turnId,
    reading: 'exact',
    unknownCall: (place) => new BadParameter(place, 'is of no call that this conversation has made.'),
  })
}

async function previousRun(context: HandlerContext, agentId: string, id: string): Promise<RunRow> {
  const run = runOfResponse(id)
  const row = run === undefined ? undefined : await namedRun(context.runtime, agentId, run)
  if (row === undefined) throw new UnknownPrevious(id)
  const { echo } = await storedResponse(context, id)
  if (echo.store === false) throw new UnknownPrevious(id)
  return row
}

/** Options of every reader of a run. */
async function shownOptions(
  { openai, responses, reasoning }: HandlerContext,
  run: string,
  { encrypted }: EchoedRequest,
): Promise<Partial<ResponsesOptions>> {
  return omitUndefined({
    toolOutputMaxChars: openai.streamToolOutputMaxChars,
    serverTools: responses.serverTools,
    reasoning: encrypted === true ? await reasoning.sealReasoning(run) : undefined,
  })
}

async function postResponse(context: HandlerContext, request: Request): Promise<Response> {
  const { runtime } = context
  const read = await readRequest(context, request)
  const { asked, agent } = read
  const { run, how, from } = await startRun(context, request, read)
  const { id: runId } = run
  keepRunning(context.waitUntil(request), run)
  const options = { ...(await shownOptions(context, runId, asked.echo)), from }
  const { signal } = request
  if (asked.stream) {
    const policy = policyOf(context, agent.id, asked.background)
    const replayState = how === 'joined' ? await readReplayState(runtime.store.log, runId, { whole: true }) : undefined
    const common = { runId, how, from, options, policy, ...omitUndefined({ replayState }) }
    return deliveryResponse(responsesWire, runId, await openDelivery(context, { ...common, wire: responsesWire }))
  }
  if (asked.background) {
    const row = (await runtime.store.runs.get(runId))!
    return withRunId(Response.json(await readResponse(runtime, row, options)), runId)
  }
  const policy = policyOf(context, agent.id, false)
  const common = { runId, how, from, options, policy, signal, framesValue: true }
  const delivered = await deliverRun(context, { ...common, wire: responsesJsonWire, streams: false })
  if (delivered.kind === 'error') return failed(context, delivered.error, runId)
  if (delivered.kind === 'response') return withoutRetry(delivered.response)
  if (delivered.kind !== 'stream') return new Response(null, { status: 499 })
  const [response] = (await collectAnswer(delivered.answer, signal))?.flat() ?? []
  if (response === undefined) return new Response(null, { status: 499 })
  if (response.status !== 'failed') return withRunId(Response.json(response), runId)
  return failed(context, await errorOf(context, runId, response.error?.message ?? 'The run failed.'), runId)
}

/** Nobody waits for a response in the background. */
function policyOf({ runtime }: HandlerContext, agentId: string, background: boolean): DisconnectPolicy {
  if (background) return 'detach'
  return startersPolicy(runtime.agents.get(agentId)?.pipeline, responsesWire.name, runtime.store.durable)
}

async function errorOf({ runtime }: HandlerContext, run: string, message: string): Promise<ErrorValue> {
  for await (const batch of runtime.store.log.read(run, { types: ['run-end'], limit: 1 })) {
    for (const entry of batch) if (entry.type === 'run-end' && entry.error !== undefined) return entry.error
  }
  return { code: 'model-failed', message }
}

async function failed({ runtime }: HandlerContext, error: ErrorValue, runId: string): Promise<Response> {
  return withRunId(openAiRunError(fromErrorValue(error), await hasActed(runtime.store.log, runId)), runId)
}

/** For readers that are not the caller who has sent the request. */
async function readersOptions(
  context: RequestContext,
  row: RunRow,
  echo: EchoedRequest,
): Promise<Partial<ResponsesOptions>> {
  const { principal } = context
  const isSender = (row.owner ?? '') === principal.id && (row.tenant ?? '') === (principal.tenant ?? '')
  return { ...(await shownOptions(context, row.id, echo)), ...(!isSender && { hidesInstructions: true }) }
}

const readParameters = { stream: 5, starting_after: 20, include: 400, include_obfuscation: 5 }

/** As JSON, or its events after a number and those to come. */
async function getResponse(context: RequestContext, id: string, url: URL): Promise<Response> {
  checkShown(context)
  const { row, echo } = await storedResponse(context, id)
  const query = readQuery(flatNames(url), readParameters)
  const encrypted = asksForTokens(includedIn(url)) ?? echo.encrypted
  const options = await readersOptions(context, row, omitUndefined({ encrypted }))
  if (query.stream !== 'true') {
    if (query.stream !== undefined && query.stream !== 'false')
      throw new BadParameter('stream', 'must be true or false.')
    return withRunId(Response.json(await readResponse(context.runtime, row, options)), row.id)
  }
  const { log } = context.runtime.store
  const after =
    query.starting_after === undefined
      ? undefined
      : wholeNumber(query.starting_after, 'starting_after', 0, Number.MAX_SAFE_INTEGER)
  if (after !== undefined) {
    const seq = Math.floor(after / perEntry)
    if (seq > row.lastSeq)
      throw new BadParameter(
        'starting_after',
        `must be the number of an event of this response, which ends before ${after}.`,
      )
    // A number inside of merged deltas belongs to no event.
    if (hasEnded(row.status)) await checkCursor(log, row.id, seq)
  }
  const replayState = await readReplayState(log, row.id, { whole: true })
  // Who has read a part may have seen an attempt that was lost since.
  if (after !== undefined) replayState.filter = (entries) => entries
  const answer = await openDelivery(context, {
    runId: row.id,
    wire: responsesWire,
    options: { ...options, ...omitUndefined({ after }) },
    replayState,
    // The client of a run that is streamed to it has come back.
    ...(row.protocol === responsesWire.name &&
      echo.background !== true && { policy: policyOf(context, row.agent, false) }),
  })
  return deliveryResponse(responsesWire, row.id, answer)
}

const includes = /^include(?:\[\d*\])?$/u

function includedIn(url: URL): string[] {
  return [...url.searchParams].flatMap(([name, value]) => (includes.test(name) ? [value] : []))
}

/** Some clients write lists as `include[]`. */
function flatNames(url: URL): URL {
  const flat = new URL(url)
  for (const name of new Set(url.searchParams.keys())) {
    if (name !== 'include' && includes.test(name)) flat.searchParams.delete(name)
  }
  return flat
}

async function listInput(context: RequestContext, id: string, url: URL): Promise<Response> {
  checkShown(context)
  const { row } = await storedResponse(context, id)
  const {
    limit = '20',
    after,
    order = 'desc',
  } = readQuery(flatNames(url), { limit: 20, after: 600, order: 4, include: 400 })
  if (order !== 'asc' && order !== 'desc') throw new BadParameter('order', 'must be asc or desc.')
  const items = await readInputItems(context.runtime.store, row.id)
  const page = pageOf(items, { limit: wholeNumber(limit, 'limit', 1, 100), after, order })
  if (page === undefined) throw new BadParameter('after', 'must be the id of an item of this response.')
  return Response.json(page)
}

async function cancelResponse(context: RequestContext, id: string): Promise<Response> {
  checkShown(context)
  const { row, echo } = await storedResponse(context, id)
  const { runtime } = context
  if (!hasEnded(row.status)) {
    await runtime.stop(row.id, 'The client has cancelled the response.')
    await awaitEntry(runtime.store.log, row.id, ({ type }) => type === 'run-end', { after: row.lastSeq, ms: patience })
  }
  const now = (await runtime.store.runs.get(row.id)) ?? row
  return withRunId(Response.json(await readResponse(runtime, now, await readersOptions(context, now, echo))), row.id)
}

async function deleteResponse(context: RequestContext, id: string): Promise<Response> {
  checkShown(context)
  const run = runOfResponse(id)
  if (run === undefined) throw unknownResponse(id)
  await deleteRun(context.runtime.store, run, { rest: createRest(0.5) })
  return Response.json({ id, object: 'response', deleted: true })
}

/** Starts no run, and calls no model. */
async function countInput(context: HandlerContext, request: Request): Promise<Response> {
  const { asked } = await readRequest(context, request)
  return Response.json({ object: 'response.input_tokens', input_tokens: estimateTokens(asked) })
}
