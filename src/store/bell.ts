/**
 * Wakes readers that have read everything and wait for more. A ring wakes each waiting reader once, without polling or
 * queues.
 */
import { LeanMap } from '../async/lean-map.ts'
export interface Bell {
  wait(key: string, wake: () => void): void
  leave(key: string, wake: () => void): void
  ring(key: string): void
  ringAll(): void
  /** The number of waiting readers: 0 when all have left. */
  readonly waiting: number
}

export function createBell(): Bell {
  // A key stays until its last reader leaves. Set and deleted with each ring, the map would be built anew again and again, and each of
  // its old tables keeps the next from the garbage collector.
  const keys = new LeanMap<(() => void)[]>()

  function ring(key: string): void {
    const wakes = keys.get(key)
    // Emptied before waking: a reader that finds nothing waits again, for the next ring.
    if (wakes?.length === 1) wakes.pop()!()
    else if (wakes !== undefined) for (const wake of wakes.splice(0)) wake()
  }

  return {
    wait(key, wake) {
      const wakes = keys.get(key)
      if (wakes === undefined) keys.set(key, [wake])
      else wakes.push(wake)
    },
    leave(key, wake) {
      const wakes = keys.get(key)
      if (wakes === undefined) return
      const at = wakes.indexOf(wake)
      if (at >= 0) wakes.splice(at, 1)
      if (wakes.length === 0) keys.delete(key)
    },
    ring,
    ringAll() {
      // A copy: a reader that wakes may leave and come back.
      const known = Array.from(keys.keys())
      for (const key of known) ring(key)
    },
    get waiting() {
      let count = 0
      for (const wakes of keys.values()) count += wakes.length
      return count
    },
  }
}
