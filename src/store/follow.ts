/**
 * Replay, then live: an iterable that pulls stored values until none are left, and then waits for the bell. Only readers with
 * a signal wait: one without a signal could never be stopped.
 *
 * Not an async generator, because a generator's `return()` waits for a pending `next()`: a waiting reader could not stop
 * before the next append.
 */
import type { Bell } from './bell.ts'

/**
 * `last`: nothing follows. `stored`: fetched in bulk, so the next pull yields to the event loop first: a consumer that never
 * really waits would otherwise block it for the whole replay. `again`: there was nothing for this reader here; pull once more after
 * other work has had its turn.
 */
export type Pulled<T> = { value: T; last?: boolean; stored?: boolean } | 'again' | 'wait' | 'end'

/**
 * One reader: `pull` advances its position; `leave` is called once, when it stops. A pull that must ask somebody gives a promise,
 * which never says `wait`: what rang meanwhile would be missed. It says `again`, and the next pull looks at once.
 */
export interface Puller<T> {
  pull(): Pulled<T> | Promise<Exclude<Pulled<T>, 'wait'>>
  leave?(): void
}

export interface Following<T> {
  /** Creates a reader. */
  start: () => Puller<T>
  bell: Bell
  key: string
  /** Ends the iteration without throwing when it aborts. Without a signal, the iteration ends with the values stored so far. */
  signal?: AbortSignal | undefined
  /** Calls back after other work has had its turn. */
  pause: (go: () => void) => void
}

export function follow<T>(following: Following<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => createCursor(following) }
}

/** Opens readers of a store in memory: those that are open end when it is closed. */
export function createCursors(isClosed: () => boolean, pause: Following<unknown>['pause']) {
  return function open<T>(
    bell: Bell,
    key: string,
    signal: AbortSignal | undefined,
    start: () => Puller<T>,
  ): AsyncIterable<T> {
    const guarded = (): Puller<T> => {
      const { pull } = start()
      return { pull: () => (isClosed() ? 'end' : pull()) }
    }
    return follow({ start: guarded, bell, key, signal, pause })
  }
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
    try {
      const pulled = reader.pull()
      if (pulled instanceof Promise) pulled.then(settle, fail)
      else settle(pulled)
    } catch (error) {
      fail(error)
    }
  }

  function settle(pulled: Pulled<T>): void {
    // It has ended while it asked.
    if (!pending) return
    if (pulled === 'end') return finish()
    if (pulled === 'again') return pause(attempt)
    if (pulled === 'wait') return signal ? bell.wait(key, attempt) : finish()
    const { resolve } = pending
    pending = undefined
    rested = pulled.stored !== true
    if (pulled.last) finish()
    resolve({ value: pulled.value, done: false })
  }

  function fail(error: unknown): void {
    if (!pending) return
    const { reject } = pending
    pending = undefined
    finish()
    reject(error)
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
