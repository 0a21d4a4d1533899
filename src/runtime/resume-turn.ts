/** A request that answers what the suspended run of its thread has asked: the answers are posted and the run continues. */
import { compact } from '../part/compact.ts'
import { MillraceError } from '../part/error.ts'
import type { KeptRun } from '../fold/kept-run.ts'
import { keptOf, readInput } from '../fold/read-view.ts'
import { hasEnded, type RunRow, type Store } from '../part/log.ts'
import type { Answer, RequestPart } from '../part/request-part.ts'
import { answerTo, endOfRequest } from './answer-to.ts'
import { checkAnswer } from './check-answer.ts'
import { checkEdit } from './check-edit.ts'
import { checkRunInput } from './check-run-input.ts'
import { claimFor } from './claim-turn.ts'
import type { Turn, Turned } from './continue.ts'
import type { Runtime } from './runtime.ts'

/**
 * An answer in a request: to the call that a client was asked to run or to approve, or to the request with this id. Some protocols
 * say the same for every kind of request, so the answer may be a function of the kind.
 */
export type TurnAnswer =
  | { toolCallId: string; answer: Answer }
  | { requestId: string; answer: Answer | ((kind: RequestPart['kind']) => Answer) }

/** The newest run of a thread, with what is kept of it, if it has not ended. */
export async function activeRun(store: Store, threadId: string): Promise<{ row: RunRow; kept: KeptRun } | undefined> {
  const row = (await store.runs.list({ threadId, limit: 1 }))[0]
  if (row === undefined || hasEnded(row.status)) return undefined
  const kept = await keptOf(store, row)
  return kept && { row, kept }
}

/** Only requests of this thread can be answered. With the id alone, one client could answer for another. */
export async function resumed(runtime: Runtime, turn: Turn): Promise<Turned | undefined> {
  const { agents, store, answerAll, open, redact } = runtime
  const { threadId, protocol, labels, input, answers, turnKey } = turn
  if (threadId === undefined || answers.length === 0 || turn.handOver === true) return undefined
  const { row, kept } = (await activeRun(store, threadId)) ?? {}
  if (row === undefined || kept === undefined) return undefined
  const run = await open(row.id)
  if (run === undefined) return undefined
  const byId = new Map(kept.requests.map((request) => [request.requestId, request]))
  const byCall = new Map(
    kept.requests.flatMap((request) => (request.kind === 'input' ? [] : [[request.toolCallId, request] as const])),
  )
  const matched = new Map<string, Answer>()
  let again = false
  let contrary: string | undefined
  for (const each of answers) {
    const request = 'requestId' in each ? byId.get(each.requestId) : byCall.get(each.toolCallId)
    // Redacted like the stored ones, so that a repeated answer compares equal.
    const answer = request && redact(answerOf(each, request.kind))
    // A client tool that needs approval is asked for twice: while its result is wanted, clients repeat the approval.
    const isRepeated = request?.kind === 'tool' && answer?.kind === 'approval'
    const before = request === undefined || isRepeated ? await answerBefore(store, kept, each, answer) : undefined
    if (request !== undefined && answer !== undefined && before === undefined) {
      if ('requestId' in each || request.kind === 'approval') checkAnswer(request, answer)
      await checkEdit(store.log, row.id, request, answer)
      matched.set(request.requestId, answer)
      continue
    }
    if (before === undefined) continue
    if (isSame(before, redact(answerOf(each, before.kind)))) again = true
    else contrary = placeOf(each)
  }
  if (matched.size > 0) {
    const pipeline = agents.get(row.agent)?.pipeline
    // Input that comes with an answer is merged into the run's input, so the result is checked before the run continues.
    if (pipeline !== undefined) {
      const before = { ...(await readInput(store.log, row.id)), ...kept.resumedInput }
      checkRunInput(pipeline, { ...before, ...input })
    }
    const counted = await answerAll(row.id, matched, { protocol, input, ...compact({ labels }) }, turn.mcpHeaders)
    // If two clients answer at the same time, the first answer counts and the other client gets a 409.
    for (const { requestId, toolCallId } of kept.requests) {
      const given = matched.get(requestId)
      const winner = counted.get(requestId)
      if (given !== undefined && winner !== undefined && !isSame(given, winner)) {
        throw conflict(toolCallId === undefined ? `Request ${requestId}` : `Tool call ${toolCallId}`)
      }
    }
    // So that the same request joins the run even if it has ended.
    if (turnKey !== undefined) await claimFor(store.log, threadId, `${row.agent}:${turnKey}`, row.id)
    // A run that was not suspended yet continues in its own stream; this response starts at its current position.
    return { run, how: kept.status === 'suspended' ? 'resumed' : 'joined', from: kept.lastSeq + 1 }
  }
  if (contrary !== undefined) throw conflict(contrary)
  // A repeated answer, from a client that retries or from another tab, must not interrupt the run that it resumed.
  return again ? { run, how: 'joined', from: kept.resumedAt } : undefined
}

function answerOf({ answer }: TurnAnswer, kind: RequestPart['kind']): Answer {
  return typeof answer === 'function' ? answer(kind) : answer
}

async function answerBefore(
  store: Store,
  kept: KeptRun,
  each: TurnAnswer,
  answer?: Answer,
): Promise<Answer | undefined> {
  if (!('requestId' in each)) return answerTo(store, kept, each.toolCallId, (answer ?? each.answer).kind)
  const end = await endOfRequest(store, kept, each.requestId)
  return end !== undefined && 'answer' in end ? end.answer : undefined
}

function isSame(a: Answer, b: Answer): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function placeOf(each: TurnAnswer): string {
  return 'requestId' in each ? `Request ${each.requestId}` : `Tool call ${each.toolCallId}`
}

function conflict(what: string): MillraceError {
  return new MillraceError('answer-conflict', `${what} already has a different answer.`, { status: 409 })
}
