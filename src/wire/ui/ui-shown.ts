/**
 * Tracks in which UI steps each path has sent parts, to decide whether a superseded attempt can be retracted.
 *
 * `reset-step` removes every part that the client added since the last `start-step`, and all open blocks. It retracts exactly
 * one attempt if all parts of that attempt came after that `start-step`, and no other path has sent parts since.
 */
import { isUnder } from '../../part/path.ts'
import { LazyMap } from '../../fold/lazy-map.ts'

export interface ShownParts {
  /** A `start-step` was sent. */
  step(): void
  /** A lasting part from this path was sent. */
  add(path: string): void
  /** How to retract this path: nothing to do, one `reset-step`, or impossible. Forgets the path. */
  retract(path: string): 'nothing' | 'step' | 'impossible'
}

export function createShown(): ShownParts {
  return new Spans()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Spans implements ShownParts {
  readonly #spans = new LazyMap<string, { first: number; last: number }>()
  #step = 0

  step(): void {
    this.#step++
  }

  add(path: string): void {
    const span = this.#spans.get(path)
    if (span) span.last = this.#step
    else this.#spans.set(path, { first: this.#step, last: this.#step })
  }

  retract(root: string): 'nothing' | 'step' | 'impossible' {
    let touched = false
    let exact = true
    for (const [path, { first, last }] of this.#spans) {
      if (isUnder(path, root)) {
        touched = true
        if (first < this.#step) exact = false
        this.#spans.delete(path)
      } else if (last === this.#step) exact = false
    }
    if (!touched) return 'nothing'
    return exact ? 'step' : 'impossible'
  }
}
