/**
 * Which paths of a run belong to its answer. What lies at or under a step with `answer: true` does, except what a tool
 * does inside its own step: a sub-agent's words are the tool's result, not the answer, unless it answers itself.
 */
import type { EntryOf } from '../part/entry.ts'
import { parentPath } from '../part/path.ts'

export interface Answering {
  /** Some step with `answer: true` has started. */
  readonly started: boolean
  note(entry: EntryOf<'step-start'>): void
  /** Words under this path are answer. One Map look-up once a path is known. */
  speaks(path: string): boolean
}

export function createAnswering(): Answering {
  const places = new Map([['', false]])
  function speaks(path: string): boolean {
    const known = places.get(path)
    if (known !== undefined) return known
    const place = speaks(parentPath(path))
    places.set(path, place)
    return place
  }

  function note({ step, answer, toolCallId }: EntryOf<'step-start'>): void {
    if (answer === true) {
      answering.started = true
      // A path looked up before its ancestor was known to answer would stay hidden for ever.
      for (const path of places.keys()) if (path.startsWith(`${step}/`)) places.delete(path)
      places.set(step, true)
    } else if (toolCallId !== undefined) places.set(step, false)
  }

  const answering = { started: false, note, speaks }
  return answering
}
