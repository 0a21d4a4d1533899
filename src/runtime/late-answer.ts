/**
 * An answer to what a run had asked that has completed since: from a client that was slower than another, or that sends it again. It must
 * not start a run, in which tools would run a second time.
 */
import type { KeptRun } from '../fold/kept-run.ts'
import { keptOf } from '../fold/read-view.ts'
import type { RunRow, Store } from '../part/log.ts'
import { answerBefore, answerOf, conflict, isSame, placeOf } from './turn-answer.ts'
import type { Turn, Turned } from './continue.ts'
import type { Runtime } from './runtime.ts'

/** The newest run of a thread, with what is kept of it. */
export async function newestRun(store: Store, threadId: string): Promise<{ row: RunRow; kept: KeptRun } | undefined> {
  const row = (await store.runs.list({ threadId, limit: 1 }))[0]
  const kept = row && (await keptOf(store, row))
  return row && kept && { row, kept }
}

/** Joins the run that has the answer. Throws `answer-conflict` (409) if it has another one. */
export async function joinAnswered({ store, open, redact }: Runtime, turn: Turn): Promise<Turned | undefined> {
  const { threadId, answers } = turn
  if (threadId === undefined || turn.handOver === true || !isAnswer(turn)) return undefined
  const { row, kept } = (await newestRun(store, threadId)) ?? {}
  // One that failed may be tried again.
  if (row?.status !== 'completed' || kept === undefined) return undefined
  let isKnown = false
  for (const each of answers) {
    const before = await answerBefore(store, kept, each)
    if (before === undefined) continue
    const answer = redact(answerOf(each, before.kind))
    // Of a tool that was approved the client may have the result.
    if (answer.kind !== before.kind) continue
    if (!isSame(before, answer)) throw conflict(placeOf(each))
    isKnown = true
  }
  const run = isKnown ? await open(row.id) : undefined
  return run && { run, how: 'joined', from: kept.resumedAt }
}

/** The request ends with an answer: a client that has read what followed asks for more. */
function isAnswer({ answers, messages }: Turn): boolean {
  if (answers.some((each) => 'requestId' in each || each.answer.kind === 'approval')) return true
  return answers.length > 0 && messages.at(-1)?.role === 'tool'
}
