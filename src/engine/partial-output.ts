/**
 * Parses the answer's object while the model writes it. Each parse reads the whole text, so it runs only when the text has grown by an eighth: O(N)
 * in total for any number of deltas, and about 50 objects for 20 kB.
 */
import { readPartialJson } from '../models/model.ts'

const least = 16

export interface PartialOutput {
  delta(text: string): void
  /** Stops emitting. If the text is not the answer, emits an empty object or list to clear earlier values. */
  end(isAnswer: boolean): void
}

export function createPartialOutput(emit: (value: unknown) => void): PartialOutput {
  let text = ''
  let next = least
  let reading = false
  let over = false
  let last: string | undefined

  async function read(): Promise<void> {
    reading = true
    next = text.length + Math.max(least, text.length >> 3)
    // A model may write a code fence or some text before the JSON.
    const start = text.search(/[{[]/u)
    const value = start < 0 ? undefined : await readPartialJson(text.slice(start))
    reading = false
    if (over || value === undefined) return
    const json = JSON.stringify(value)
    if (json === last) return
    last = json
    emit(value)
  }

  return {
    delta(more) {
      text += more
      // Only a preview: the complete answer is parsed and judged at its end.
      if (!reading && text.length >= next) void read().catch(() => (over = true))
    },
    end(isAnswer) {
      over = true
      if (!isAnswer && last !== undefined) emit(last.startsWith('[') ? [] : {})
    },
  }
}
