/**
 * Whole streams, one behind the other, as one: producers chain sources while a consumer reads, and the consumer sees their
 * items in the order of the chaining, live.
 *
 * Written by hand instead of as an async generator with `yield*`: a generator's `return()` waits behind a pending
 * `next()`, so that a consumer could not leave while it waits, and sources that nobody has begun would never be closed.
 */
import { MillraceError } from '../part/error.ts'
import { createLine, disposeAll, type Chained, type Link } from './relay/line.ts'
import { toReader, type Chainable, type Read } from './relay/source-reader.ts'

export type { Chained } from './relay/line.ts'
export type { Chainable } from './relay/source-reader.ts'

/** How a relay reads its sources. Without options a source is begun when those before it have ended. */
export interface RelayOptions {
  /**
   * Sources are read as soon as they are chained: slow ones at once take as long as the slowest of them. When one breaks
   * before its turn, those behind it are disposed at once, and those before it are delivered still.
   */
  eager?: boolean
  /** Items of one source that an eager relay holds before its turn. Default 16; at most 64 sources are read ahead at once. */
  highWaterMark?: number
}

/** One sequence out of many sources. All methods may be taken apart from it. */
export interface Relay<T> {
  /**
   * What the consumer reads. It has one consumer: to be iterated a second time throws `already-read`. `next()` may be
   * called before earlier calls are answered. `return()` settles at once, also while the sequence waits: `signal` fires,
   * all sources get `return()` or `cancel()`, and nobody waits for what they do then. An error comes once, then the end.
   * Every 128 items the event loop has a turn, so that sources that never wait keep nobody from it.
   */
  readonly sequence: AsyncGenerator<T, void, void>
  /**
   * Adds a source behind the others, or with `null` the end. The source is the relay's from now on. Throws `bad-source` for
   * what is none, strings among it; the answer never rejects, so it may be ignored.
   */
  chain<R = unknown>(source: Chainable<T, R> | PromiseLike<Chainable<T, R>> | null): Promise<Chained<R>>
  /** No more sources: the sequence ends behind those that were chained. */
  end(): void
  /**
   * The sequence ends with this error behind the sources that were chained; of them none is waited for longer than 300 ms
   * for an item. Also after `end()`, as long as the consumer has not seen the end. The first error counts.
   */
  fail(error: unknown): void
  /** Fires when the sequence ends before its sources do: the consumer has left, or an error came. For what sources wait on. */
  readonly signal: AbortSignal
}

/** ms that a source may keep the consumer waiting once the producer has failed. */
const grace = 300
/** Reads between two turns of the event loop: sources that never wait, and who reads them, would keep all else from it. */
const maxBurst = 128
const afterOthers: (go: () => void) => void = typeof setImmediate === 'function' ? setImmediate : setTimeout

/** Makes a relay. Lazy by default; see `RelayOptions`. Throws `bad-value` for a `highWaterMark` that is no number of items. */
export function createRelay<T>({ eager = false, highWaterMark = 16 }: RelayOptions = {}): Relay<T> {
  if (!Number.isSafeInteger(highWaterMark) || highWaterMark < 1) {
    throw new MillraceError('bad-value', `highWaterMark is a whole number of items, 1 or more, not ${highWaterMark}.`)
  }
  const controller = new AbortController()
  const line = createLine<T>(eager ? highWaterMark : undefined, () => {
    ended = true
  })
  /** Calls of `next()` without an answer. */
  const requests: PromiseWithResolvers<IteratorResult<T, void>>[] = []
  /** Takes no more sources. */
  let ended = false
  /** The consumer has seen the end. */
  let over = false
  let failure: { error: unknown } | undefined
  let patience: ReturnType<typeof setTimeout> | undefined
  let reading = false
  let claimed = false
  let burst = 0

  /** Answers requests as long as that needs no waiting: a loop, so that no number of sources or items grows the stack. */
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

  function onRead(result: Read<T>): void {
    try {
      take(result)
    } catch (error) {
      // `next()` gave no result.
      return onBroke(error)
    }
    pump()
  }

  function take(result: Read<T>): void {
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

  /** After a failure nobody is kept waiting for those before it. */
  function hurry(): void {
    if (failure !== undefined && reading) patience ??= setTimeout(finish, grace, failure)
  }

  function close(failed?: { error: unknown }): void {
    over = ended = true
    stopReading()
    const [first, ...others] = requests.splice(0)
    if (failed === undefined) first?.resolve({ done: true, value: undefined })
    else {
      // Whoever called `next()` may look the other way.
      first?.promise.catch(() => undefined)
      first?.reject(failed.error)
    }
    for (const request of others) request.resolve({ done: true, value: undefined })
  }

  /** Ends the sequence before its sources do. The consumer is answered first: sources may do anything when they are left. */
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
      throw new MillraceError('bad-source', 'A relay cannot be chained in itself: it would wait for itself for ever.')
    }
    const link: Link<T> = { reader: toReader<T>(source), settle: resolve as Link<T>['settle'] }
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
        throw new MillraceError('already-read', 'This sequence has a consumer already: a relay is read once, by one.')
      }
      claimed = true
      return iterator
    },
  }
  return { sequence, chain, end, fail, signal: controller.signal }
}
