/**
 * Which conversation a request belongs to, for protocols whose clients send the whole history (or name the run before), and which run answers it.
 *
 * 1. A coding CLI that repeats a request gets the run that it has started: `join-retry.ts`.
 * 2. A message says that a run waits for an approval: `continue-waiting.ts`.
 * 3. The request names the run before, or its messages begin with the conversation of one (`match-history.ts`): the new run continues that one, also if
 *    others do, and records only what is new.
 * 4. Otherwise a conversation begins.
 */
import { MillraceError } from '../../part/error.ts'
import { keptOf } from '../../fold/read-view.ts'
import type { RunRow } from '../../part/log.ts'
import type { Message } from '../../part/message.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { conversation } from '../../runtime/conversation.ts'
import { continueOrStart, type Turn, type Turned } from '../../runtime/continue.ts'
import { answeringAgent } from '../../runtime/side-calls.ts'
import { withServerMessages } from '../../runtime/history.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { withRecordedIds } from '../../runtime/turns-by-calls.ts'
import type { SentMessage } from '../../wire/sent-message.ts'
import { continueWaiting } from './continue-waiting.ts'
import { joinRetry, turnLabel } from './join-retry.ts'
import { matchHistory } from './match-history.ts'
import { withoutCuts } from './reminders.ts'
import { readRunKeys, type Reading } from './run-keys.ts'

export interface HistoryTurn {
  /** Without the conversation. */
  turn: Omit<Turn, 'threadId' | 'messages' | 'previousRunId' | 'history' | 'groups'>
  sent: readonly SentMessage[]
  /** The request's own instructions, which no later turn has. */
  lead: readonly Message[]
  /** Results whose calls are not in the request, with their places. */
  orphans: readonly { toolCallId: string; place: string }[]
  /** The thread that the client names: its runs wait for each other. */
  threadId: string | undefined
  /** The thread of the client's session, which groups its runs. */
  session: string | undefined
  /** The run before, which the client names. */
  previous: RunRow | undefined
  /** Identifies a turn of a coding CLI in its session. */
  turnId: string | undefined
  /** What counts when messages are compared. */
  reading: Reading
  /** The error for a result at this place whose call was never made. */
  unknownCall(place: string): MillraceError
}

export async function continueHistory(runtime: Runtime, given: HistoryTurn): Promise<Turned> {
  const asked = { ...given, turn: { ...given.turn, agentId: answering(runtime, given) } }
  const { turn, sent, lead, previous, turnId, reading } = asked
  const { agentId } = turn
  const named = asked.threadId ?? (previous === undefined ? asked.session : undefined)
  const threadId = previous?.threadId ?? (named === undefined ? undefined : runtime.threadId(named))
  if (turnId !== undefined && threadId !== undefined) {
    const again = await joinRetry(runtime, { agentId, threadId, turnId, sent, reading })
    if (again !== undefined) return again
  }
  const labels = turnId === undefined ? turn.labels : { ...turn.labels, [turnLabel]: turnId }
  const groups = asked.threadId === undefined && previous?.status !== 'running'
  const common = { ...turn, groups, ...omitUndefined({ labels }) }
  const all = sent.map(({ message }) => message)
  if (previous === undefined) {
    const waiting = await continueWaiting(runtime, {
      ...common,
      groups: true,
      history: 'client',
      messages: [...lead, ...all],
    })
    if (waiting !== undefined) return waiting
  }
  let before = await runBefore(runtime, asked, threadId)
  if (before === undefined && reading === 'spoken') {
    const whole = withoutCuts(sent)
    before = whole.length === sent.length ? undefined : await runBefore(runtime, { ...asked, sent: whole }, threadId)
    // What follows is the same.
    if (before !== undefined) before.count += sent.length - whole.length
  }
  if (before !== undefined) await stopWaiting(runtime, before.run)
  const rest = withCalls(asked, all.slice(before?.count ?? 0), before?.calls)
  const keeps = runtime.agents.get(agentId)?.pipeline.history ?? 'server'
  if (keeps === 'client') {
    const known =
      previous === undefined ? [] : (await conversation(runtime.store, previous.threadId, previous.id)).messages
    const messages = [...lead, ...known, ...(previous === undefined ? shown(all) : rest)]
    return continueOrStart(runtime, { ...common, history: 'client', messages, ...omitUndefined({ threadId }) })
  }
  const messages = [...lead, ...(before === undefined ? await fromLog(runtime, agentId, sent) : shown(rest))]
  return continueOrStart(runtime, {
    ...common,
    history: 'server',
    messages,
    previousRunId: before?.run ?? null,
    ...omitUndefined({ threadId: before?.threadId ?? threadId }),
  })
}

