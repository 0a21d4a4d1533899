/** A summary that an earlier run of the thread has made: the next run starts from it, and none is made twice for the same messages. */
import { keptOf } from '../fold/read-view.ts'
import type { SummaryView } from '../fold/run-view.ts'
import type { RunRow } from '../part/log.ts'
import type { Message } from '../part/message.ts'
import { runsOf } from '../part/principal.ts'
import type { Scope } from './scope.ts'
import { endOf, hashOf } from './summary-hash.ts'

/** Runs of a thread that are looked at, newest first, where the client keeps the history. */
const mostRuns = 10

/** The summary that covers most of these messages. `path`: that of the tool loop. */
export async function earlierSummary(
  scope: Scope,
  path: string,
  messages: readonly Message[],
): Promise<SummaryView | undefined> {
  if (!messages.some(({ role }) => role === 'assistant')) return undefined
  const { state, store } = scope
  const previous = state.start?.previousRunId
  const mine = runsOf(state.start?.user)
  let best: SummaryView | undefined
  for (const row of await rowsBefore(scope, previous)) {
    scope.signal.throwIfAborted()
    if ((row.owner ?? mine.owner) !== mine.owner || (row.tenant ?? mine.tenant) !== mine.tenant) continue
    const { summaries = [] } = (await keptOf(store, row)) ?? {}
    for (const summary of summaries) {
      if (summary.step !== path || summary.text === undefined) continue
      const upTo = await placeIn(messages, summary, previous !== undefined)
      if (upTo !== undefined && upTo > (best?.upTo ?? 0)) best = { ...summary, upTo }
    }
    if (best !== undefined) break
  }
  return best
}

async function rowsBefore(
  { store, threadId, runId, state, stored }: Scope,
  previous: string | undefined,
): Promise<RunRow[]> {
  if (previous !== undefined) {
    const row = await store.runs.get(previous)
    return row === undefined ? [] : [row]
  }
  // The list starts at this run, so the run must be stored first.
  await stored()
  return store.runs.list({ threadId, before: runId, limit: mostRuns, ...runsOf(state.start?.user) })
}

/** `isSame`: the messages are those of the log, so the summary ends where it did there, also within an answer. */
async function placeIn(
  messages: readonly Message[],
  { upTo, hash }: SummaryView,
  isSame: boolean,
): Promise<number | undefined> {
  const next = messages[upTo]?.role
  const isPlace = isSame && (next === 'user' || next === 'assistant')
  if (isPlace && (await hashOf(messages, upTo)) === hash) return upTo
  const end = await endOf(messages, hash)
  return end !== undefined && end < messages.length ? end : undefined
}
