/**
 * Decides which entries belong to the answer of a run, for wires, views and clients alike: steps with `answer: true` and everything below
 * them, except steps inside a tool. A sub-agent's text is the result of the tool, unless it has a step with `answer: true` itself.
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

/** A class, not closures: one for each open stream (decisions/0028). */
class Places implements Answering {
  started = false
  /** Noted places as a boolean; derived ones as a number: twice the version, and 1 if the path belongs to the answer. */
  readonly #places = new Map<string, boolean | number>([['', false]])
  /** Grows when a note may change derived places. */
  #version = 0

  has(path: string): boolean {
    let at = path
    let place = this.#known(at)
    // A loop, not recursion: a path may have thousands of names.
    for (; place === undefined; place = this.#known(at)) at = parentPath(at)
    for (let each = path; each !== at; each = parentPath(each))
      this.#places.set(each, this.#version * 2 + Number(place))
    return place
  }

  #known(path: string): boolean | undefined {
    const place = this.#places.get(path)
    if (typeof place !== 'number') return place
    return place >> 1 === this.#version ? (place & 1) === 1 : undefined
  }

  note({ step, answer, toolCallId, kind }: EntryOf<'step-start'>): void {
    if (answer === true) this.started = true
    else if (toolCallId === undefined && kind !== 'summary') return
    const place = answer === true
    const known = this.#places.get(step)
    // Nothing is derived yet from a path that was never looked up.
    if (known !== undefined && known !== place) this.#version++
    this.#places.set(step, place)
  }
}
