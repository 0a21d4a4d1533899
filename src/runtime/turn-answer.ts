/** The answers in a request, and what became of those before. */
import { MillraceError } from '../part/error.ts'
import type { KeptRun } from '../fold/kept-run.ts'
import type { Store } from '../part/log.ts'
import type { Answer, RequestPart } from '../part/request-part.ts'
import { answerTo, endOfRequest } from './answer-to.ts'

/**
 * An answer in a request: to the call that a client was asked to run or to approve, or to the request with this id. Some protocols
 * say the same for every kind of request, so the answer may be a function of the kind.
 */
export type TurnAnswer =
  | { toolCallId: string; answer: Answer }
  | { requestId: string; answer: Answer | ((kind: RequestPart['kind']) => Answer) }

export function answerOf({ answer }: TurnAnswer, kind: RequestPart['kind']): Answer {
  return typeof answer === 'function' ? answer(kind) : answer
}

export async function answerBefore(
  store: Store,
  kept: KeptRun,
  each: TurnAnswer,
  answer?: Answer,
): Promise<Answer | undefined> {
  if (!('requestId' in each)) return answerTo(store, kept, each.toolCallId, (answer ?? each.answer).kind)
  const end = await endOfRequest(store, kept, each.requestId)
  return end !== undefined && 'answer' in end ? end.answer : undefined
}

export function isSame(a: Answer, b: Answer): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

export function placeOf(each: TurnAnswer): string {
  return 'requestId' in each ? `Request ${each.requestId}` : `Tool call ${each.toolCallId}`
}

export function conflict(what: string): MillraceError {
  return new MillraceError('answer-conflict', `${what} already has a different answer.`, { status: 409 })
}
