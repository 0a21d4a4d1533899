/**
 * Names of tool calls. Clients answer a call by its id, and providers count theirs from 1 in every answer: two branches at
 * once may both be asked for `call_1`. So a call whose id another step's loop has used gets one of its own in the log,
 * beside what its provider calls it; within a loop ids stay the provider's. A fold: behind a crash the names are the same.
 */
import type { Entry } from '../part/entry.ts'
import type { Message } from '../part/message.ts'
import type { ModelPart } from '../part/part.ts'
import { parentPath } from '../part/path.ts'
import type { Turns } from '../part/turns.ts'

export interface CallIds {
  apply(entry: Entry): void
  /** A part as the log is to say it, for a model call of this loop. */
  toLog<P extends ModelPart>(root: string, part: P): P
}

export function createCallIds(): CallIds {
  const used = new Set<string>()
  /** Loop and provider's id → the log's id. */
  const names = new Map<string, string>()

  function nameOf(root: string, id: string): string {
    const known = names.get(`${root}\n${id}`)
    if (known !== undefined) return known
    // Letters, digits, `_` and `-` are what every provider takes, if the call is shown to another one.
    let name = id
    for (let n = 2; used.has(name); n++) name = `${id}-${n}`
    return name
  }

  return {
    apply(entry) {
      if (entry.type !== 'tool-input-start' && entry.type !== 'tool-call') return
      const id = entry.type === 'tool-call' ? entry.toolCallId : entry.id
      used.add(id)
      names.set(`${parentPath(entry.step)}\n${entry.providerCallId ?? id}`, id)
    },
    toLog(root, part) {
      switch (part.type) {
        case 'tool-input-start':
        case 'tool-input-delta':
        case 'tool-input-end': {
          const id = nameOf(root, part.id)
          if (id === part.id) return part
          return part.type === 'tool-input-start' ? { ...part, id, providerCallId: part.id } : { ...part, id }
        }
        case 'tool-call':
        case 'tool-result':
        case 'tool-approval-request': {
          const toolCallId = nameOf(root, part.toolCallId)
          if (toolCallId === part.toolCallId) return part
          const providerCallId = part.toolCallId
          return part.type === 'tool-call' ? { ...part, toolCallId, providerCallId } : { ...part, toolCallId }
        }
        default:
          return part
      }
    },
  }
}

/**
 * The messages that a loop's provider is told: the calls that it made have the ids that it gave them, unless the
 * conversation holds that id for another call (a router's, say): one id twice is more than some providers take.
 */
export function toProvider(messages: Message[], { list }: Turns): Message[] {
  const named = list.flatMap(({ calls }) => calls.filter(({ providerCallId }) => providerCallId !== undefined))
  if (named.length === 0) return messages
  const told = new Set(messages.flatMap(callIdsIn))
  const ids = new Map(
    named.flatMap(({ toolCallId, providerCallId }) =>
      told.has(providerCallId!) ? [] : [[toolCallId, providerCallId!]],
    ),
  )
  const own = <T extends object>(part: T): T => {
    const id = 'toolCallId' in part ? ids.get(part.toolCallId as string) : undefined
    return id === undefined ? part : { ...part, toolCallId: id }
  }
  return messages.map((message): Message => {
    if (message.role === 'tool') return { ...message, content: message.content.map(own) }
    if (message.role !== 'assistant' || typeof message.content === 'string') return message
    return { ...message, content: message.content.map(own) }
  })
}

function callIdsIn({ content }: Message): string[] {
  if (typeof content === 'string') return []
  return content.flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : []))
}
