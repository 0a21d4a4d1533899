/**
 * What an AI SDK client has got of each path, by UI step: enough to know whether a superseded attempt can be taken back.
 *
 * `reset-step` removes every part that the client added since the last `start-step` and forgets all open blocks. That
 * retracts an attempt exactly when all it showed came since then, and nobody else has shown anything since.
 */
import { isUnder } from '../part/path.ts'

export interface Shown {
  /** A `start-step` was sent. */
  step(): void
  /** A lasting part from this path was sent. */
  add(path: string): void
  /** What a reset of this path takes: nothing, one `reset-step`, or more than the protocol can do. Forgets the path. */
  retract(path: string): 'nothing' | 'step' | 'impossible'
}

export function createShown(): Shown {
  const spans = new Map<string, { first: number; last: number }>()
  let step = 0
  return {
    step() {
      step++
    },
    add(path) {
      const span = spans.get(path)
      if (span) span.last = step
      else spans.set(path, { first: step, last: step })
    },
    retract(root) {
      let touched = false
      let exact = true
      for (const [path, { first, last }] of spans) {
        if (isUnder(path, root)) {
          touched = true
          if (first < step) exact = false
          spans.delete(path)
        } else if (last === step) exact = false
      }
      if (!touched) return 'nothing'
      return exact ? 'step' : 'impossible'
    },
  }
}
