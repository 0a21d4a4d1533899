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
  return new Followed(following)
}

/** A class, because a literal with a computed key or a getter takes V8's slow path, and there are several for each run. */
class Followed<T> implements AsyncIterable<T> {
  readonly #following: Following<T>

  constructor(following: Following<T>) {
    this.#following = following
  }

  [Symbol.asyncIterator](): Cursor<T> {
    return new Cursor(this.#following)
  }
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

const done = { value: undefined, done: true } as const

/** A class, because its functions would cost each reader more than what it knows. */
class Cursor<T> implements AsyncIterator<T, undefined> {
  readonly #following: Following<T>
  readonly #reader: Puller<T>
  #pending: PromiseWithResolvers<IteratorResult<T, undefined>> | undefined = undefined
  #opened = false
  #ended = false
  #rested = true

  constructor(following: Following<T>) {
    this.#following = following
    this.#reader = following.start()
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#pending) return this.#pending.promise.then(() => this.next())
    const { signal, pause } = this.#following
    if (!this.#opened) {
      this.#opened = true
      signal?.addEventListener('abort', this.#finish)
    }
    if (signal?.aborted) this.#finish()
    if (this.#ended) return Promise.resolve(done)
    this.#pending = Promise.withResolvers()
    const { promise } = this.#pending
    if (this.#rested) this.#attempt()
    else pause(this.#attempt)
    return promise
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#finish()
    return Promise.resolve(done)
  }

  /** Also the listener of the signal. An object as a listener would keep itself alive after its time: see decisions/0028. */
  readonly #finish = (): void => {
    const { bell, key, signal } = this.#following
    if (!this.#ended) this.#reader.leave?.()
    this.#ended = true
    bell.leave(key, this.#attempt)
    signal?.removeEventListener('abort', this.#finish)
    this.#pending?.resolve(done)
    this.#pending = undefined
  }

  readonly #attempt = (): void => {
    if (!this.#pending) return
    try {
      const pulled = this.#reader.pull()
      if (pulled instanceof Promise) {
        pulled.then(
          (value) => this.#settle(value),
          (error: unknown) => this.#fail(error),
        )
      } else this.#settle(pulled)
    } catch (error) {
      this.#fail(error)
    }
  }

  #settle(pulled: Pulled<T>): void {
    // It has ended while it asked.
    if (!this.#pending) return
    const { bell, key, signal, pause } = this.#following
    if (pulled === 'end') return this.#finish()
    if (pulled === 'again') return pause(this.#attempt)
    if (pulled === 'wait') return signal ? bell.wait(key, this.#attempt) : this.#finish()
    const { resolve } = this.#pending
    this.#pending = undefined
    this.#rested = pulled.stored !== true
    if (pulled.last) this.#finish()
    resolve({ value: pulled.value, done: false })
  }

  #fail(error: unknown): void {
    if (!this.#pending) return
    const { reject } = this.#pending
    this.#pending = undefined
    this.#finish()
    reject(error)
  }
}
