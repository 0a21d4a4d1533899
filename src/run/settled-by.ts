/** ms that work gets to settle by itself once its signal has fired. */
export const grace = 300

/** Calls a while after the signal. Call what it gives once nobody waits: a timer that is left holds its process. */
export function afterGrace(signal: AbortSignal, over: () => void, ms = grace): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const begin = () => {
    timer = setTimeout(over, ms)
  }
  if (signal.aborted) begin()
  else signal.addEventListener('abort', begin, { once: true })
  return () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', begin)
  }
}

/** The work's own end, or `signal.reason` a while after the signal: code that ignores a stop must not hold up the run. */
export async function settledBy<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const release = afterGrace(signal, () => late.reject(signal.reason))
  // Once nobody waits any more a late failure concerns no one.
  work.catch(() => undefined)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    release()
  }
}
