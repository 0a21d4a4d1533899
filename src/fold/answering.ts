/**
 * What belongs to the answer of a run, for wires, views and clients alike: steps with `answer: true` and everything below them,
 * except steps inside a tool. A sub-agent's text is the result of the tool, unless it has a step with `answer: true` itself.
 */
import type { EntryOf } from '../part/entry.ts'
import { parentPath } from '../part/path.ts'

export interface Answering {
  /** Whether a step with `answer: true` has started. */
  readonly started: boolean
  note(entry: EntryOf<'step-start'>): void
  /** Whether this path belongs to the answer. One Map lookup for a known path. */
  has(path: string): boolean
}

export function createAnswering(): Answering {
  return new Places()
}

/** A class, because an open stream has several: their functions would take more memory than what they know. */
class Places implements Answering {
  started = false
  readonly #places = new Map([['', false]])

  has(path: string): boolean {
    const known = this.#places.get(path)
    if (known !== undefined) return known
    const place = this.has(parentPath(path))
    this.#places.set(path, place)
    return place
  }

  note({ step, answer, toolCallId }: EntryOf<'step-start'>): void {
    if (answer === true) {
      this.started = true
      // Forget results that were cached before this ancestor was known to answer.
      for (const path of this.#places.keys()) if (path.startsWith(`${step}/`)) this.#places.delete(path)
      this.#places.set(step, true)
    } else if (toolCallId !== undefined) this.#places.set(step, false)
  }
}
