/** For `history: server`: the conversation before a run, as a chain of the kept views of earlier runs. */
import type { Message } from '../part/message.ts'
import { predecessor } from './predecessor.ts'
import { createTurns, type Runs } from './turns.ts'

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
  store: Runs,
  threadId: string,
  run: string,
  { following = [], limit }: { following?: readonly Message[]; limit?: ConversationLimit } = {},
): Promise<Conversation> {
  const reader = createTurns(store)
  const turns: Message[][] = []
  let next = following
  let isLost = false
  let messages = 0
  let characters = 0
  // A recording may say that a run continues itself.
  const seen = new Set<string>()
  for (let at: string | undefined = run; at !== undefined && !seen.has(at);) {
    seen.add(at)
    const isFull = limit !== undefined && (messages >= limit.messages || characters >= limit.characters)
    // Only where a user speaks: results without their calls would make the request invalid.
    if (isFull && (next[0]?.role === 'user' || next[0]?.role === 'system')) {
      return { messages: turns.reverse().flat(), cut: true }
    }
    const found = await reader.read(at)
    isLost = found === undefined
    if (found === undefined) {
      // The process died before the run's first entry, so only its place in the thread is stored. Or the run was deleted.
      at = await predecessor(store.log, threadId, at)
      continue
    }
    const turn: Message[] = [...found.asked, ...withoutResults(found.messages, next)]
    turns.push(turn)
    messages += turn.length
    characters += found.characters
    next = turn
    at = found.previous
  }
  const all = turns.reverse().flat()
  if (!isLost) return { messages: all, cut: false }
  const from = all.findIndex(({ role }) => role === 'user' || role === 'system')
  return { messages: from < 0 ? [] : all.slice(from), cut: true }
}

/** The messages without results of calls that the next turn begins with. */
export function withoutResults(messages: Message[], next: readonly Message[]): Message[] {
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
