import type { BranchCounter } from './branch-counter.ts'

/**
 * The point at which a run is released to its next owner: before a step whose start is not recorded yet. Started steps continue to their end, so
 * that the next owner has nothing to reset.
 */
export interface Gate {
  /**
   * Undefined: continue. Otherwise a promise that rejects when the run is released. Call it before a new step, and await it only if it is defined.
   */
  pass(): Promise<never> | undefined
  /** Whether a branch waits here. */
  holds(): boolean
  /** Unwinds the waiting branches. */
  rejectAll(reason: () => unknown): void
}

/** `isLeaving`: whether to release the run. */
export function createGate(isLeaving: () => boolean, branches: () => Pick<BranchCounter, 'block'>): Gate {
  let held: PromiseWithResolvers<never> | undefined
  return {
    pass() {
      if (!isLeaving()) return undefined
      held ??= Promise.withResolvers()
      branches().block()
      return held.promise
    },
    holds: () => held !== undefined,
    rejectAll(reason) {
      held?.reject(reason())
    },
  }
}
