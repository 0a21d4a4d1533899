/** `/api/runs…`: runs and their logs as an API. */
import { runIdHeader } from '../../delivery/delivery-response.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { hasEnded, runSorts, runStatuses, type RunQuery, type RunStatus } from '../../part/log.ts'
import type { Reply } from '../../part/request-part.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { agentOfTurn, readPipeline } from '../turn/own-pipeline.ts'
import { checkWaits, keepRunning } from '../http/wait-until.ts'
import { checkRunInput } from '../../runtime/check-run-input.ts'
import { continueOrStart } from '../../runtime/continue.ts'
import { checkCursor, foldLog, readKept, readView } from '../../fold/read-view.ts'
import type { RunView } from '../../fold/run-view.ts'
import { unknownAgent } from '../../runtime/runtime-errors.ts'
import { fromClientMessages } from '../../wire/ui/ui-message.ts'
import { optionalText, readJson } from '../http/body.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import { consentIn } from './consent.ts'
import { existingRun, unknownRun } from './existing-run.ts'
import { shownThread, threadNamed, withShownThread } from './existing-thread.ts'
import { bindKey, idempotencyKey } from './idempotency.ts'
import { bad, readQuery, toTime, wholeNumber } from '../http/query.ts'
import { slicedJson } from '../http/sliced-json.ts'

const listParameters = {
  agent: 256,
  thread: 2048,
  status: 200,
  since: 40,
  until: 40,
  model: 256,
  protocol: 40,
  minCost: 20,
  maxCost: 20,
  minMs: 20,
  maxMs: 20,
  sort: 20,
  order: 20,
  count: 1,
  q: 200,
  idPrefix: 256,
  user: 256,
  limit: 20,
  before: 256,
}

/** With `count=1` only how many fit. */
export async function listRuns(context: RequestContext, url: URL): Promise<Response> {
  const { count, ...given } = readQuery(url, listParameters)
  const { runs } = context.runtime.store
  const query = await toRunQuery(context, given)
  if (count === undefined) {
    const rows = await runs.list(query)
    return Response.json({ runs: rows.map((row) => withShownThread(context, row)) })
  }
  if (count !== '1') throw bad('count', '1')
  const { before: _, sort: __, ...conditions } = query
  const found = await runs.list({ ...conditions, limit: mostCounted + 1 })
  return Response.json({ count: Math.min(found.length, mostCounted), isMore: found.length > mostCounted })
}

const mostCounted = 1000

async function toRunQuery(
  context: RequestContext,
  given: Partial<Record<keyof typeof listParameters, string>>,
): Promise<RunQuery> {
  const { thread, status, since, until, q, before, limit, user, sort, order, count: _, ...others } = given
  const { minCost, maxCost, minMs, maxMs, ...rest } = others
  const query: RunQuery = { ...rest, ...omitUndefined({ search: q, owner: user }), ...toPage({ before, limit }) }
  if (thread !== undefined) query.threadId = await threadNamed(context, thread)
  if (status !== undefined) query.status = status.split(',').map(toStatus)
  if (since !== undefined) query.since = toTime(since, 'since')
  if (until !== undefined) query.until = toTime(until, 'until')
  for (const [name, text] of [
    ['minCost', minCost],
    ['maxCost', maxCost],
  ] as const)
    if (text !== undefined) query[name] = toAmount(text, name)
  for (const [name, text] of [
    ['minMs', minMs],
    ['maxMs', maxMs],
  ] as const)
    if (text !== undefined) query[name] = wholeNumber(text, name, 0, Number.MAX_SAFE_INTEGER)
  if (sort !== undefined) query.sort = oneOf(sort, 'sort', runSorts)
  if (order !== undefined) query.order = oneOf(order, 'order', ['asc', 'desc'] as const)
  if (order !== undefined && sort === undefined) throw bad('order', 'beside sort')
  return query
}

