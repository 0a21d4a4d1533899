/** What became of requests to clients. The view says where in the log the answers are. */
import type { PostedAnswer } from '../engine/inbox.ts'
import type { EndedRequest, KeptRun } from '../fold/kept-run.ts'
import { entryAt } from '../fold/read-view.ts'
import type { Store } from '../part/log.ts'
import type { Answer } from '../part/request-part.ts'

/** How a request of a run ended. Undefined while it is open, or if it does not exist. */
export async function endOfRequest(
  store: Store,
  { runId, ended }: KeptRun,
  requestId: string,
): Promise<PostedAnswer | undefined> {
  const found = ended.find((each) => each.requestId === requestId)
  return found && readEnd(store, runId, found)
}

/** The answer to a tool call of a run that was asked of a client: of this kind, else the last. Undefined if there is none. */
export async function answerTo(
  store: Store,
  { runId, ended }: KeptRun,
  toolCallId: string,
  kind: Answer['kind'],
): Promise<Answer | undefined> {
  let last: Answer | undefined
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
