/**
 * Concatenates streams into one: producers chain sources while a consumer reads, and the consumer receives the items live, in
 * the order in which the sources were chained.
 *
 * Not an async generator with `yield*`: a generator's `return()` waits for a pending `next()`, so a consumer could not leave
 * while it waits, and sources that were not started would never be closed.
 */
import { MillraceError } from '../part/error.ts'
import { createLine, disposeAll, type Chained, type SourceLink } from './line.ts'
import { toReader, type Chainable, type SourceResult } from './source-reader.ts'

export type { Chained } from './line.ts'
export type { Chainable } from './source-reader.ts'

/** How a relay reads its sources. By default a source is started when those before it have ended. */
export interface RelayOptions {
  /**
   * Read all sources as soon as they are chained: concurrent sources take only as long as the slowest. If one fails before its
   * turn, those after it are disposed at once, and those before it are still delivered.
   */
  eager?: boolean
  /** Items that an eager relay buffers for each source before its turn. Default 16. At most 64 sources are read ahead. */
  highWaterMark?: number
}

/** Many sources as one sequence. The methods can be destructured. */
export interface Relay<T> {
  /**
   * The items. There can be only one consumer: a second iteration throws `already-read`. You can call `next()` before earlier
   * calls have settled. `return()` settles at once, even while the sequence waits: `signal` fires and all sources get
   * `return()` or `cancel()`, which are not awaited. An error is thrown once, then the sequence ends. Every 128 items the
   * sequence yields to the event loop, so sources that never wait do not block it.
   */
  readonly sequence: AsyncGenerator<T, void, void>
  /**
   * Appends a source, or ends the sequence with `null`. From then on the relay owns the source. Throws `bad-source` for anything
   * else, including strings. The promise never rejects, so you can ignore it.
   */
  chain<R = unknown>(source: Chainable<T, R> | PromiseLike<Chainable<T, R>> | null): Promise<Chained<R>>
  /** Accepts no more sources: the sequence ends after those that were chained. */
  end(): void
  /**
   * Ends the sequence with this error after the chained sources. From then on it waits at most 300 ms for each item. Also works
   * after `end()` until the consumer has reached the end. Only the first error counts.
   */
  fail(error: unknown): void
  /** Aborts if the sequence ends before its sources do: the consumer left, or an error occurred. Pass it to pending work. */
  readonly signal: AbortSignal
}

/** ms that a source may keep the consumer waiting after the producer has failed. */
const grace = 300
/** Reads before the relay yields to the event loop. Sources that never wait would block it otherwise. */
const maxBurst = 128
const afterOthers: (go: () => void) => void = typeof setImmediate === 'function' ? setImmediate : setTimeout

/** Creates a relay, lazy by default. Throws `bad-value` if `highWaterMark` is not a whole number of at least 1. */
export function createRelay<T>({ eager = false, highWaterMark = 16 }: RelayOptions = {}): Relay<T> {
  if (!Number.isSafeInteger(highWaterMark) || highWaterMark < 1) {
    throw new MillraceError('bad-value', `highWaterMark must be a whole number of at least 1, not ${highWaterMark}.`)
  }
  const controller = new AbortController()
  const line = createLine<T>(eager ? highWaterMark : undefined, () => {
    ended = true
  })
  /** Calls of `next()` that have not settled. */
  const requests: PromiseWithResolvers<IteratorResult<T, void>>[] = []
  /** Accepts no more sources. */
  let ended = false
  /** The consumer has reached the end. */
  let over = false
  let failure: { error: unknown } | undefined
  let patience: ReturnType<typeof setTimeout> | undefined
  let reading = false
  let claimed = false
  let burst = 0

  /** Serves requests until it must wait. A loop, so that the stack does not grow with the number of sources or items. */
  function pump(): void {
    while (!over && !reading && requests.length > 0) {
      const reader = line.first()
      if (reader === undefined) {
        if (failure !== undefined) finish(failure)
        else if (ended) close()
        return
      }
      reading = true
      if (++burst > maxBurst) {
        burst = 0
        afterOthers(() => {
          reading = false
          pump()
        })
        return
      }
      try {
        const result = reader.next()
        if (result instanceof Promise) {
          hurry()
          result.then(onRead, onBroke)
          return
        }
        take(result)
      } catch (error) {
        onBroke(error)
      }
    }
  }

  function onRead(result: SourceResult<T>): void {
    try {
      take(result)
    } catch (error) {
      // `next()` returned no result object.
      return onBroke(error)
    }
    pump()
  }

  function take(result: SourceResult<T>): void {
    if (over) return
    const { done, value } = result
    stopReading()
    if (done) line.shift({ value })
    else requests.shift()!.resolve({ done, value })
  }

  function onBroke(error: unknown): void {
    if (over) return
    line.shift({ error })
    finish({ error })
  }

  function stopReading(): void {
    reading = false
    clearTimeout(patience)
    patience = undefined
  }

  /** After a failure, limits the wait for the sources before it. */
  function hurry(): void {
    if (failure !== undefined && reading) patience ??= setTimeout(finish, grace, failure)
  }

  function close(failed?: { error: unknown }): void {
    over = ended = true
    stopReading()
    const [first, ...others] = requests.splice(0)
    if (failed === undefined) first?.resolve({ done: true, value: undefined })
    else {
      // The caller of `next()` may ignore the rejection.
      first?.promise.catch(() => undefined)
      first?.reject(failed.error)
    }
    for (const request of others) request.resolve({ done: true, value: undefined })
  }

  /** Ends the sequence before its sources do. Settles the consumer's calls first: closing a source may run any code. */
  function finish(failed?: { error: unknown }, reason: unknown = failed?.error): void {
    if (over) return
    close(failed)
    controller.abort(reason)
    line.clear()
  }

  function chain<R>(source: Chainable<T, R> | PromiseLike<Chainable<T, R>> | null): Promise<Chained<R>> {
    const { promise, resolve } = Promise.withResolvers<Chained<R>>()
    if (source === null) {
      resolve(ended ? { accepted: false } : { accepted: true, value: undefined as R })
      end()
      return promise
    }
    if (source === sequence || source === iterator) {
      throw new MillraceError('bad-source', 'A relay cannot be chained to itself: it would wait forever.')
    }
    const link: SourceLink<T> = { reader: toReader<T>(source), settle: resolve as SourceLink<T>['settle'] }
    if (ended) {
      disposeAll(link)
      return promise
    }
    line.add(link)
    pump()
    return promise
  }

  function end(): void {
    ended = true
    pump()
  }

  function fail(error: unknown): void {
    if (over) return
    failure ??= { error }
    hurry()
    end()
  }

  const iterator: AsyncGenerator<T, void, void> = {
    next() {
      if (over) return Promise.resolve({ done: true, value: undefined })
      const request = Promise.withResolvers<IteratorResult<T, void>>()
      requests.push(request)
      pump()
      return request.promise
    },
    async return(value) {
      finish()
      return { done: true, value: await value }
    },
    throw(error) {
      finish(undefined, error)
      const thrown = Promise.reject(error)
      thrown.catch(() => undefined)
      return thrown
    },
    async [Symbol.asyncDispose]() {
      finish()
    },
    [Symbol.asyncIterator]: () => iterator,
  }
  const sequence: AsyncGenerator<T, void, void> = {
    ...iterator,
    [Symbol.asyncIterator]() {
      if (claimed) {
        throw new MillraceError('already-read', 'This sequence already has a consumer. A relay can be read only once.')
      }
      claimed = true
      return iterator
    },
  }
  return { sequence, chain, end, fail, signal: controller.signal }
}
