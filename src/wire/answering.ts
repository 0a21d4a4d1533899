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
  /** Outcomes of tools under this path belong to calls of the answer. */
  settles(path: string): boolean
}

type Place = 'hidden' | 'answer' | 'tool'

export function createAnswering(): Answering {
  const places = new Map<string, Place>([['', 'hidden']])
  let started = false

  function placeOf(path: string): Place {
    const known = places.get(path)
    if (known !== undefined) return known
    const place = placeOf(parentPath(path)) === 'answer' ? 'answer' : 'hidden'
    places.set(path, place)
    return place
  }

  return {
    get started() {
      return started
    },
    note({ step, answer, toolCallId }) {
      if (answer === true) {
        started = true
        // A path looked up before its ancestor was known to answer would stay hidden for ever.
        for (const path of places.keys()) if (path.startsWith(`${step}/`)) places.delete(path)
        places.set(step, 'answer')
      } else if (toolCallId !== undefined && placeOf(parentPath(step)) === 'answer') places.set(step, 'tool')
    },
    speaks: (path) => placeOf(path) === 'answer',
    settles: (path) => placeOf(path) !== 'hidden',
  }
}
