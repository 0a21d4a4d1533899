/** Calls back at moments, also those that are further away than a timer reaches. */

export interface Expiry {
  /** `moment`: epoch ms. Returns a function that stops waiting. */
  at(moment: number, over: () => void): () => void
  close(): void
}

/** Timers of longer delays fire at once. */
const longest = 2 ** 31 - 1

export function createExpiry(now: () => number): Expiry {
  const timers = new Set<ReturnType<typeof setTimeout>>()

  return {
    at(moment, over) {
      let timer: ReturnType<typeof setTimeout>
      const wait = () => {
        const rest = moment - now()
        timer = setTimeout(
          () => {
            timers.delete(timer)
            if (moment > now()) wait()
            else over()
          },
          Math.min(Math.max(rest, 0), longest),
        )
        timer.unref?.()
        timers.add(timer)
      }
      wait()
      return () => {
        clearTimeout(timer)
        timers.delete(timer)
      }
    },
    close() {
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
