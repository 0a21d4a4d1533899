/** Limits the work of validating a value. */
import { fullBudget, type PatternBudget } from '../pattern/pattern.ts'

export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork'
}

export interface Work {
  /** Call around the check of each schema. Throws {@link TooMuchWork}. */
  enter(): void
  leave(): void
  spend(amount: number): void
  readonly patterns: PatternBudget
}

const mostSteps = 500_000
/** A value may be 256 levels deep, and each level may need a reference, an alternative and an object schema. */
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
