/**
 * The answer's object while the model still writes it. Reading what is there costs all of it each time, so it is read
 * again only when it has grown by an eighth: altogether O(N), however many deltas there are, and about 50 objects for
 * 20 kB.
 */
import { readPartialJson } from './model.ts'

const least = 16

export interface PartialOutput {
  delta(text: string): void
  /** No more objects are told. One that is not the answer is taken back: what comes in its place has nothing of it. */
  end(isAnswer: boolean): void
}

export function createPartialOutput(tell: (value: unknown) => void): PartialOutput {
  let text = ''
  let next = least
  let reading = false
  let over = false
  let last: string | undefined

  async function read(): Promise<void> {
    reading = true
    next = text.length + Math.max(least, text.length >> 3)
    // A model may put a fence or a word before it.
    const start = text.search(/[{[]/u)
    const value = start < 0 ? undefined : await readPartialJson(text.slice(start))
    reading = false
    if (over || value === undefined) return
    const json = JSON.stringify(value)
    if (json === last) return
    last = json
    tell(value)
  }

  return {
    delta(more) {
      text += more
      // Only a preview: the answer itself is read, and judged, when it is complete.
      if (!reading && text.length >= next) void read().catch(() => (over = true))
    },
    end(isAnswer) {
      over = true
      if (!isAnswer && last !== undefined) tell(last.startsWith('[') ? [] : {})
    },
  }
}
