/**
 * An async generator that can be closed while it waits. The `return()` of a plain generator waits for a pending `next()`; here
 * both resolve immediately. The signal `left` then aborts what the generator waits for; errors after that are ignored.
 */
export function leavable<T>(
  create: (left: AbortSignal) => AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  const leave = new AbortController()
  const generator = create(leave.signal)
  const next = generator.next.bind(generator)
  const end = generator.return.bind(generator)
  const done = { done: true, value: undefined } as const
  /** The pending `next()` calls. */
  const waiting = new Set<(result: IteratorResult<T, void>) => void>()

  return Object.assign(generator, {
    next(): Promise<IteratorResult<T, void>> {
      if (leave.signal.aborted) return Promise.resolve(done)
      return new Promise((resolve, reject) => {
        waiting.add(resolve)
        next().then(
          (result) => {
            waiting.delete(resolve)
            resolve(result)
          },
          (error: unknown) => {
            waiting.delete(resolve)
            reject(error as Error)
          },
        )
      })
    },
    return(): Promise<IteratorResult<T, void>> {
      leave.abort()
      for (const resolve of waiting) resolve(done)
      end().catch(() => undefined)
      return Promise.resolve(done)
    },
  })
}
