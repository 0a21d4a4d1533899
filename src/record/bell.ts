/**
 * Who waits for what: readers of a run that have read all there is. Ringing wakes them once; nobody polls and nothing is
 * queued for anybody.
 */
export interface Bell {
  wait(key: string, wake: () => void): void
  leave(key: string, wake: () => void): void
  ring(key: string): void
  ringAll(): void
  /** How many wait now: 0 when every reader has left. */
  readonly waiting: number
}

export function createBell(): Bell {
  const keys = new Map<string, Set<() => void>>()

  function ring(key: string): void {
    const wakes = keys.get(key)
    if (!wakes) return
    // Before waking: whoever finds nothing waits again, for the next ring.
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
      // A copy: a key that is waited for again must not be rung twice.
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