function oneOf<T extends string>(text: string, name: string, words: readonly T[]): T {
  const found = words.find((each) => each === text)
  if (found !== undefined) return found
  throw bad(name, `one of ${words.join(', ')}${didYouMean(text, words)}`)
}

/** USD. */
function toAmount(text: string, name: string): number {
  if (/^\d+(?:\.\d+)?$/u.test(text)) return Number(text)
  throw bad(name, 'an amount of USD, such as 0.05')
}

function toStatus(word: string): RunStatus {
  const status = runStatuses.find((each) => each === word)
  if (status !== undefined) return status
  throw bad('status', `one or several (with commas) of ${runStatuses.join(', ')}${didYouMean(word, runStatuses)}`)
}

/** The page of a list of runs that a URL asks for. Throws `bad-input`. */
export function toPage({ before, limit }: { before?: string | undefined; limit?: string | undefined }): RunQuery {
  if (before === '') throw bad('before', 'the id of a run')
  return {
    ...omitUndefined({ before }),
    ...(limit === undefined ? undefined : { limit: wholeNumber(limit, 'limit', 1, 1000) }),
  }
}

/** `at`: the run as it was after this entry. */
export async function showRun(context: RequestContext, id: string, url: URL): Promise<Response> {
  const { store } = context.runtime
  const { at } = readQuery(url, { at: 20 })
  const view = at === undefined ? await readView(store, id) : await viewAt(context, id, at)
  if (view === undefined) throw unknownRun(id)
  const { runId, ...rest } = withShownThread(context, view)
  const waiting = at === undefined && !hasEnded(view.status) ? await context.runtime.waiting(id) : []
  return slicedJson({ id: runId, ...rest, ...(waiting.length > 0 && { waiting }) })
}

async function viewAt(context: HandlerContext, id: string, at: string): Promise<RunView | undefined> {
  const { lastSeq } = await existingRun(context, id)
  const { log } = context.runtime.store
  const seq = wholeNumber(at, 'at', 1, lastSeq)
  await checkCursor(log, id, seq)
  return (await foldLog(log.read(id, { before: seq + 1 })))?.view()
}

/** The header with which the page says that a person sits before it. */
const clientHeader = 'x-millrace-client'

export function protocolOf({ protocol }: HandlerContext, { headers }: Request): string {
  return protocol === 'api' && headers.get(clientHeader) === 'page' ? 'page' : protocol
}

const runKeys: ReadonlySet<string> = new Set(['agentId', 'input', 'threadId', 'previousRunId', 'pipeline'])

export async function startRun(context: RequestContext, request: Request): Promise<Response> {
  const { runtime, maxBodyBytes } = context
  const waitUntil = context.waitUntil(request)
  checkWaits(waitUntil, 'POST /api/runs')
  const body = await readJson(request, maxBodyBytes)
  const agentId = optionalText(body, 'agentId')
  if (agentId === undefined) throw bad('agentId', 'the name of an agent')
  for (const key of Object.keys(body)) {
    // An unknown agent is reported before unknown keys.
    if (runKeys.has(key) || runtime.agents.get(agentId) === undefined) continue
    throw new MillraceError('bad-input', `unknown key "${key}"; put it under "input"${didYouMean(key, runKeys)}`)
  }
  const { input = {} } = body
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw bad('input', 'an object')
  const threadId = optionalText(body, 'threadId')
  const previousRunId = body['previousRunId'] === null ? null : optionalText(body, 'previousRunId')
  const { messages, ...rest } = input as Record<string, unknown>
  const said = messages === undefined ? [] : fromClientMessages(messages)
  const agent = runtime.agents.get(agentId)
  if (agent === undefined) throw unknownAgent(agentId, runtime.agents)
  const asked = { threadId, previousRunId, pipeline: readPipeline(context, request, body, { agent: agent.id }) }
  const { agent: now, pipeline } = await agentOfTurn(context, agent, omitUndefined(asked))
  const key = idempotencyKey(request)
  if (key !== undefined) {
    checkRunInput(now.pipeline, said.length === 0 ? rest : { ...rest, messages: said })
    await bindKey(runtime.store.log, key, body)
  }
  const { run } = await continueOrStart(runtime, {
    agentId,
    messages: said,
    answers: [],
    input: rest,
    protocol: protocolOf(context, request),
    traceparent: request.headers.get('traceparent'),
    onBusy: 'queue',
    history: 'server',
    pipeline,
    ...omitUndefined({ threadId, previousRunId }),
    ...(key === undefined ? undefined : { turnKey: `key:${key}` }),
  })
  keepRunning(waitUntil, run)
  return Response.json(
    { id: run.id, threadId: shownThread(context, run.threadId) },
    { status: 202, headers: { 'x-millrace-run-id': runIdHeader(run.id) } },
  )
}

