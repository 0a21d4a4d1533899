/** What a run came to, as `<run>.summary.json` has it: counts named as in the Smithers document, and tokens, cost, duration, status. */
import type { RunView } from '../fold/run-view.ts'

export function summaryOf(view: RunView) {
  const { runId: id, agent, threadId, status, startedAt, endedAt = startedAt, summary, usage, cost, error } = view
  // It can be negative in logs of earlier versions, if the clock was set back.
  const duration = Math.max(0, endedAt - startedAt)
  const { totalTokens: tokens } = usage
  return {
    id,
    agent,
    threadId,
    status,
    startedAt,
    endedAt,
    duration,
    ...summary,
    stream_summary: summary,
    tokens,
    usage,
    cost,
    error,
  }
}
