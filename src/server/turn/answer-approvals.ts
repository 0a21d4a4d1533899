/**
 * Answers the approvals that a run waits for, with what a request brings for them. Each is answered once, by whoever is first: this client, the page or
 * another route. The request gets the rest of that run's answer.
 */
import { keptOf } from '../../fold/read-view.ts'
import type { EntryOf } from '../../part/entry.ts'
import type { MillraceError } from '../../part/error.ts'
import type { RunRow, Store } from '../../part/log.ts'
import type { Reply } from '../../part/request-part.ts'
import { conflict, endOfRequest, isSame } from '../../runtime/answer-to.ts'
import type { Turned } from '../../runtime/continue.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { restOf } from './continue-waiting.ts'

export interface GivenApproval {
  requestId: string
  approved: boolean
  reason?: string
  place: string
}

export interface ApprovalTurn {
  agentId: string
  protocol: string
  /** At least one; those of other runs than the last one's are part of the history. */
  approvals: readonly GivenApproval[]
  /** The error for an answer at this place to no request. */
  unknown(place: string): MillraceError
}

export async function answerApprovals(runtime: Runtime, asked: ApprovalTurn): Promise<Turned> {
  const { store, redact } = runtime
  const { protocol, unknown } = asked
  const { place, requestId: newest } = asked.approvals.at(-1)!
  const row = await ownRun(runtime, asked.agentId, newest)
  const stored = row && (await keptOf(store, row))
  const requests = row && (await waitedFor(store, row, newest))
  if (row === undefined || stored === undefined || requests === undefined) throw unknown(place)
  const open = new Map(stored.requests.map((request) => [request.requestId, request]))
  const replies = new Map<string, Reply>()
  for (const { requestId, approved, reason } of asked.approvals) {
    if (!requests.includes(requestId)) continue
    const reply: Reply = redact({ kind: 'approval', approved, ...(reason !== undefined && { reason }) })
    if (open.get(requestId)?.kind === 'approval') {
      replies.set(requestId, reply)
      continue
    }
    const before = await endOfRequest(store, stored, requestId)
    if (before === undefined || !('answer' in before) || !isSame(before.answer, reply)) {
      throw conflict(`Request ${requestId}`)
    }
  }
  if (replies.size > 0) {
    const counted = await runtime.answerAll(row.id, replies, { protocol })
    for (const [requestId, reply] of replies) {
      const winner = counted.get(requestId)
      if (winner !== undefined && !isSame(winner, reply)) throw conflict(`Request ${requestId}`)
    }
  }
  return restOf(runtime, { runId: row.id, requests: [...requests] })
}

/** The run that the id of a request names: `<run>.<epoch>.<n>`. It must be this caller's and agent's. */
async function ownRun(
  { store, threadId: own }: Runtime,
  agentId: string,
  requestId: string,
): Promise<RunRow | undefined> {
  const [, run] = /^(.{1,256})\.\d+\.\d+$/u.exec(requestId) ?? []
  const row = run === undefined ? undefined : await store.runs.get(run)
  return row !== undefined && row.agent === agentId && own(row.threadId) === row.threadId ? row : undefined
}

/** All requests of the stop in which the run waited for this one. */
async function waitedFor({ log }: Store, { id }: RunRow, requestId: string): Promise<readonly string[] | undefined> {
  let found: EntryOf<'suspend'> | undefined
  for await (const batch of log.read(id, { types: ['suspend'] })) {
    for (const entry of batch) if (entry.type === 'suspend' && entry.requests.includes(requestId)) found = entry
  }
  return found?.requests
}
