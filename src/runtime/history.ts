/** The messages that a run starts with: those of the client, corrected from the server's logs. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { answerMessages, withRunId, type KeptRun } from '../fold/kept-run.ts'
import { foldLog, keptOf } from '../fold/read-view.ts'
import { toResultContent } from '../fold/reply-messages.ts'
import type { Store } from '../part/log.ts'
import { equal } from '../part/equal.ts'
import { conversation } from './conversation.ts'
import { nameByCalls, withRecordedIds } from './turns-by-calls.ts'
import type { Runtime } from './runtime.ts'
import type { Message, ToolOutput, ToolResultContent } from '../part/message.ts'

/**
 * For `history: client`: the client's messages in its order. The first assistant message whose id is a run of this thread is replaced by the
 * messages that the run recorded, because the client's copy lacks signatures and tool results. Messages without ids are found by their calls, even
 * outside the thread: `threadId` is the thread of the last one.
 */
export async function withServerMessages(
  { store, threadId: own }: Pick<Runtime, 'store' | 'threadId'>,
  threadId: string | undefined,
  given: Message[],
  agentId: string,
): Promise<{ messages: Message[]; threadId?: string | undefined }> {
  const {
    messages,
    runs,
    threadId: found,
  } = await nameByCalls(store, {
    agentId,
    threadId,
    messages: given,
    isOwn: (id) => own(id) === id,
  })
  if (threadId === undefined && runs.size === 0) return { messages: given }
  const known: Message[] = []
  const taken = new Set<string>()
  /** Messages that were sent into the last recorded run: its record has them, and what the model said behind them. */
  let heard: readonly Message[] = []
  let isInside = false
  for (let i = 0; i < messages.length;) {
    const group = sameMessage(messages, i)
    i += group.length
    if (group[0]!.role === 'user') {
      const at = heard.findIndex((each) => isSameWords(each, group[0]!))
      isInside = at >= 0
      heard = heard.slice(at + 1)
    }
    if (isInside) continue
    const { id } = group[0]!
    // Each run once: otherwise a small request could repeat an id to expand into thousands of answers.
    const isNamed = group[0]!.role === 'assistant' && id !== undefined && !taken.has(id)
    const recorded = isNamed ? await record(store, runs.has(id) ? undefined : threadId, id, group) : []
    if (isNamed) taken.add(id)
    if (recorded.length === 0) known.push(...group)
    else {
      // A run that continued an assistant's message has recorded only its own part of the client's single message.
      const continues = known.at(-1)?.role !== 'assistant' && known.at(-1)?.role !== 'tool'
      heard = recorded.slice(recorded.findIndex((message) => message.id === id)).filter(({ role }) => role === 'user')
      known.push(...recorded.slice(continues ? 0 : recorded.findIndex((message) => message.id === id)))
    }
  }
  return { messages: known, threadId: found }
}

/**
 * For `history: server`: the new messages of a client that may have sent its whole copy of the conversation: those after the last message that the
 * thread has, except assistant messages, of which the server has its own. If there are none, the last user message is asked again.
 */
export async function newMessages(store: Store, threadId: string, messages: Message[]): Promise<Message[]> {
  const last = (await store.runs.list({ threadId, limit: 1 }))[0]
  if (last === undefined) return messages
  const { messages: known } = await conversation(store, threadId, last.id)
  const ids = new Set(known.flatMap(({ id }) => (id === undefined ? [] : [id])))
  const isAsked = ({ role }: Message) => role === 'user' || role === 'system'
  const from = messages.findLastIndex(({ id }) => id !== undefined && ids.has(id)) + 1
  const added = messages.slice(from).filter(isAsked)
  return added.length > 0 ? added : messages.slice(-1 - messages.toReversed().findIndex(({ role }) => role === 'user'))
}

function isSameWords(a: Message, b: Message): boolean {
  return b.id === undefined ? equal(a.content, b.content) : a.id === b.id
}

/** A client's message may have been split into several. The following ones without their own id belong to it. */
function sameMessage(messages: Message[], from: number): Message[] {
  const { id, role } = messages[from]!
  let to = from + 1
  if (role !== 'assistant' || id === undefined) return messages.slice(from, to)
  for (; to < messages.length; to++) {
    const { id: next, role: nextRole } = messages[to]!
    if (nextRole === 'user' || nextRole === 'system' || (next !== undefined && next !== id)) break
  }
  return messages.slice(from, to)
}

/**
 * The messages that a run added, after the assistant's messages that it continued. The run must be of this thread or found by its calls; empty for
 * other runs.
 */
async function record(store: Store, threadId: string | undefined, run: string, group: Message[]): Promise<Message[]> {
  const row = await store.runs.get(run)
  if (row === undefined || (threadId !== undefined && row.threadId !== threadId)) return []
  const stored = await keptOf(store, row)
  if (stored === undefined) return []
  const messages = await withResults(store, stored, resultsOf(group, stored))
  if (messages.length === 0) return []
  const own = stored.asked.findLastIndex(({ role }) => role === 'user' || role === 'system')
  return [...stored.asked.slice(own + 1), ...messages]
}

/** The client's results of client tool calls that have none in the log. */
function resultsOf(group: Message[], { unanswered }: KeptRun): Map<string, ToolResultContent> {
  const results = new Map<string, ToolResultContent>()
  for (const { role, content } of withRecordedIds(group, unanswered)) {
    if (role !== 'tool') continue
    for (const result of content) if (unanswered.includes(result.toolCallId)) results.set(result.toolCallId, result)
  }
  return results
}

async function withResults(
  { log }: Store,
  { runId, messages }: KeptRun,
  results: Map<string, ToolResultContent>,
): Promise<Message[]> {
  if (results.size === 0) return messages
  const missing = new Set(results.keys())
  const replaced = messages.map((message): Message => {
    if (message.role !== 'tool') return message
    const content = message.content.map((old) => {
      const given = results.get(old.toolCallId)
      if (given === undefined) return old
      missing.delete(old.toolCallId)
      return { ...old, ...toResultContent(toResult(given)) }
    })
    return { ...message, content }
  })
  if (missing.size === 0) return replaced
  // A call without any outcome is in no message yet: only the log has it.
  const fold = (await foldLog(log.read(runId)))!
  for (const [id, given] of results) {
    const asked = fold.unanswered.get(id)
    if (asked !== undefined) fold.apply(toResult(given, asked))
  }
  return withRunId(answerMessages(fold), runId)
}

function toResult({ toolCallId, toolName, output }: ToolResultContent, at?: Entry): EntryOf<'tool-result'> {
  const { seq = 0, timestamp = 0, step = '' } = at ?? {}
  const outcome = resultOf(output) as Pick<EntryOf<'tool-result'>, 'result'>
  return { seq, timestamp, step, type: 'tool-result', toolCallId, toolName, ...outcome }
}

function resultOf(output: ToolOutput) {
  if (output.type === 'execution-denied') return { result: output.reason ?? '', isError: true, outcome: 'denied' }
  return { result: output.value, isError: output.type === 'error-text' || output.type === 'error-json' }
}
