/**
 * An async generator that can be left while it waits. By itself its `return()` waits behind a `next()` that has no answer
 * yet; here both are answered at once. `left` fires then, for what the generator waits on; nobody waits for how it ends.
 */
export function leavable<T>(
  create: (left: AbortSignal) => AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  const leave = new AbortController()
  const generator = create(leave.signal)
  const next = generator.next.bind(generator)
  const end = generator.return.bind(generator)
  const done = { done: true, value: undefined } as const
  /** Those who called `next()` and have no answer. */
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
