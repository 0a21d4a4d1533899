/** Wakes readers that have read everything and wait for more. A notification wakes each waiting reader once, without polling or queues. */

export interface Notifier {
  wait(key: string, wake: () => void): void
  leave(key: string, wake: () => void): void
  notify(key: string): void
  ringAll(): void
  /** The number of waiting readers: 0 when all have left. */
  readonly waiting: number
}

export function createNotifier(): Notifier {
  // A key stays until its last reader leaves.
  const keys = new Map<string, (() => void)[]>()

  function notify(key: string): void {
    const wakes = keys.get(key)
    // Emptied before waking: a reader without new entries waits again, for the next notification.
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
    notify: notify,
    ringAll() {
      // A copy: a woken reader may leave and return.
      const known = Array.from(keys.keys())
      for (const key of known) notify(key)
    },
    get waiting() {
      let count = 0
      for (const wakes of keys.values()) count += wakes.length
      return count
    },
  }
}
