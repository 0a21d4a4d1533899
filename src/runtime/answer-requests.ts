/** Replies of clients to the open requests of runs: at most one counts for each request. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import { hasEnded, type Store } from '../part/log.ts'
import { recordable } from '../part/json.ts'
import { hasRole, type Role } from '../part/principal.ts'
import type { Reply } from '../part/request-part.ts'
import type { PostedAnswer } from '../engine/inbox.ts'
import { readStored } from '../engine/stored-pipeline.ts'
import { readKept } from '../fold/read-view.ts'
import { endOfRequest, checkAnswer, checkEdit, isSame, plainAnswer } from './answer-to.ts'
import type { McpHeaders } from '../tools/mcp/own-headers.ts'
import { checkForkAgent } from './fork-run.ts'
import { acceptForeign, readRecorded, type Accepted } from './foreign-run.ts'
import type { Consent } from './runtime.ts'
import type { Wake } from './runtime.ts'
import type { AgentSource, Answered } from './runtime.ts'
import { roleNeeded, unknownRequest, unknownRun } from './runtime-errors.ts'
import type { Supervisor } from './supervisor.ts'

export interface AnswerContext {
  store: Store
  agents: AgentSource
  /** Also removes the secrets of this run. */
  redactOf(run: string): <T>(value: T) => T
  keepHeaders: Supervisor['keepHeaders']
  reconcile: Supervisor['reconcile']
}

/** Posts a reply and resumes the run if it waits for it. */
export async function answerRequest(
  context: AnswerContext,
  run: string,
  requestId: string,
  given: Reply,
  wake?: Wake,
  consent?: Consent,
): Promise<Answered> {
  const { store, reconcile } = context
  const stored = await readKept(store, run)
  if (stored === undefined) throw unknownRun(run)
  const answer = await plainAnswer(store.log, run, given, (each) => each.requestId === requestId)
  const isGiven = (winner: PostedAnswer) => 'answer' in winner && isSame(winner.answer, answer)
  const request = stored.requests.find((each) => each.requestId === requestId)
  if (request === undefined) {
    // Not open: it was answered before or never existed.
    const before = await endOfRequest(store, stored, requestId)
    if (before === undefined) throw unknownRequest(run, requestId)
    return { duplicate: true, answer: before, isSame: isGiven(before) }
  }
  if (!hasRole(wake?.roles, request.roles)) throw roleNeeded(request)
  checkAnswer(request, answer)
  await checkEdit(store.log, run, request, answer)
  const accepted = await accept(context, run, wake, consent)
  const { first, winner } = await post(context, run, requestId, answer, wake, accepted)
  await reconcile(run, 'hint')
  const row = await store.runs.get(run)
  if (first && row !== undefined && hasEnded(row.status)) {
    // If the run ended in the meantime, the request was closed and not answered.
    const now = await readKept(store, run)
    const before = now && (await endOfRequest(store, now, requestId))
    if (before !== undefined && 'closed' in before) return { duplicate: true, answer: before, isSame: false }
  }
  return { duplicate: !first, answer: winner, isSame: first || isGiven(winner) }
}

/** Posts several replies and resumes the run once. Resolves with the replies that count, by request id. */
export async function answerAll(
  context: AnswerContext,
  run: string,
  answers: ReadonlyMap<string, Reply>,
  given?: Wake,
  headers?: McpHeaders,
): Promise<Map<string, Reply>> {
  if (given?.roles !== undefined) await checkScoped(context, run, answers, given.roles)
  const accepted = await accept(context, run, given)
  if (headers !== undefined) context.keepHeaders(run, headers)
  const wake = headers === undefined ? given : { ...given, ownHeaders: Object.keys(headers) }
  const counted = new Map<string, Reply>()
  for (const [requestId, answer] of answers) {
    const { winner } = await post(context, run, requestId, answer, wake, accepted)
    if ('answer' in winner) counted.set(requestId, winner.answer)
  }
  await context.reconcile(run, 'hint')
  return counted
}

/** Before any reply is posted: all of them count, or none. A scoped store may hide the prompt, which has the schema of edited arguments. */
async function checkScoped(
  { store }: AnswerContext,
  run: string,
  answers: ReadonlyMap<string, Reply>,
  roles: readonly Role[],
): Promise<void> {
  for (const request of (await readKept(store, run))?.requests ?? []) {
    const answer = answers.get(request.requestId)
    if (answer === undefined) continue
    if (!hasRole(roles, request.roles)) throw roleNeeded(request)
    await checkEdit(store.log, run, request, answer)
  }
}

/** Every reply to a run that was recorded elsewhere passes here, whatever its protocol. Throws `foreign-run`. */
async function accept(
  { store, agents: all }: AnswerContext,
  run: string,
  { agents = all }: Wake = {},
  consent: Consent = {},
): Promise<Accepted | undefined> {
  if ((await store.runs.get(run))?.foreign === undefined) {
    if (consent.agent === undefined) return undefined
    throw new MillraceError('bad-input', `Run ${run} was recorded here, and goes on as it is. Leave agentId out.`, {
      status: 400,
    })
  }
  const recorded = await readRecorded(store.log, run)
  const { state, before } = recorded
  if (!state.isForeign) return undefined
  const accepted = acceptForeign(agents, recorded, consent)
  const named = consent.agent === undefined ? undefined : agents.get(consent.agent)
  const point = { at: state.lastSeq, state, before }
  if (named !== undefined) checkForkAgent(named, readStored(state.start?.pipeline), point)
  return accepted
}

async function post(
  { store, redactOf }: AnswerContext,
  run: string,
  requestId: string,
  answer: Reply,
  given?: Wake,
  accepted?: Accepted,
) {
  const { roles: _, agents: __, ...wake } = given ?? {}
  // Inbox messages are stored like the log, and returned to clients that reply later.
  const reply = redactOf(run)(recordable({ answer, protocol: 'api', ...wake } satisfies PostedAnswer))
  // Not redacted: it must be the same as in the log.
  const { first, message } = await store.log.post(run, `answer:${requestId}`, {
    ...reply,
    ...omitUndefined({ accepted }),
  })
  return { first, winner: message as PostedAnswer }
}
