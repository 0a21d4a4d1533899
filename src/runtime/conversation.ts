/** For `history: server`: the conversation before a run, as a chain of the kept views of earlier runs. */
import { readInput, readKept } from '../fold/read-view.ts'
import type { Store } from '../part/log.ts'
import { messagesOf, type Message } from '../part/message.ts'
import { predecessor } from './predecessor.ts'

export interface Conversation {
  messages: Message[]
  /** Older messages were left out. */
  cut: boolean
}

export interface ConversationLimit {
  messages: number
  /** Of the messages as JSON. */
  characters: number
}

/** What a model is told at most. A turn that reaches a limit is told whole. decisions/0017 has the reasons. */
export const historyLimit: ConversationLimit = { messages: 2000, characters: 4_000_000 }

/**
 * The conversation up to and including a run, along the chain of previous runs. `following` are the messages after it: if they
 * begin with results of calls that the run handed over, these replace the run's own.
 */
export async function conversation(
  store: Store,
  threadId: string,
  run: string,
  { following = [], limit }: { following?: readonly Message[]; limit?: ConversationLimit } = {},
): Promise<Conversation> {
  const turns: Message[][] = []
  let next = following
  let messages = 0
  let characters = 0
  for (let at: string | undefined = run; at !== undefined;) {
    const isFull = limit !== undefined && (messages >= limit.messages || characters >= limit.characters)
    // Only where a user speaks: results without their calls would make the request invalid.
    if (isFull && (next[0]?.role === 'user' || next[0]?.role === 'system')) {
      return { messages: turns.reverse().flat(), cut: true }
    }
    const kept = await readKept(store, at)
    if (kept === undefined) {
      // The process died before the run's first entry, so only its place in the thread is stored.
      at = await predecessor(store.log, threadId, at)
      continue
    }
    // Of a run that continues another all messages of the input are new, and kept.
    const isFirst = kept.previousRunId === undefined
    const asked = isFirst ? messagesOf(await readInput(store.log, at)) : kept.asked
    const turn: Message[] = [...asked, ...withoutResults(kept.messages, next)]
    turns.push(turn)
    messages += turn.length
    if (limit !== undefined) characters += JSON.stringify(turn).length
    next = turn
    at = kept.previousRunId
  }
  return { messages: turns.reverse().flat(), cut: false }
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
