/** The messages that a run starts with: those of the client, corrected from the server's logs. */
import { mergeDeltas, type Entry } from '../part/entry.ts'
import { createRunFold, type RunFold } from '../fold/run-fold.ts'
import type { RunView } from '../fold/run-view.ts'
import type { Store } from '../part/log.ts'
import { messagesOf, type Message, type ToolOutput, type ToolResultContent } from '../part/message.ts'
import { kindOf } from '../part/step-kind.ts'
import { predecessor } from './threads.ts'

/** A run's view from its log. Undefined if there is no such run. */
export async function readView(store: Store, run: string): Promise<RunView | undefined> {
  return (await store.runs.get(run)) === undefined ? undefined : toView(store.log.read(run))
}

/** Folds a log's entries into a view. Undefined if there are none. */
export async function toView(batches: AsyncIterable<Entry[]>): Promise<RunView | undefined> {
  return (await toFold(batches))?.view()
}

async function toFold(batches: AsyncIterable<Entry[]>, onEntry?: (entry: Entry) => void): Promise<RunFold | undefined> {
  let fold: RunFold | undefined
  for await (const batch of batches) {
    fold ??= createRunFold()
    for (const entry of mergeDeltas(batch)) {
      fold.apply(entry)
      onEntry?.(entry)
    }
  }
  return fold
}

/**
 * For `history: client`: the client's messages in its order. The first assistant message whose id is a run of this thread is
 * replaced by what that run recorded, because the client's copy lacks signatures and tool results.
 */
export async function withServerMessages(store: Store, threadId: string, messages: Message[]): Promise<Message[]> {
  const known: Message[] = []
  const taken = new Set<string>()
  for (let i = 0; i < messages.length;) {
    const group = sameMessage(messages, i)
    i += group.length
    const { id } = group[0]!
    // Each run once: otherwise a small request could repeat an id to expand into thousands of whole answers.
    const isNamed = group[0]!.role === 'assistant' && id !== undefined && !taken.has(id)
    const recorded = isNamed ? await record(store, threadId, id, group) : []
    if (isNamed) taken.add(id)
    if (recorded.length === 0) known.push(...group)
    else {
      // A run that continued an assistant's message has recorded only its own part of what the client shows as one message.
      const continues = known.at(-1)?.role !== 'assistant' && known.at(-1)?.role !== 'tool'
      known.push(...recorded.slice(continues ? 0 : recorded.findIndex((message) => message.id === id)))
    }
  }
  return known
}

/** A client's message may have been split into several. Those that follow without their own id belong to it. */
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

/** What a run of this thread added, after the assistant's messages that it continued. Empty for other runs. */
async function record(store: Store, threadId: string, run: string, group: Message[]): Promise<Message[]> {
  const row = await store.runs.get(run)
  if (row?.threadId !== threadId) return []
  // Calls of client tools without an outcome in the log.
  const wanting = new Map<string, Entry>()
  const fold = await toFold(store.log.read(run), (entry) => {
    if (entry.type === 'step-start' && kindOf(entry) === 'client-tool') wanting.set(entry.toolCallId ?? '', entry)
    const answered = entry.type === 'tool-result' && (entry.outcome === undefined || entry.outcome === 'denied')
    if (answered) wanting.delete(entry.toolCallId)
  })
  if (fold === undefined) return []
  for (const { role, content } of group) {
    if (role !== 'tool') continue
    for (const result of content) {
      const asked = wanting.get(result.toolCallId)
      if (asked !== undefined) fold.apply(toEntry(result, asked))
    }
  }
  const { messages, input } = fold.view()
  if (messages.length === 0) return []
  const asked = messagesOf(input)
  const own = asked.findLastIndex(({ role }) => role === 'user' || role === 'system')
  return [...asked.slice(own + 1), ...messages]
}

function toEntry({ toolCallId, toolName, output }: ToolResultContent, { seq, timestamp, step }: Entry): Entry {
  return { seq, timestamp, step, type: 'tool-result', toolCallId, toolName, ...toResult(output) } as Entry
}

function toResult(output: ToolOutput) {
  if (output.type === 'execution-denied') return { result: output.reason ?? '', isError: true, outcome: 'denied' }
  return { result: output.value, isError: output.type === 'error-text' || output.type === 'error-json' }
}

/**
 * For `history: server`: the conversation up to and including a run, along the chain of previous runs. `following` are the
 * messages after it: if they begin with results of calls that the run handed over, these replace the run's own.
 */
export async function conversation(
  store: Store,
  threadId: string,
  run: string,
  following: readonly Message[] = [],
): Promise<Message[]> {
  const turns: Message[][] = []
  let next = following
  for (let at: string | undefined = run; at !== undefined;) {
    const view: RunView | undefined = await readView(store, at)
    if (view === undefined) {
      // The process died before the run's first entry, so only its place in the thread is stored.
      at = await predecessor(store.log, threadId, at)
      continue
    }
    const turn: Message[] = [...messagesOf(view.input), ...withoutResults(view.messages, next)]
    turns.unshift(turn)
    next = turn
    at = view.previousRunId
  }
  return turns.flat()
}

function withoutResults(messages: Message[], next: readonly Message[]): Message[] {
  const given = new Set<string>()
  for (const { role, content } of next) {
    if (role !== 'tool') break
    for (const { toolCallId } of content) given.add(toolCallId)
  }
  if (given.size === 0) return messages
  return messages.flatMap((message): Message[] => {
    if (message.role !== 'tool') return [message]
    const content = message.content.filter(({ toolCallId }) => !given.has(toolCallId))
    return content.length === 0 ? [] : [{ ...message, content }]
  })
}
