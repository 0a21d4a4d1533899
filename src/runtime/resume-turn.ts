/** A request that answers what the suspended run of its thread has asked: the answers are posted and the run continues. */
import { compact } from '../part/compact.ts'
import type { KeptRun } from '../fold/kept-run.ts'
import { readInput } from '../fold/read-view.ts'
import { hasEnded, type RunRow, type Store } from '../part/log.ts'
import type { Answer } from '../part/request-part.ts'
import { checkAnswer } from './check-answer.ts'
import { checkEdit } from './check-edit.ts'
import { checkRunInput } from './check-run-input.ts'
import { claimFor } from './claim-turn.ts'
import type { Turn, Turned } from './continue.ts'
import { newestRun } from './late-answer.ts'
import type { Runtime } from './runtime.ts'
import { answerBefore, answerOf, conflict, isSame, placeOf } from './turn-answer.ts'

/** The newest run of a thread, with what is kept of it, if it has not ended. */
export async function activeRun(store: Store, threadId: string): Promise<{ row: RunRow; kept: KeptRun } | undefined> {
  const newest = await newestRun(store, threadId)
  return newest === undefined || hasEnded(newest.row.status) ? undefined : newest
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
