/** Resolves after `ms`, or when the signal aborts; never rejects. `background`: does not keep the process alive. */
export function pause(ms: number, signal?: AbortSignal, { background = false } = {}): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    if (background) timer.unref?.()
    if (signal?.aborted) done()
    else signal?.addEventListener('abort', done, { once: true })
    function done(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
  })
}
