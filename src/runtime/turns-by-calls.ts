/**
 * Finds the runs that made an assistant's messages without ids, such as OpenAI's: by the ids of client tool calls. Models need the parts that such
 * a client does not return: signatures, signed thinking, encrypted reasoning, and calls of the server's tools.
 *
 * Ids come from the client, and some servers count them from 0. So the run must be of the same agent, must have had the same question, and
 * must have made the same calls with the same arguments: then the client's model gets nothing that the client did not have. Two ids are the
 * same if their forms for OpenAI's clients are.
 */
import { keptOf } from '../fold/read-view.ts'
import { textOf } from '../fold/run-view.ts'
import type { KeptRun } from '../fold/kept-run.ts'
import type { FoldedRun } from '../fold/run-fold.ts'
import type { Store } from '../part/log.ts'
import type { Message, ToolCallContent } from '../part/message.ts'
import { toOpenAiCallId } from '../part/openai-call-id.ts'

interface SentMessages {
  agentId: string
  /** Whether a thread is the caller's own: turns of others are not looked for. */
  isOwn(threadId: string): boolean
  threadId?: string | undefined
  messages: Message[]
}

/** Maximum number of runs that are searched, newest first: in the thread, then of the agent. */
const mostRuns = 50
/** Maximum number of calls in this process's cache. */
const mostKnown = 10_000

/** Agent and form of a call id → run. */
const known = new WeakMap<Store['runs'], Map<string, string>>()

interface NamedTurns {
  /** Each recorded message with the id of its run. */
  messages: Message[]
  runs: Set<string>
  /** The thread of the last run. */
  threadId: string | undefined
}

/** Remembers the client tool calls of a run: by the time of the reply, more runs may have started than the search covers. */
export function noteCalls(runs: Store['runs'], { start, unanswered }: Pick<FoldedRun, 'start' | 'unanswered'>): void {
  if (start?.handOver === true) note(runs, start.agent, start.runId, unanswered.keys())
}

function note(runs: Store['runs'], agentId: string, runId: string, calls: Iterable<string>): Map<string, string> {
  const runsOf = known.get(runs) ?? new Map<string, string>()
  known.set(runs, runsOf)
  for (const id of calls) runsOf.set(keyOf(agentId, id), runId)
  for (const key of runsOf.keys()) {
    if (runsOf.size <= mostKnown) break
    runsOf.delete(key)
  }
  return runsOf
}

function keyOf(agentId: string, toolCallId: string): string {
  return `${agentId}\n${toOpenAiCallId(toolCallId)}`
}

/** With the recorded ids of the calls whose results they have: a client may have only a form of them. */
export function withRecordedIds(messages: readonly Message[], recorded: readonly string[]): Message[] {
  const ids = new Map(recorded.map((id) => [toOpenAiCallId(id), id]))
  return messages.map((message): Message => {
    if (message.role !== 'tool') return message
    const content = message.content.map((result) => {
      const toolCallId = ids.get(toOpenAiCallId(result.toolCallId)) ?? result.toolCallId
      return { ...result, toolCallId }
    })
    return { ...message, content }
  })
}

export async function nameByCalls(store: Store, asked: SentMessages): Promise<NamedTurns> {
  const { messages } = asked
  const runs = new Set<string>()
  let threadId: string | undefined
  const bare = messages.filter((message) => message.id === undefined && callsOf(message).length > 0)
  if (bare.length === 0) return { messages, runs, threadId }
  const find = createSearch(store, asked)
  const named: Message[] = []
  let user = ''
  for (const message of messages) {
    if (message.role === 'user') user = textOf(message)
    const run = bare.includes(message) ? await find(callsOf(message), user) : undefined
    if (run !== undefined) {
      runs.add(run.runId)
      threadId = run.threadId
    }
    named.push(run === undefined ? message : ({ ...message, id: run.runId } as Message))
  }
  return { messages: named, runs, threadId }
}

function createSearch(store: Store, { agentId, threadId, isOwn }: SentMessages) {
  const runsOf = note(store.runs, agentId, '', [])
  const rows = listed(store, { agent: agentId, threadId, isOwn })

  return async (calls: ToolCallContent[], user: string): Promise<KeptRun | undefined> => {
    const first = runsOf.get(keyOf(agentId, calls[0]!.toolCallId))
    const row = first === undefined ? undefined : await store.runs.get(first)
    const stored = row && isOwn(row.threadId) ? await keptOf(store, row) : undefined
    if (stored !== undefined && isOf(stored, agentId, calls, user)) return stored
    for (;;) {
      const { value, done } = await rows.next()
      if (done) return undefined
      note(store.runs, agentId, value.runId, value.unanswered)
      if (isOf(value, agentId, calls, user)) return value
    }
  }
}

async function* listed(
  store: Store,
  { agent, threadId, isOwn }: { agent: string } & Pick<SentMessages, 'threadId' | 'isOwn'>,
): AsyncGenerator<KeptRun, undefined> {
  const seen = new Set<string>()
  for (const query of threadId === undefined ? [{ agent }] : [{ agent, threadId }, { agent }]) {
    for (const row of await store.runs.list({ ...query, limit: mostRuns })) {
      if (seen.has(row.id) || !isOwn(row.threadId)) continue
      seen.add(row.id)
      const stored = await keptOf(store, row)
      if (stored !== undefined && stored.unanswered.length > 0) yield stored
    }
  }
  return undefined
}

function isOf(stored: KeptRun, agentId: string, calls: readonly ToolCallContent[], user: string): boolean {
  if (stored.agent !== agentId) return false
  const asked = stored.asked.findLast(({ role }) => role === 'user')
  if (asked === undefined || textOf(asked) !== user) return false
  const isUnanswered = (id: string) => stored.unanswered.some((each) => isSameId(each, id))
  if (!calls.every(({ toolCallId }) => isUnanswered(toolCallId))) return false
  const made = stored.messages.flatMap(callsOf)
  return calls.every((call) =>
    made.some(
      ({ toolCallId, toolName, input }) =>
        toolName === call.toolName &&
        JSON.stringify(input) === JSON.stringify(call.input) &&
        isSameId(toolCallId, call.toolCallId),
    ),
  )
}

function isSameId(a: string, b: string): boolean {
  return a === b || toOpenAiCallId(a) === toOpenAiCallId(b)
}

function callsOf({ role, content }: Message): ToolCallContent[] {
  if (role !== 'assistant' || typeof content === 'string') return []
  return content.filter((part) => part.type === 'tool-call')
}
