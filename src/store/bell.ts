/**
 * Wakes readers that have read everything and wait for more. A ring wakes each waiting reader once, without polling or
 * queues.
 */
export interface Bell {
  wait(key: string, wake: () => void): void
  leave(key: string, wake: () => void): void
  ring(key: string): void
  ringAll(): void
  /** The number of waiting readers: 0 when all have left. */
  readonly waiting: number
}

export function createBell(): Bell {
  const keys = new Map<string, Set<() => void>>()

  function ring(key: string): void {
    const wakes = keys.get(key)
    if (!wakes) return
    // Delete before waking: a reader that finds nothing waits again, for the next ring.
    keys.delete(key)
    for (const wake of wakes) wake()
  }

  return {
    wait(key, wake) {
      const wakes = keys.get(key)
      if (wakes) wakes.add(wake)
      else keys.set(key, new Set([wake]))
    },
    leave(key, wake) {
      const wakes = keys.get(key)
      if (wakes?.delete(wake) && wakes.size === 0) keys.delete(key)
    },
    ring,
    ringAll() {
      // A copy, so that a key on which a reader waits again is not rung twice.
      const waiting = [...keys.keys()]
      for (const key of waiting) ring(key)
    },
    get waiting() {
      let count = 0
      for (const wakes of keys.values()) count += wakes.size
      return count
    },
  }
}
