/**
 * Ids of messages: `<run id>:<n>`, where n counts the run's messages, so that the same entries always get the same ids, and an id names its run.
 * All calls of a model call belong to one assistant message, together with its first text. Results do not count: some clients do not get those of
 * their own tools, and all clients must have the same ids. Nor do the messages of subagents, which the conversation does not have: each of these is
 * `<subagent id>:<n>`.
 */
import { LazyMap } from '../../fold/lazy-map.ts'
import { isUnder } from '../../part/path.ts'
import type { Message, ProviderOptions } from '../../part/message.ts'
import { parseJson } from '../../part/json.ts'

export function resultId(runId: string, toolCallId: string): string {
  return `${runId}:result:${toolCallId}`
}

export interface AgUiIds {
  begin(runId: string): void
  /** The id of a separate message of a path. */
  next(path: string): string
  /** The id of the message that has the result of this call. */
  result(toolCallId: string): string
  /** The id of a text block of this path. */
  text(path: string): string
  /** The id of the message to which calls of this path belong. */
  calls(path: string): string
  /** Ends the message of this path: it has finished, or has the result of its call. Later content is another message. */
  end(path: string): void
}

/** `subagentAt`: the id of the subagent that works at a path. */
export function createAgUiIds(subagentAt: (path: string) => string | undefined): AgUiIds {
  return new Ids(subagentAt)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Ids implements AgUiIds {
  readonly #subagentAt: (path: string) => string | undefined
  #runId = ''
  #count = 0
  /** The number of messages of each subagent. */
  readonly #counts = new LazyMap<string, number>()
  /** The message of each running model call. */
  readonly #messages = new LazyMap<string, { id: string; hasText: boolean }>()

  constructor(subagentAt: (path: string) => string | undefined) {
    this.#subagentAt = subagentAt
  }

  begin(id: string): void {
    this.#runId = id
  }

  next(path: string): string {
    const subagent = this.#subagentAt(path)
    if (subagent === undefined) return `${this.#runId}:${++this.#count}`
    const n = (this.#counts.get(subagent) ?? 0) + 1
    this.#counts.set(subagent, n)
    return `${subagent}:${n}`
  }

  result(toolCallId: string): string {
    return resultId(this.#runId, toolCallId)
  }

  text(path: string): string {
    const message = this.#messages.get(path)
    if (message?.hasText === true) return this.next(path)
    const id = message?.id ?? this.next(path)
    this.#messages.set(path, { id, hasText: true })
    return id
  }

  calls(path: string): string {
    let message = this.#messages.get(path)
    if (message === undefined) this.#messages.set(path, (message = { id: this.next(path), hasText: false }))
    return message.id
  }

  end(path: string): void {
    if (this.#messages.size === 0) return
    for (const at of this.#messages.keys()) if (isUnder(at, path)) this.#messages.delete(at)
  }
}

/**
 * Ids of tool calls for clients. Some providers number the calls of each answer from 1, and a client appends the arguments of a second call with an
 * id to those of the first, even across the turns of a conversation. So the nth call with an id is sent as `<id>~<n>`. The conversation does not have
 * the calls of subagents and scripts, so they are counted by themselves and named after their run: `<id>~<n>.<run>`.
 */
export interface AgUiCallNames {
  /** Registers the calls of the conversation before the run. */
  apply(messages: readonly Message[]): void
  /** The name of the next call with this id. */
  next(toolCallId: string): string
  /** The name of the last one. */
  last(toolCallId: string): string
  /** The name of the next call of a subagent, or of a script, with this id. */
  inner(toolCallId: string, runId: string): string
}

export function createAgUiCallNames(): AgUiCallNames {
  const counts = new LazyMap<string, number>()
  const innerCounts = new LazyMap<string, number>()

  // An id that looks like a name gets one, too, because the client's reply is read as a name.
  const nameOf = (id: string, n: number) => (n === 1 && toCallId(id) === id ? id : `${id}~${n}`)

  function next(toolCallId: string): string {
    const n = (counts.get(toolCallId) ?? 0) + 1
    counts.set(toolCallId, n)
    return nameOf(toolCallId, n)
  }

  return {
    next,
    last: (toolCallId) => nameOf(toolCallId, counts.get(toolCallId) ?? 1),
    inner(toolCallId, runId) {
      const n = (innerCounts.get(toolCallId) ?? 0) + 1
      innerCounts.set(toolCallId, n)
      return `${toolCallId}~${n}.${runId}`
    },
    apply(messages) {
      // A log may have an input that routes would refuse.
      for (const message of messages as readonly (Message | null | undefined)[]) {
        if (message?.role !== 'assistant' || !Array.isArray(message.content)) continue
        for (const part of message.content) if (part?.type === 'tool-call') next(String(part.toolCallId))
      }
    },
  }
}

/** Whether a client's name is of a call that a subagent or a script has made: it is no part of the conversation. */
export function isInnerCall(name: string): boolean {
  return /~\d{1,9}\.[^~]+$/u.test(name)
}

/** The call id of a client's name for it. */
export function toCallId(name: string): string {
  return name.replace(/~\d{1,9}(?:\.[^~]*)?$/u, '')
}

/**
 * Data that only a provider can read (a signature, redacted reasoning), as AG-UI's `encryptedValue`: clients keep it and return it. It is our
 * provider metadata as JSON.
 */
export function toEncryptedValue(options: ProviderOptions): string {
  return JSON.stringify(options)
}

/** Empty for a value that is not ours: another server's value is useless to the model. */
export function toProviderOptions(value: unknown): { providerOptions?: ProviderOptions } {
  if (typeof value !== 'string' || !value.startsWith('{')) return {}
  try {
    return { providerOptions: parseJson(value) as ProviderOptions }
  } catch {
    return {}
  }
}
