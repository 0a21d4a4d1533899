/**
 * Ids of tool calls as clients see them. Some providers number the calls of each answer from 1, and a client adds the arguments of a second
 * call with an id to those of the first, also across the turns of a conversation. So the nth call with an id is sent as `<id>~<n>`.
 */
import { LateMap } from '../../fold/late-map.ts'
import type { Message } from '../../part/message.ts'

export interface AgUiCallNames {
  /** The conversation before the run has these calls. */
  apply(messages: readonly Message[]): void
  /** The name of the next call with this id. */
  next(toolCallId: string): string
  /** The name of the last one. */
  last(toolCallId: string): string
}

export function createAgUiCallNames(): AgUiCallNames {
  const counts = new LateMap<string, number>()

  // An id that looks like a name gets one, too, because the client's answer is read as a name.
  const nameOf = (id: string, n: number) => (n === 1 && toCallId(id) === id ? id : `${id}~${n}`)

  function next(toolCallId: string): string {
    const n = (counts.get(toolCallId) ?? 0) + 1
    counts.set(toolCallId, n)
    return nameOf(toolCallId, n)
  }

  return {
    next,
    last: (toolCallId) => nameOf(toolCallId, counts.get(toolCallId) ?? 1),
    apply(messages) {
      // A log may have an input that no route would take.
      for (const message of messages as readonly (Message | null | undefined)[]) {
        if (message?.role !== 'assistant' || !Array.isArray(message.content)) continue
        for (const part of message.content) if (part?.type === 'tool-call') next(String(part.toolCallId))
      }
    },
  }
}

/** The id of a call that a client names. */
export function toCallId(name: string): string {
  return name.replace(/~\d{1,9}$/u, '')
}
