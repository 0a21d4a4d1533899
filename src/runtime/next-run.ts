/** The runs that begin with a message for a run that has ended: started once, by whichever process is first. */
import { nextRuns, waitingMessages, type NextRun } from '../engine/steering.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { hasEnded, type Store } from '../part/log.ts'
import type { RunStart, SentMessage } from '../part/part.ts'
import { MillraceError } from '../part/error.ts'
import { claimKey, toSentMessage, type MessageClaim } from '../part/sent-message.ts'
import type { UserMessage } from '../part/message.ts'
import { startNow } from './own-text.ts'
import { recordedMessages } from './tell-run.ts'
import type { Agent, AgentSource, StartOptions } from './runtime.ts'

export interface NextRunContext {
  store: Store
  agents: AgentSource
  start(agent: Agent, input: Record<string, unknown>, options: StartOptions): Promise<unknown>
}

/** Starts a run with these messages behind another one. Resolves when it is stored, also if it was before. */
export async function startNextRun(context: NextRunContext, before: RunStart, next: NextRun): Promise<void> {
  const { store, agents, start } = context
  const { runId, messages } = next
  if ((await store.runs.get(runId)) !== undefined) return
  const agent = agents.get(before.agent)
  if (agent === undefined) return
  const { messages: _, ...input } = before.input
  try {
    await start(agent, { ...input, messages: messages.map(toUserMessage) }, { ...optionsOf(before, messages), runId })
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'run-exists') throw error
  }
}

/**
 * Starts the runs of messages that came too late for the owner of an ended run, or that it has claimed and could not record. One run each, so that
 * two processes that see different messages start the same runs. A stopped run has dropped them.
 */
export async function settleMessages(context: NextRunContext, run: string): Promise<void> {
  const { store, agents, start } = context
  const { log, runs } = store
  const waiting = await waitingMessages(log, run, () => false)
  if (waiting.length === 0) return
  const row = await runs.get(run)
  if (row === undefined || !hasEnded(row.status) || row.status === 'aborted') return
  const recorded = await recordedMessages(store, run)
  const first = await startNow(store, run)
  const agent = first && agents.get(first.agent)
  if (first === undefined || agent === undefined) return
  for (const next of nextRuns(first, recorded.values())) {
    if (!(await hasPlace(store, row.threadId, next.runId))) await startNextRun(context, first, next)
  }
  for (const { id, posted } of waiting) {
    if (recorded.has(id)) continue
    const { message } = await log.post(run, claimKey(id), { to: 'next' } satisfies MessageClaim)
    if ((message as MessageClaim).to === 'sender') continue
    const sent = toSentMessage(id, posted)
    const { messages: _, ...input } = first.input
    const options = { ...optionsOf(first, [sent]), turnKey: `message:${run}:${id}` }
    await start(agent, { ...input, messages: [toUserMessage(sent)] }, options)
  }
}

/** Whether a run was started in its thread, though it may have been deleted since. */
async function hasPlace({ log }: Store, threadId: string, runId: string): Promise<boolean> {
  for await (const { message } of log.inbox(`thread:${threadId}`))
    if ((message as { run?: unknown } | null)?.run === runId) return true
  return false
}

function toUserMessage({ id, content }: SentMessage): UserMessage {
  return { role: 'user', id, content }
}

/** It answers as the run before it did, and after it. */
function optionsOf(before: RunStart, [first]: readonly SentMessage[]): StartOptions {
  const { threadId, user, handOver, noClientTools, settings, wireOptions } = before
  const pipeline = before.ownPipeline === true ? before.pipeline : null
  return {
    threadId,
    follows: true,
    protocol: first?.protocol ?? before.protocol,
    ...omitUndefined({
      user,
      handOver,
      noClientTools,
      settings,
      wireOptions,
      pipeline,
      labels: first?.labels ?? before.labels,
    }),
  }
}
