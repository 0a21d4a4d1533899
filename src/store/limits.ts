/** Limits within one process: for stores that no other process shares while it serves. */
import type { Limits } from '../part/limits.ts'

/** Number of keys above which idle ones are removed. */
const many = 1000

/** Rates are kept by GCRA: one number per key. `now`: ms of a steady clock. */
export function createLimits(now: () => number = () => performance.now()): Limits {
  /** When a key would have used up its amount at a steady rate. */
  const usedUntil = new Map<string, number>()
  const places = new Map<string, number>()
  let mostKeys = many

  function forgetIdle(at: number): void {
    for (const [key, until] of usedUntil) if (until <= at) usedUntil.delete(key)
    mostKeys = Math.max(many, 2 * usedUntil.size)
  }

  return {
    async take(key, { count, perMs }) {
      const gap = perMs / count
      const at = now()
      const from = Math.max(usedUntil.get(key) ?? at, at)
      const wait = from + gap - perMs - at
      // With a tolerance, because the sums of fractions are not exact.
      if (wait > 1e-3) return wait
      usedUntil.set(key, from + gap)
      if (usedUntil.size > mostKeys) forgetIdle(at)
      return 0
    },

    async occupy(key, most) {
      const taken = places.get(key) ?? 0
      if (taken >= most) return undefined
      places.set(key, taken + 1)
      let isLeft = false
      return {
        leave() {
          if (isLeft) return
          isLeft = true
          const left = places.get(key)! - 1
          if (left > 0) places.set(key, left)
          else places.delete(key)
        },
      }
    },
  }
}
