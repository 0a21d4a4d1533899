import { textOf } from '../../../src/fold/run-view.ts'
import { longestTitle } from '../../../src/part/thread-title.ts'
import { useThreadName } from '../../data/server.ts'
import type { Chat } from './use-chat.ts'

/** What the thread is called. Until the server has told: its first words here, or its id. */
export function useChatTitle(threadId: string | undefined, { thread, turns, sent }: Chat): string | undefined {
  const nameOf = useThreadName()
  if (threadId === undefined) return undefined
  if (thread.title !== undefined) return thread.title
  const asked = turns[0]?.turn.asked ?? sent[0]?.asked ?? []
  const words = asked.map(textOf).join(' ').trim()
  return words === '' ? (thread.isLoading ? undefined : nameOf(threadId).name) : words.slice(0, longestTitle)
}
