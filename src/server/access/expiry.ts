/** Calls back at moments, also those that are further away than a timer reaches. */
import { startTimer, type StartTimer } from './timer.ts'

export interface Expiry {
  /** `moment`: epoch ms. Returns a function that stops waiting. */
  at(moment: number, over: () => void): () => void
  close(): void
}

/** Timers of longer delays fire at once. */
const longest = 2 ** 31 - 1

export function createExpiry(now: () => number, start: StartTimer = startTimer): Expiry {
  const running = new Set<() => void>()

  return {
    at(moment, over) {
      let stop = () => undefined as void
      const wait = () => {
        const end = start(Math.min(Math.max(moment - now(), 0), longest), () => {
          running.delete(stop)
          if (moment > now()) wait()
          else over()
        })
        stop = () => {
          running.delete(stop)
          end()
        }
        running.add(stop)
      }
      wait()
      return () => stop()
    },
    close() {
      for (const stop of running) stop()
    },
  }
}
