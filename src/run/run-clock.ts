/** Where a runtime gets its time from. */
export interface Clock {
  /** Epoch ms. It jumps when somebody sets the clock. */
  wall(): number
  /** ms since any moment. It never jumps, and says nothing about another process. */
  steady(): number
}

export const systemClock: Clock = { wall: () => Date.now(), steady: () => performance.now() }

/**
 * The time of a run's entries, in epoch ms. For each owner it starts at the wall clock, but never before the last entry, and
 * advances with the steady clock. So when the wall clock is set, entries stay in order, no duration is negative, and no
 * time limit fires early.
 */
export function createRunClock({ wall, steady }: Clock, lastTimestamp: number): () => number {
  const offset = Math.max(lastTimestamp, wall()) - steady()
  return () => Math.floor(offset + steady())
}
