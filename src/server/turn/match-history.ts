/**
 * Finds the run that a client's conversation continues: the one whose conversation is the longest beginning of the client's. Clients that keep the
 * history send all of it with each request; the run then records only what is new, and the model gets what the log has, with thoughts, signatures
 * and the server's own calls, which the client has lost.
 */
import type { RunRow } from '../../part/log.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { conversation } from '../../runtime/conversation.ts'
import type { SentMessage } from '../../wire/sent-message.ts'
import { keysOf, prefixesOf, readRunKeys, type Reading, type RunKeys } from './run-keys.ts'

/** Maximum number of runs of the thread that are compared, newest first. */
const mostRuns = 50
/** Maximum number of runs that ids in the request may name. */
const mostNamed = 20

export interface History {
  /** Of the agent. */
  agentId: string
  /** As in the log. Without it, only runs that the ids name are compared. */
  threadId: string | undefined
  sent: readonly SentMessage[]
  reading: Reading
}

export interface MatchedHistory {
  run: RunKeys
  /** How many of the messages the run's conversation has. */
  count: number
}

export async function matchHistory(
  runtime: Runtime,
  { agentId, threadId, sent, reading }: History,
): Promise<MatchedHistory | undefined> {
  const named = await namedRuns(runtime, { agentId, threadId, sent, reading })
  if (named.size === 0 && (threadId === undefined || sent.length < 2)) return undefined
  const { at, messages } = prefixesOf(sentKeys(runtime, { sent, reading }, named))
  const isBeginning = ({ end }: RunKeys) => end.length < at.length - 1 && at[end.length]!.hash === end.hash
  let best: RunKeys | undefined
  const consider = (keys: RunKeys) => {
    if (keys.end.length > (best?.end.length ?? 0) && isBeginning(keys)) best = keys
  }
  for (const keys of named.values()) consider(keys)
  const thread = threadId ?? best?.threadId
  // Not every message has an id that names its run.
  const isNamed = sent.every(
    ({ message, run }) => message.role !== 'assistant' || (run !== undefined && named.has(run)),
  )
  if (thread !== undefined && (best === undefined || !isNamed)) {
    for (const row of await runtime.store.runs.list({ threadId: thread, limit: mostRuns })) {
      const keys = row.agent === agentId ? await readRunKeys(runtime.store, row, reading) : undefined
      if (keys !== undefined) consider(keys)
    }
  }
  if (best === undefined) return undefined
  // A run before it may be deleted: then only the client has the whole conversation.
  const { cut } = await conversation(runtime.store, best.threadId, best.run)
  return cut ? undefined : { run: best, count: behindAnswer(sent, messages[best.end.length]!) }
}

/** System messages behind an answer belong to the next turn. */
function behindAnswer(sent: readonly SentMessage[], count: number): number {
  let at = count
  while (at > 0 && sent[at - 1]!.message.role === 'system') at--
  return sent[at - 1]?.message.role === 'assistant' ? at : count
}

/** The keys of each message. Those of a run that is named are the recorded ones. */
export function sentKeys(
  { redact }: Runtime,
  { sent, reading }: Pick<History, 'sent' | 'reading'>,
  named: ReadonlyMap<string, RunKeys>,
): string[][] {
  return sent.map(({ message, run }) => {
    const recorded = run === undefined ? undefined : named.get(run)
    if (recorded !== undefined) return recorded.answer === undefined ? [] : [recorded.answer]
    // As the log has it.
    return keysOf(redact(message), reading)
  })
}

/** Runs of this caller, agent and thread that the request names by the ids of their items, newest first. */
export async function namedRuns(
  { store, threadId: own }: Runtime,
  { agentId, threadId, sent, reading }: History,
): Promise<Map<string, RunKeys>> {
  const ids = new Set(sent.flatMap(({ run }) => run ?? []).toReversed())
  const named = new Map<string, RunKeys>()
  for (const id of [...ids].slice(0, mostNamed)) {
    const row: RunRow | undefined = await store.runs.get(id)
    if (row === undefined || row.agent !== agentId || own(row.threadId) !== row.threadId) continue
    if (threadId !== undefined && row.threadId !== threadId) continue
    const keys = await readRunKeys(store, row, reading)
    if (keys !== undefined) named.set(id, keys)
  }
  return named
}
