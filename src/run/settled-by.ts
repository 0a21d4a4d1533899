/** ms that work gets to settle by itself once its signal has fired. */
export const grace = 300

/** `over` resolves a while after the signal. `release` it once nobody waits: a timer that is left holds its process. */
export function afterGrace(signal: AbortSignal, ms = grace): { over: Promise<void>; release(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const begin = () => {
    timer = setTimeout(resolve, ms)
  }
  if (signal.aborted) begin()
  else signal.addEventListener('abort', begin, { once: true })
  return {
    over,
    release() {
      clearTimeout(timer)
      signal.removeEventListener('abort', begin)
    },
  }
}

/** The work's own end, or `signal.reason` a while after the signal: code that ignores a stop must not hold up the run. */
export async function settledBy<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { over, release } = afterGrace(signal)
  const late = over.then((): never => {
    throw signal.reason
  })
  // Once nobody waits any more a late failure concerns no one.
  work.catch(() => undefined)
  try {
    return await Promise.race([work, late])
  } finally {
    release()
  }
}
