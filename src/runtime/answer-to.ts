/** The outcomes of requests to clients. The view has the positions of their replies in the log. */
import type { PostedAnswer } from '../engine/inbox.ts'
import type { EndedRequest, KeptRun } from '../fold/kept-run.ts'
import { callKey } from '../fold/open-items.ts'
import { entryAt } from '../fold/read-view.ts'
import { equal } from '../part/equal.ts'
import { parseJson } from '../part/json.ts'
import type { Store, Log } from '../part/log.ts'
import type { Reply, RequestPart } from '../part/request-part.ts'
import { MillraceError } from '../part/error.ts'
import { firstFaults } from '../pipeline/check-input.ts'
import { tooMuchWork, validate } from '../pipeline/json-schema/validate.ts'
import { wrongAnswer } from './runtime-errors.ts'
import { parentPath } from '../part/path.ts'
import type { EntryOf } from '../part/entry.ts'

/** How a request of a run ended. Undefined while it is open, or if it does not exist. */
export async function endOfRequest(
  store: Store,
  { runId, ended }: KeptRun,
  requestId: string,
): Promise<PostedAnswer | undefined> {
  const found = ended.find((each) => each.requestId === requestId)
  return found && readEnd(store, runId, found)
}

/** The client's reply to a tool call of a run: one of this kind, otherwise the last. Undefined if there is none. */
export async function answerTo(
  store: Store,
  { runId, ended }: KeptRun,
  toolCallId: string,
  kind: Reply['kind'],
): Promise<Reply | undefined> {
  let last: Reply | undefined
  for (const each of ended.toReversed()) {
    if (each.toolCallId !== toolCallId || each.closed !== undefined) continue
    const end = await readEnd(store, runId, each)
    if (end === undefined || !('answer' in end)) continue
    if (end.answer.kind === kind) return end.answer
    last ??= end.answer
  }
  return last
}

async function readEnd({ log }: Store, run: string, { seq, closed }: EndedRequest): Promise<PostedAnswer | undefined> {
  if (closed !== undefined) return { closed }
  const entry = await entryAt(log, run, seq)
  if (entry?.type !== 'response' || entry.answer === undefined) return undefined
  return { answer: entry.answer, protocol: entry.protocol ?? 'api' }
}

/** Refuses a reply of another kind than the request's, or a value that does not fit its schema. */
export function checkAnswer(request: RequestPart, answer: Reply): void {
  if (request.kind !== answer.kind) throw wrongAnswer(request)
  if (request.kind !== 'input' || request.schema === undefined || !('value' in answer)) return
  // A value that takes too long to check is accepted.
  const faults = validate(request.schema, answer.value).filter((fault) => fault !== tooMuchWork)
  if (faults.length === 0) return
  throw new MillraceError('bad-input', `The value does not fit: ${firstFaults(faults)}.`, { status: 400 })
}

/**
 * The reply as it counts: an approval with the arguments that the call has is a plain one, in whatever order they stand. Nothing was edited, and the
 * model is not told that anything was. The request may have ended.
 */
export async function plainAnswer(
  log: Log,
  run: string,
  answer: Reply,
  isAnswered: (request: EntryOf<'request'>) => boolean,
): Promise<Reply> {
  if (answer.kind !== 'approval' || answer.input === undefined) return answer
  const { input, ...plain } = answer
  const written = new Map<string, string>()
  for await (const batch of log.read(run, { types: ['tool-call', 'request'] })) {
    for (const entry of batch) {
      if (entry.type === 'tool-call') written.set(callKey(entry.step, entry.toolCallId), entry.input)
      if (entry.type !== 'request' || entry.kind !== 'approval' || !isAnswered(entry)) continue
      // The request has them as the tool's schema has made them of what the model wrote.
      const text = written.get(callKey(entry.step, entry.toolCallId))
      if (equal(input, entry.input) || (text !== undefined && equal(input, valueOf(text)))) return plain
    }
  }
  return answer
}

function valueOf(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

/** Refuses an approval whose edited arguments do not fit the tool. The tool's schema is in the prompt of the call. */
export async function checkEdit(log: Log, run: string, request: EntryOf<'request'>, answer: Reply): Promise<void> {
  if (answer.kind !== 'approval' || answer.input === undefined || request.kind !== 'approval') return
  const loop = parentPath(request.step)
  let schema: unknown
  for await (const batch of log.read(run, { types: ['prompt'], before: request.seq })) {
    for (const entry of batch) {
      if (entry.type !== 'prompt' || parentPath(entry.step) !== loop) continue
      schema = entry.tools?.find(({ name }) => name === request.toolName)?.inputSchema ?? schema
    }
  }
  const faults = schema === undefined ? [] : validate(schema, answer.input).filter((fault) => fault !== tooMuchWork)
  if (faults.length === 0) return
  const what = `The arguments for ${request.toolName} do not fit`
  throw new MillraceError('bad-input', `${what}: ${firstFaults(faults)}.`, { status: 400 })
}

/* The replies in a request, and the outcomes of earlier ones. */

/**
 * A reply in a request: to a client tool call or an approval, or to the request with this id. Some protocols use the same message for every kind of
 * request, so the reply may be a function of the kind.
 */
export type TurnAnswer =
  | { toolCallId: string; answer: Reply }
  | { requestId: string; answer: Reply | ((kind: RequestPart['kind']) => Reply) }

export function answerOf({ answer }: TurnAnswer, kind: RequestPart['kind']): Reply {
  return typeof answer === 'function' ? answer(kind) : answer
}

export function isAbout(each: TurnAnswer): (request: EntryOf<'request'>) => boolean {
  return ({ requestId, toolCallId }) =>
    'requestId' in each ? requestId === each.requestId : toolCallId === each.toolCallId
}

export async function answerBefore(
  store: Store,
  stored: KeptRun,
  each: TurnAnswer,
  answer?: Reply,
): Promise<Reply | undefined> {
  if (!('requestId' in each)) return answerTo(store, stored, each.toolCallId, (answer ?? each.answer).kind)
  const end = await endOfRequest(store, stored, each.requestId)
  return end !== undefined && 'answer' in end ? end.answer : undefined
}

export function isSame(a: Reply, b: Reply): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

export function placeOf(each: TurnAnswer): string {
  return 'requestId' in each ? `Request ${each.requestId}` : `Tool call ${each.toolCallId}`
}

export function conflict(what: string): MillraceError {
  return new MillraceError('answer-conflict', `${what} already has a different answer.`, { status: 409 })
}
