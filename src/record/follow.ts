/**
 * Replay, then live: an iterable over something that is pulled until nothing is left and then rings a bell. Only whoever
 * brings a signal waits: a reader without one could never be ended.
 *
 * Written by hand instead of as an async generator, because a generator's `return()` waits behind a pending `next()`:
 * a reader that leaves while it waits would be held until the next append.
 */
import type { Bell } from './bell.ts'

/**
 * `last`: nothing will follow. `stored`: it was fetched in bulk, so the next pull lets other work go first: a consumer
 * that never really waits would otherwise hold the event loop for a whole replay.
 */
export type Pulled<T> = { value: T; last?: boolean; stored?: boolean } | 'wait' | 'end'

/** One reader: `pull` advances its own position; `leave` is called once, when it wants nothing more. */
export interface Puller<T> {
  pull(): Pulled<T>
  leave?(): void
}

export interface Following<T> {
  /** Makes one reader. */
  start: () => Puller<T>
  bell: Bell
  key: string
  /** Ends the iteration without throwing. Without one nothing is waited for: it ends with what there is. */
  signal?: AbortSignal | undefined
  /** Runs a callback once other work had its turn. */
  pause: (go: () => void) => void
}

export function follow<T>(following: Following<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => createCursor(following) }
}

function createCursor<T>({ start, bell, key, signal, pause }: Following<T>): AsyncIterator<T, undefined> {
  const reader = start()
  const done = { value: undefined, done: true } as const
  let pending: PromiseWithResolvers<IteratorResult<T, undefined>> | undefined
  let opened = false
  let ended = false
  let rested = true

  function finish(): void {
    if (!ended) reader.leave?.()
    ended = true
    bell.leave(key, attempt)
    signal?.removeEventListener('abort', finish)
    pending?.resolve(done)
    pending = undefined
  }

  function attempt(): void {
    if (!pending) return
    const { resolve, reject } = pending
    try {
      const pulled = reader.pull()
      if (pulled === 'end') return finish()
      if (pulled === 'wait') return signal ? bell.wait(key, attempt) : finish()
      pending = undefined
      rested = pulled.stored !== true
      if (pulled.last) finish()
      resolve({ value: pulled.value, done: false })
    } catch (error) {
      pending = undefined
      finish()
      reject(error)
    }
  }

  function next(): Promise<IteratorResult<T, undefined>> {
    if (pending) return pending.promise.then(next)
    if (!opened) {
      opened = true
      signal?.addEventListener('abort', finish)
    }
    if (signal?.aborted) finish()
    if (ended) return Promise.resolve(done)
    pending = Promise.withResolvers()
    const { promise } = pending
    if (rested) attempt()
    else pause(attempt)
    return promise
  }

  return {
    next,
    return() {
      finish()
      return Promise.resolve(done)
    },
  }
}
