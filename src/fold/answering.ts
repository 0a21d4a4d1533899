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
  const places = new Map([['', false]])
  function has(path: string): boolean {
    const known = places.get(path)
    if (known !== undefined) return known
    const place = has(parentPath(path))
    places.set(path, place)
    return place
  }

  function note({ step, answer, toolCallId }: EntryOf<'step-start'>): void {
    if (answer === true) {
      answering.started = true
      // Forget results that were cached before this ancestor was known to answer.
      for (const path of places.keys()) if (path.startsWith(`${step}/`)) places.delete(path)
      places.set(step, true)
    } else if (toolCallId !== undefined) places.set(step, false)
  }

  const answering = { started: false, note, has }
  return answering
}
