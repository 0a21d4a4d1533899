/** How much a comparison of a value with its schema may cost. */
import { fullBudget, type PatternBudget } from '../../pipeline/pattern/pattern.ts'

export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork'
}

export interface Work {
  /** Into a schema, and out of it again. Throws {@link TooMuchWork}. */
  enter(): void
  leave(): void
  spend(amount: number): void
  readonly patterns: PatternBudget
}

const mostSteps = 500_000
/** A value may be 256 levels deep, and each level a reference, a choice and a shape. */
const deepest = 1000

export function createWork(): Work {
  let left = mostSteps
  let depth = 0
  const spend = (amount: number) => {
    left -= amount
    if (left < 0) throw new TooMuchWork('The comparison takes too many steps.')
  }
  return {
    enter() {
      spend(1)
      depth += 1
      if (depth > deepest) throw new TooMuchWork('The schema or the value is nested too deeply.')
    },
    leave() {
      depth -= 1
    },
    spend,
    patterns: { left: fullBudget },
  }
}
