/** Time that stands still until a test moves it. */
import type { Clock } from '../clock.ts'

export interface TestClock extends Clock {
  advance(ms: number): void
}

export function createTestClock(): TestClock {
  let at = 0
  const waiting = new Set<{ due: number; run: () => void }>()
  return {
    now: () => at,
    after(ms, run) {
      const entry = { due: at + ms, run }
      waiting.add(entry)
      return () => void waiting.delete(entry)
    },
    advance(ms) {
      at += ms
      for (const entry of waiting) {
        if (entry.due > at) continue
        waiting.delete(entry)
        entry.run()
      }
    },
  }
}
