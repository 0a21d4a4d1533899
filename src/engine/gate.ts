/**
 * Where a run is left for its next owner: before a step whose start is not recorded yet. What has begun goes on to its end, so that
 * the next owner has nothing to reset.
 */
import type { Strands } from './strands.ts'

export interface Gate {
  /** Undefined: go on. Otherwise a promise that rejects when the run was left. Call it before a new step, and do not wait without need. */
  pass(): Promise<never> | undefined
  /** Whether a branch waits here. */
  holds(): boolean
  /** Unwinds the branches that wait. */
  rejectAll(reason: () => unknown): void
}

/** `isLeaving`: whether the run is to be left. */
export function createGate(isLeaving: () => boolean, strands: () => Pick<Strands, 'park'>): Gate {
  let held: PromiseWithResolvers<never> | undefined
  return {
    pass() {
      if (!isLeaving()) return undefined
      held ??= Promise.withResolvers()
      strands().park()
      return held.promise
    },
    holds: () => held !== undefined,
    rejectAll(reason) {
      held?.reject(reason())
    },
  }
}
