/**
 * Ids of messages: `<run id>:<n>`, where n counts what the run says, so that the same entries always get the same ids, and an id names
 * its run. All calls of a model call belong to one assistant message, which has the model call's first text, too. Results do not
 * count: some clients are not sent those of their own tools, and all clients must have the same ids.
 */
import { LateMap } from '../../fold/late-map.ts'
import { isUnder } from '../../part/path.ts'

export function resultId(runId: string, toolCallId: string): string {
  return `${runId}:result:${toolCallId}`
}

export interface AgUiIds {
  begin(runId: string): void
  /** The id of a message of its own. */
  next(): string
  /** The id of the message that has the result of this call. */
  result(toolCallId: string): string
  /** The id of a text block of this path. */
  text(path: string): string
  /** The id of the message to which calls of this path belong. */
  calls(path: string): string
  /** What follows under this path is another message: it has finished, or has the result of its call. */
  end(path: string): void
}

export function createAgUiIds(): AgUiIds {
  return new Ids()
}

/** A class, because its functions would cost each answer more than what it knows. */
class Ids implements AgUiIds {
  #runId = ''
  #count = 0
  /** The message of each model call that runs. */
  readonly #messages = new LateMap<string, { id: string; hasText: boolean }>()

  begin(id: string): void {
    this.#runId = id
  }

  next(): string {
    return `${this.#runId}:${++this.#count}`
  }

  result(toolCallId: string): string {
    return resultId(this.#runId, toolCallId)
  }

  text(path: string): string {
    const message = this.#messages.get(path)
    if (message?.hasText === true) return this.next()
    const id = message?.id ?? this.next()
    this.#messages.set(path, { id, hasText: true })
    return id
  }

  calls(path: string): string {
    let message = this.#messages.get(path)
    if (message === undefined) this.#messages.set(path, (message = { id: this.next(), hasText: false }))
    return message.id
  }

  end(path: string): void {
    if (this.#messages.size === 0) return
    for (const at of this.#messages.keys()) if (isUnder(at, path)) this.#messages.delete(at)
  }
}
