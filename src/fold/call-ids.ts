/**
 * Unique ids for tool calls. Clients answer a call by its id, but some providers number calls from 1 in every answer, so two
 * parallel branches may both ask for `call_1`. If another step's loop has used an id, the call gets a new one in the log, next
 * to the provider's. Ids are derived from the log, so they are the same after a crash.
 */
import type { Entry } from '../part/entry.ts'
import type { Message } from '../part/message.ts'
import type { SourcePart } from '../part/part.ts'
import { parentPath } from '../part/path.ts'
import type { ToolLoop } from './tool-loop.ts'
import { LazyMap, LazySet } from './lazy-map.ts'

export interface CallIds {
  apply(entry: Entry): void
  /** Replaces the provider's id in a part of this loop's model call by the log's id. */
  toLog<P extends SourcePart>(root: string, part: P): P
  /** Whether this loop has made a call with this provider's id. */
  hasCall(root: string, id: string): boolean
}

export function createCallIds(): CallIds {
  return new IdsOfRun()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class IdsOfRun implements CallIds {
  readonly #used = new LazySet<string>()
  /** Loop and provider's id → the log's id. */
  readonly #names = new LazyMap<string, string>()
  readonly #called = new LazySet<string>()

  apply(entry: Entry): void {
    if (entry.type !== 'tool-input-start' && entry.type !== 'tool-call') return
    const id = entry.type === 'tool-call' ? entry.toolCallId : entry.id
    this.#used.add(id)
    const key = `${parentPath(entry.step)}\n${entry.providerCallId ?? id}`
    this.#names.set(key, id)
    if (entry.type === 'tool-call') this.#called.add(key)
  }

  hasCall(root: string, id: string): boolean {
    return this.#called.has(`${root}\n${id}`)
  }

  toLog<P extends SourcePart>(root: string, part: P): P {
    switch (part.type) {
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end': {
        const id = this.#nameOf(root, part.id)
        if (id === part.id) return part
        return part.type === 'tool-input-start' ? { ...part, id, providerCallId: part.id } : { ...part, id }
      }
      case 'tool-call':
      case 'tool-result':
      case 'tool-approval-request': {
        const toolCallId = this.#nameOf(root, part.toolCallId)
        if (toolCallId === part.toolCallId) return part
        const providerCallId = part.toolCallId
        return part.type === 'tool-call' ? { ...part, toolCallId, providerCallId } : { ...part, toolCallId }
      }
      default:
        return part
    }
  }

  #nameOf(root: string, id: string): string {
    const known = this.#names.get(`${root}\n${id}`)
    if (known !== undefined) return known
    // Every provider accepts letters, digits, `_` and `-`; the call may be sent to another provider later.
    let name = id
    for (let n = 2; this.#used.has(name); n++) name = `${id}-${n}`
    return name
  }
}

/**
 * Restores the provider's own ids in the messages for a loop's provider. An id that the conversation already uses for another
 * call (of a router, for example) is not restored: some providers reject duplicate ids.
 */
export function toProvider(messages: Message[], { list }: ToolLoop): Message[] {
  const named = list.flatMap(({ calls }) => calls.filter(({ providerCallId }) => providerCallId !== undefined))
  if (named.length === 0) return messages
  const used = new Set(messages.flatMap(callIdsIn))
  const ids = new Map(
    named.flatMap(({ toolCallId, providerCallId }) =>
      used.has(providerCallId!) ? [] : [[toolCallId, providerCallId!]],
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
