/** ms that work gets to settle by itself once its signal has fired. */
export const grace = 300

/** The work's own end, or `signal.reason` a while after the signal: code that ignores a stop must not hold up the run. */
export async function settledBy<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = Promise.withResolvers<never>()
  const stop = () => {
    timer = setTimeout(() => late.reject(signal.reason), grace)
  }
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  // Once nobody waits any more a late failure concerns no one.
  work.catch(() => undefined)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}