function answering({ agents }: Runtime, { turn: { agentId, input, settings }, previous }: HistoryTurn): string {
  const agent = agents.get(agentId)
  if (agent === undefined || previous !== undefined) return agentId
  return answeringAgent(agents, agent, { tools: input['tools'], responseFormat: settings?.responseFormat }).id
}

/** A run that waits, and whose conversation goes on without an answer: nothing may run behind it. */
async function stopWaiting(runtime: Runtime, run: string): Promise<void> {
  if ((await runtime.store.runs.get(run))?.status !== 'suspended') return
  await runtime.stop(run, 'The conversation continued without an answer.')
}

interface RunBefore {
  run: string
  threadId: string
  /** How many of the messages its conversation has. */
  count: number
  calls: ReadonlyMap<string, string>
}

async function runBefore(
  runtime: Runtime,
  { turn: { agentId }, sent, previous, reading }: HistoryTurn,
  threadId: string | undefined,
): Promise<RunBefore | undefined> {
  if (previous !== undefined) {
    const calls = (await readRunKeys(runtime.store, previous, 'exact'))?.calls ?? new Map<string, string>()
    return { run: previous.id, threadId: previous.threadId, count: 0, calls }
  }
  const found = await matchHistory(runtime, { agentId, threadId, sent, reading })
  if (found === undefined) return undefined
  const { run, threadId: thread, calls } = found.run
  return { run, threadId: thread, count: found.count, calls }
}

/** The results have the names of their tools. Throws for one whose call was not made. */
function withCalls(
  { orphans, unknownCall }: HistoryTurn,
  messages: readonly Message[],
  calls: ReadonlyMap<string, string> = new Map(),
): Message[] {
  for (const { toolCallId, place } of orphans) if (!calls.has(toolCallId)) throw unknownCall(place)
  const named = withRecordedIds(messages, [...calls.keys()])
  if (orphans.length === 0) return named
  return named.map((message): Message => {
    if (message.role !== 'tool') return message
    const content = message.content.map((result) => {
      return { ...result, toolName: result.toolName === '' ? (calls.get(result.toolCallId) ?? '') : result.toolName }
    })
    return { ...message, content }
  })
}

/** A conversation that no run has: its assistant's messages are those of the log where the client names a run. */
async function fromLog(runtime: Runtime, agentId: string, sent: readonly SentMessage[]): Promise<Message[]> {
  const { store, threadId: own } = runtime
  let threadId: string | undefined
  const messages: Message[] = []
  for (const { message, run } of sent) {
    const row = run === undefined ? undefined : await store.runs.get(run)
    const isOwn = row !== undefined && row.agent === agentId && own(row.threadId) === row.threadId
    if (isOwn) threadId = row.threadId
    messages.push(isOwn && message.role === 'assistant' ? { ...message, id: row.id } : message)
  }
  if (threadId === undefined) return shown(messages)
  const known = await withServerMessages(runtime, threadId, messages, agentId)
  return shown(known.messages)
}

/** A reference to what is not there says nothing. */
function shown(messages: readonly Message[]): Message[] {
  return messages.filter(({ role, content }) => role !== 'assistant' || content.length > 0)
}

/** A run that the client names can be continued: it is there, and it was not told to forget it. Undefined otherwise. */
export async function namedRun(runtime: Runtime, agentId: string, run: string): Promise<RunRow | undefined> {
  const row = await runtime.store.runs.get(run)
  if (row === undefined || row.agent !== agentId || runtime.threadId(row.threadId) !== row.threadId) return undefined
  return (await keptOf(runtime.store, row)) === undefined ? undefined : row
}