/** Body: none, or `{reason}`. */
export async function stopRun(
  { runtime, maxBodyBytes }: HandlerContext,
  request: Request,
  id: string,
): Promise<Response> {
  // The body is optional, and never makes a stop fail: libraries send various bodies with an empty POST.
  const { reason } = await readJson(request, maxBodyBytes).catch((): Record<string, unknown> => ({}))
  const isReason = typeof reason === 'string' && reason !== ''
  await runtime.stop(id, isReason ? reason.slice(0, 500) : 'Stopped by request.')
  return Response.json({ id, stopping: true }, { status: 202 })
}

export async function listRequests({ runtime }: HandlerContext, id: string): Promise<Response> {
  const stored = await readKept(runtime.store, id)
  if (stored === undefined) throw unknownRun(id)
  return Response.json({ requests: stored.requests })
}

/**
 * Body: `{output, isError?}` for a tool, `{approved, reason?, input?}` for an approval, `{value}`, `{declined: true}` or
 * `{cancelled: true}` for an input; with
 * `agentId` or `trust` for a run that was recorded elsewhere.
 */
export async function answerRequest(
  context: HandlerContext,
  request: Request,
  id: string,
  requestId: string,
): Promise<Response> {
  const { runtime, maxBodyBytes } = context
  const waitUntil = context.waitUntil(request)
  checkWaits(waitUntil, 'An answer to a run')
  const body = await readJson(request, maxBodyBytes)
  const consent = consentIn(context, request, body)
  // Redacted like the stored reply, so that the same reply compares as equal.
  const answer = runtime.redact(toAnswer(body))
  const {
    duplicate,
    isSame,
    answer: winner,
  } = await runtime.answer(id, requestId, answer, { protocol: protocolOf(context, request) }, consent)
  waitUntil?.(runtime.open(id).then((run) => run?.result))
  if ('closed' in winner) {
    throw new MillraceError('answer-conflict', `Request ${requestId} was closed: ${winner.closed}.`)
  }
  if (!isSame) {
    throw new MillraceError('answer-conflict', `Request ${requestId} already has a different answer.`)
  }
  return Response.json({ requestId, duplicate, answer: winner.answer })
}

function toAnswer(body: Record<string, unknown>): Reply {
  const { approved, reason, isError, input } = body
  if (typeof approved === 'boolean') {
    if (input !== undefined && !approved) throw bad('input', 'absent when the call is not approved')
    const said = typeof reason === 'string' ? { reason } : undefined
    return { kind: 'approval', approved, ...said, ...(input === undefined ? undefined : { input }) }
  }
  if (body['declined'] === true) return { kind: 'input', cancelled: true, declined: true }
  if (body['cancelled'] === true) return { kind: 'input', cancelled: true }
  if ('value' in body) return { kind: 'input', value: body['value'] }
  if (!('output' in body)) throw bad('output', 'present (or approved, for an approval)')
  return { kind: 'tool', output: body['output'], ...(isError === true ? { isError } : undefined) }
}
