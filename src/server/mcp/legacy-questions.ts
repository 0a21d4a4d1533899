/**
 * Questions to a legacy client, on the stream of its call: a request of ours, `elicitation/create`. Its response is a request of its own, which may reach
 * another instance: so the id of our request says, sealed, which run it is about.
 */
import type { KeptRun } from '../../fold/kept-run.ts'
import { keptOf } from '../../fold/read-view.ts'
import { hasEnded } from '../../part/log.ts'
import { protocol, type Asked } from './asked.ts'
import type { RpcResponse } from './json-rpc.ts'
import { noteLeft, noteMisfit, readNotes } from './notes.ts'
import { questionsOf, readAnswers } from './questions.ts'
import { nobody } from './retry.ts'

/** Each question once for this stream. `told`: the keys of those that it has. */
export async function legacyQuestions(asked: Asked, kept: KeptRun, told: Set<string>): Promise<object[]> {
  const { context, mcp } = asked
  const { log } = context.runtime.store
  const questions = await questionsOf(asked, kept, await readNotes(log, kept.runId))
  const fresh = questions.filter(({ key }) => !told.has(key))
  return Promise.all(
    fresh.map(async ({ key, request, elicitation }) => {
      told.add(key)
      const { mode, ...params } = elicitation
      const id = await mcp.tokens.seal('request', { run: kept.runId, key }, context.principal, request.deadline)
      // Before 2025-11-25 there are forms only, and no word for them.
      const shown = asked.client.version < '2025-11-25' ? params : elicitation
      void mode
      return { jsonrpc: '2.0', id, method: 'elicitation/create', params: shown }
    }),
  )
}

/** The client's response. What does not count is ignored. */
export async function noteAnswer(
  asked: Pick<Asked, 'context' | 'mcp' | 'client'>,
  { id, result }: RpcResponse,
): Promise<void> {
  const { context, mcp } = asked
  const { runtime } = context
  const { store } = runtime
  const data = await mcp.tokens.open('request', id, context.principal)
  if (data === undefined) return
  const { run, key } = data as { run: string; key: string }
  const row = await store.runs.get(run)
  // Also of a run that goes on with another answer.
  const kept = row === undefined || hasEnded(row.status) ? undefined : await keptOf(store, row)
  if (kept === undefined) return
  const questions = (await questionsOf(asked, kept, await readNotes(store.log, run))).filter((each) => each.key === key)
  // An error says that nobody could be asked.
  const { replies, left, misfits } = readAnswers(questions, { [key]: result ?? { action: 'cancel' } })
  for (const { requestId, why } of left) {
    if (why === 'cancelled' && mcp.options.onCancel !== 'wait') replies.set(requestId, nobody(questions, requestId))
    else await noteLeft(store.log, run, requestId)
  }
  for (const { request, misfits: time } of misfits) await noteMisfit(store.log, run, request.requestId, time)
  for (const [requestId, reply] of replies) replies.set(requestId, runtime.redact(reply))
  if (replies.size > 0) await runtime.answerAll(run, replies, { protocol })
}
