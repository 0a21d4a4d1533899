/** ms that work has to settle after its signal has aborted. */
export const grace = 300

/** Calls `over` `ms` after the signal aborts. Call the returned function to cancel: a pending timer keeps the process alive. */
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

/** Settles like the work, or rejects with `signal.reason` after the grace period if the work ignores its signal. */
export async function settledBy<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const release = afterGrace(signal, () => late.reject(signal.reason))
  // A failure after that is ignored.
  work.catch(() => undefined)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    release()
  }
}
