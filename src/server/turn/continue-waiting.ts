/**
 * Continues a conversation in which a run waited for an approval. The assistant's message that said so names the run (`openai-waiting.ts`).
 *
 * - It is the last message: the client asks for the rest of that answer.
 * - Messages follow: a new turn, in the thread of that run. The recorded messages of the run replace the message, so that the model sees the
 *   tool's outcome. If the run still waits, it is stopped: nothing may run behind a conversation that has gone on without it.
 * - Another system prompt, or other tools: the client asks something about the conversation, as coding CLIs do for a title or a memory. A run
 *   that waits goes on waiting, and its words are text.
 *
 * Calls of the client's tools name runs as well: `turns-by-calls.ts` finds those.
 */
import { keptOf, readInput } from '../../fold/read-view.ts'
import { textOf } from '../../fold/run-view.ts'
import type { EntryOf } from '../../part/entry.ts'
import { hasEnded } from '../../part/log.ts'
import { messagesOf, type Message } from '../../part/message.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { awaitEntry } from '../../runtime/await-entry.ts'
import { continueOrStart, type Turn, type Turned } from '../../runtime/continue.ts'
import { pendingAnswers } from '../../runtime/pending-answers.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { withRecordedIds } from '../../runtime/turns-by-calls.ts'
import { readWaiting, type Waiting } from '../../wire/openai/openai-waiting.ts'

/** ms in which a run that was answered goes on. */
const patience = 10_000
const unanswered = 'The conversation continued without an answer.'

/** Undefined if no message of the turn, whose client has the whole conversation, says that a run waits. */
export async function continueWaiting(runtime: Runtime, turn: Turn): Promise<Turned | undefined> {
  const named = new Map<number, Waiting>()
  for (const [i, message] of turn.messages.entries()) {
    const waiting = message.role === 'assistant' ? readWaiting(textOf(message)) : undefined
    if (waiting !== undefined && (await isOurs(runtime, turn, waiting))) named.set(i, waiting)
  }
  const [last, waiting] = [...named].at(-1) ?? []
  if (last === undefined || waiting === undefined) return undefined
  if (last === turn.messages.length - 1) return restOf(runtime, waiting)
  const row = (await runtime.store.runs.get(waiting.runId))!
  const waits = !hasEnded(row.status)
  const isBeside = waits && (await isAside(runtime, turn, row.id))
  if (isBeside) named.delete(last)
  else if (waits) await runtime.stop(row.id, unanswered)
  const messages = turn.messages.map((message, i): Message => {
    const run = named.get(i)?.runId
    return run === undefined ? message : { ...message, id: run }
  })
  const fromServer = runtime.agents.get(turn.agentId)?.pipeline.history === 'server'
  if (isBeside) {
    // An agent with its own history would read it as the next turn.
    const threadId = fromServer ? turn.threadId : row.threadId
    return continueOrStart(runtime, { ...turn, ...omitUndefined({ threadId }), messages, keepsSuspended: true })
  }
  // An agent that keeps the history itself has the rest.
  const isKept = fromServer && turn.threadId === undefined
  const { unanswered: asked = [] } = (isKept && (await keptOf(runtime.store, row))) || {}
  const sent = isKept ? withRecordedIds(messages.slice(last + 1), asked) : messages
  return continueOrStart(runtime, { ...turn, threadId: row.threadId, messages: sent })
}

async function isAside({ store, redact }: Runtime, { messages, input }: Turn, run: string): Promise<boolean> {
  const before = await readInput(store.log, run)
  const asked = redact([systemOf(messages), input['tools'] ?? []])
  return JSON.stringify(asked) !== JSON.stringify([systemOf(messagesOf(before)), before['tools'] ?? []])
}

/** Before the conversation. */
function systemOf(messages: readonly Message[]): string[] {
  const end = messages.findIndex(({ role }) => role !== 'system')
  return messages.slice(0, end < 0 ? messages.length : end).map(textOf)
}

/** The text is the client's, so that the run must be one that this protocol started for this agent and thread. */
async function isOurs(
  { store, threadId: own }: Runtime,
  { agentId, threadId, groups, protocol }: Turn,
  { runId }: Waiting,
): Promise<boolean> {
  const row = await store.runs.get(runId)
  if (row === undefined || row.agent !== agentId || row.protocol !== protocol) return false
  // An operator sees the runs of others, and goes on with its own alone.
  if (own(row.threadId) !== row.threadId) return false
  return groups === true || threadId === undefined || threadId === row.threadId
}

/** What follows the answers to these requests, which a run waited for at once. */
export async function restOf(runtime: Runtime, { runId, requests }: Waiting): Promise<Turned> {
  const { log } = runtime.store
  const run = (await runtime.open(runId))!
  let suspended: EntryOf<'suspend'> | undefined
  let from: number | undefined
  for await (const batch of log.read(runId, { types: ['suspend', 'resume'] })) {
    for (const entry of batch) {
      if (entry.type === 'suspend' && isSame(entry.requests, requests)) suspended ??= entry
      else if (entry.type === 'resume' && suspended !== undefined) from ??= entry.seq
    }
  }
  // Its text was changed: the whole answer.
  if (suspended === undefined) return { run, how: 'joined', from: 0 }
  if (from !== undefined) return { run, how: 'joined', from }
  const { stop, answered } = await pendingAnswers(log, runId, new Set(requests))
  // It still waits, and says so again.
  if (stop === undefined && answered.size === 0) return { run, how: 'joined', from: suspended.seq }
  const goesOn = await awaitEntry(log, runId, ({ type }) => type === 'resume' || type === 'run-end', {
    after: suspended.seq,
    ms: patience,
  })
  return { run, how: 'joined', from: goesOn?.seq ?? suspended.seq }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each) => b.includes(each))
}
