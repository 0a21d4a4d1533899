/** Some ms, or until the signal fires; it never rejects. `background`: no process stays alive for it. */
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
