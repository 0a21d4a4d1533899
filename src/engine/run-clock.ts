/** A runtime's source of time. */
export interface Clock {
  /** Epoch ms. May jump, such as when the system clock is set. */
  wall(): number
  /** ms since an arbitrary moment. Never jumps. Values of different processes cannot be compared. */
  steady(): number
}

/**
 * The time of a run's entries, in epoch ms. For each owner it starts at the wall clock, but never before the last entry, and
 * advances with the steady clock. So when the wall clock is set, entries stay in order, no duration is negative, and no
 * time limit expires early.
 */
export function createRunClock({ wall, steady }: Clock, lastTimestamp: number): () => number {
  const offset = Math.max(lastTimestamp, wall()) - steady()
  return () => Math.floor(offset + steady())
}
