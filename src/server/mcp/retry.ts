/**
 * A modern call without a task whose run asks something: its result is `input_required`, and the client sends the call again with the answers and a
 * state. The state says which run goes on, so the same call again never starts another.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
 */
import type { KeptRun } from '../../fold/kept-run.ts'
import { keptOf } from '../../fold/read-view.ts'
import { hasEnded, type RunRow } from '../../part/log.ts'
import { ownValue } from '../../part/own-value.ts'
import type { Reply } from '../../part/request-part.ts'
import { protocol, toResult, type Asked } from './asked.ts'
import { namedKeys } from './elicitation.ts'
import { invalidParams, type Fields } from './json-rpc.ts'
import { questionsOf, readAnswers, toInputRequests, type Question } from './questions.ts'
import { hashCall } from './sealed-token.ts'
import type { Notes } from './notes.ts'

/** What the sealed state holds. */
interface CallState {
  run: string
  /** The tool and its arguments. */
  call: string
  /** The requests that were asked: how often content for each did not fit, by the key. */
  keys: Record<string, { request: string; misfits: number }>
  /** Requests that are not asked again. */
  left: string[]
}

export interface Retry {
  run: RunRow
  notes: Notes
  /** Its newest entry when it was read: the client has what came before. */
  from: number
  /** It waits, and nothing was replied: this is asked again. Absent: it goes on, or waits for others. */
  again?: Fields
}

const noNotes: Notes = { left: new Set(), misfits: new Map() }

/** What a run that is suspended asks this client. Undefined: nothing that it could answer. */
export async function inputRequired(asked: Asked, kept: KeptRun, notes: Notes = noNotes): Promise<Fields | undefined> {
  const { context, mcp, client, params } = asked
  const questions = await callQuestions(asked, kept, notes)
  if (questions.length === 0) return undefined
  const state: CallState = {
    run: kept.runId,
    call: await callOf(params),
    keys: Object.fromEntries(
      questions.map(({ key, request: { requestId }, misfits }) => [key, { request: requestId, misfits }]),
    ),
    left: [...notes.left],
  }
  const until = Math.max(...questions.map(({ request }) => request.deadline))
  const requestState = await mcp.tokens.seal('state', { ...state }, context.principal, until)
  return toResult(client, { inputRequests: toInputRequests(questions), requestState }, 'input_required')
}

async function callQuestions(asked: Asked, kept: KeptRun, notes: Notes): Promise<Question[]> {
  const questions = await questionsOf(asked, kept, notes)
  const named = namedKeys(
    questions.map(({ request }) => request),
    kept.runId,
  )
  const names = new Map([...named].map(([key, { requestId }]) => [requestId, key]))
  // Content that did not fit is asked for under a key that is new.
  return questions.map((each) =>
    each.misfits > 0 ? each : { ...each, key: names.get(each.request.requestId) ?? each.key },
  )
}

function callOf(params: Fields): Promise<string> {
  return hashCall(String(ownValue(params, 'name')), ownValue(params, 'arguments') ?? {})
}

/** Undefined: the call was not sent before. Throws -32602 for a state that was changed, is another call's, or is of a run that is gone. */
export async function readRetry(asked: Asked): Promise<Retry | undefined> {
  const { context, mcp, params } = asked
  const sealed = ownValue(params, 'requestState')
  if (sealed === undefined) return undefined
  const { runtime } = context
  const state = (await mcp.tokens.open('state', sealed, context.principal)) as CallState | undefined
  const row = state && (await runtime.store.runs.get(state.run))
  if (row === undefined || state?.call !== (await callOf(params)))
    throw invalidParams('params.requestState does not belong to this call.')
  const kept = hasEnded(row.status) ? undefined : await keptOf(runtime.store, row)
  const left = new Set(state.left)
  const misfits = new Map(Object.values(state.keys).map((each) => [each.request, each.misfits]))
  const notes: Notes = { left, misfits }
  const retry: Retry = { run: row, notes, from: row.lastSeq }
  if (kept === undefined) return retry
  const asking = (await questionsOf(asked, kept, notes)).flatMap((question): Question[] => {
    const key = keyOf(state, question.request.requestId)
    return key === undefined ? [] : [{ ...question, key }]
  })
  const answers = readAnswers(asking, ownValue(params, 'inputResponses'))
  const replies = new Map(answers.replies)
  for (const { requestId, why } of answers.left) {
    if (why === 'cancelled' && mcp.options.onCancel !== 'wait') replies.set(requestId, nobody(asking, requestId))
    else left.add(requestId)
  }
  for (const { request } of answers.misfits) misfits.set(request.requestId, (misfits.get(request.requestId) ?? 0) + 1)
  if (replies.size > 0) {
    for (const [id, reply] of replies) replies.set(id, runtime.redact(reply))
    await runtime.answerAll(row.id, replies, { protocol })
    return retry
  }
  const again = kept.status === 'suspended' ? await inputRequired(asked, kept, notes) : undefined
  return again === undefined ? retry : { ...retry, again }
}

function keyOf({ keys }: CallState, requestId: string): string | undefined {
  return Object.entries(keys).find(([, { request }]) => request === requestId)?.[0]
}

const nobodyAsked = 'Nobody could be asked.'

/** In a call that waits, a client that cancels has nobody who could answer. */
export function nobody(questions: readonly Question[], requestId: string): Reply {
  const found = questions.find(({ request }) => request.requestId === requestId)
  return found?.request.kind === 'approval'
    ? { kind: 'approval', approved: false, reason: nobodyAsked }
    : { kind: 'input', cancelled: true }
}
