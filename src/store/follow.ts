/**
 * Replay, then live: an iterable that pulls stored values until none are left, and then waits for a notification. Only readers with a signal wait:
 * one without a signal could never be stopped.
 *
 * Not an async generator, because a generator's `return()` waits for a pending `next()`: a waiting reader could not stop before the next append.
 */
import type { LogCursor, ReadOptions, Change, InboxMessage } from '../part/log.ts'
import type { Notifier } from './notifier.ts'
import type { Entry } from '../part/entry.ts'
import { isUnder } from '../part/path.ts'

/**
 * `last`: the final value. `stored`: fetched in bulk, so the next pull yields to the event loop first: a consumer that never really waits would
 * otherwise block it for the whole replay. `again`: no value for this reader; pull again after other work.
 */
export type Pulled<T> = { value: T; last?: boolean; stored?: boolean } | 'again' | 'wait' | 'end'

/**
 * One reader: `pull` advances its position; `leave` is called once, when it stops. An asynchronous pull returns a promise, which never resolves
 * with `wait`: a notification during the pull would be missed. It resolves with `again`, and the next pull checks at once.
 */
export interface Puller<T> {
  pull(): Pulled<T> | Promise<Exclude<Pulled<T>, 'wait'>>
  leave?(): void
}

export interface Following<T> {
  /** Creates a reader. */
  start: () => Puller<T>
  bell: Notifier
  key: string
  /** Ends the iteration without throwing when it aborts. Without a signal, the iteration ends with the values stored so far. */
  signal?: AbortSignal | undefined
  /** Calls back after other work. */
  pause: (go: () => void) => void
}

export function follow<T>(following: Following<T>): AsyncIterable<T> {
  return new FollowedEntries(following)
}

/** A class: literals with a computed key or a getter are slow in V8 (decisions/0028). */
class FollowedEntries<T> implements AsyncIterable<T> {
  readonly #following: Following<T>

  constructor(following: Following<T>) {
    this.#following = following
  }

  [Symbol.asyncIterator](): Cursor<T> {
    return new Cursor(this.#following)
  }
}

/** Opens readers of a store in memory: they end when it is closed. */
export function createCursors(isClosed: () => boolean, pause: Following<unknown>['pause']) {
  return function open<T>(
    bell: Notifier,
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

type Result<T> = IteratorResult<T, undefined>

const done = { value: undefined, done: true } as const
const soon = Promise.resolve()
const ignore = (): void => undefined

/** A class, not closures: one for each open stream (decisions/0028). */
class Cursor<T> implements LogCursor<T> {
  readonly #following: Following<T>
  readonly #reader: Puller<T>
  #opened = false
  #ended = false
  #rested = true
  #isPending = false
  /** The promise of `next`. `take` needs none: see `part/log.ts`. */
  #promise: Promise<Result<T>> | undefined = undefined
  #onResult: (result: Result<T>) => void = ignore
  #onError: (error: unknown) => void = ignore
  /** The result that `take` is about to deliver. */
  #result: Result<T> = done

  constructor(following: Following<T>) {
    this.#following = following
    this.#reader = following.start()
  }

  next(): Promise<Result<T>> {
    if (this.#isPending) return this.#promise!.then(() => this.next())
    const { promise, resolve, reject } = Promise.withResolvers<Result<T>>()
    this.#promise = promise
    this.#ask(resolve, reject)
    return promise
  }

  take(onResult: (result: Result<T>) => void, onError: (error: unknown) => void): void {
    this.#ask(onResult, onError)
  }

  #ask(onResult: (result: Result<T>) => void, onError: (error: unknown) => void): void {
    const { signal, pause } = this.#following
    this.#onResult = onResult
    this.#onError = onError
    this.#isPending = true
    if (!this.#opened) {
      this.#opened = true
      signal?.addEventListener('abort', this.#finish)
    }
    if (this.#ended || signal?.aborted === true) this.#finish()
    else if (this.#rested) this.#attempt()
    else pause(this.#attempt)
  }

  return(): Promise<Result<T>> {
    this.#finish()
    return Promise.resolve(done)
  }

  /** Also the signal's listener. An object as a listener would outlive its use: see decisions/0028. */
  readonly #finish = (): void => {
    const { bell, key, signal } = this.#following
    if (!this.#ended) this.#reader.leave?.()
    this.#ended = true
    bell.leave(key, this.#attempt)
    signal?.removeEventListener('abort', this.#finish)
    if (this.#isPending) this.#give(done)
  }

  readonly #attempt = (): void => {
    if (!this.#isPending) return
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
    // The reader ended during the pull.
    if (!this.#isPending) return
    const { bell, key, signal, pause } = this.#following
    if (pulled === 'end') return this.#finish()
    if (pulled === 'again') return pause(this.#attempt)
    if (pulled === 'wait') return signal ? bell.wait(key, this.#attempt) : this.#finish()
    this.#isPending = false
    this.#rested = pulled.stored !== true
    if (pulled.last) this.#finish()
    this.#give({ value: pulled.value, done: false })
  }

  #give(result: Result<T>): void {
    this.#isPending = false
    const resolve = this.#onResult
    if (this.#leavePromise()) return resolve(result)
    this.#result = result
    void soon.then(this.#tell)
  }

  readonly #tell = (): void => {
    const result = this.#result
    this.#result = done
    this.#onResult(result)
  }

  #fail(error: unknown): void {
    if (!this.#isPending) return
    this.#isPending = false
    this.#finish()
    const reject = this.#onError
    if (this.#leavePromise()) reject(error)
    else void soon.then(() => reject(error))
  }

  /** Whether `next` is pending, and not `take`. Drops its promise, which would retain the last value until the next call. */
  #leavePromise(): boolean {
    if (this.#promise === undefined) return false
    this.#promise = undefined
    this.#onResult = this.#onError = ignore
    return true
  }
}

/* Narrows a reader of a run's entries to the options of `read`. */

/** Applies all options but `after` to a reader that starts after it. Without them it is the reader itself. */
export function selectEntries(reader: Puller<Entry[]>, { before, limit, step, types }: ReadOptions): Puller<Entry[]> {
  if (before === undefined && limit === undefined && step === undefined && types === undefined) return reader
  const end = before ?? Infinity
  let left = limit ?? Infinity
  let done = left <= 0

  type Narrowed = Exclude<Pulled<Entry[]>, 'wait'>
  function narrow<P extends Pulled<Entry[]>>(pulled: P): Narrowed | Extract<P, 'wait'>
  function narrow(pulled: Pulled<Entry[]>): Pulled<Entry[]> {
    if (typeof pulled === 'string') return pulled
    let { value } = pulled
    const last = value.at(-1)!.seq
    done = pulled.last === true || last >= end - 1
    if (last >= end) value = value.filter(({ seq }) => seq < end)
    if (types !== undefined) value = value.filter(({ type }) => types.includes(type))
    if (step !== undefined) value = value.filter((entry) => isUnder(entry.step, step))
    if (value.length > left) value = value.slice(0, left)
    left -= value.length
    done ||= left === 0
    if (value.length === 0) return done ? 'end' : 'again'
    return { ...pulled, value, last: done }
  }

  return {
    ...reader,
    pull() {
      if (done) return 'end'
      const pulled = reader.pull()
      return pulled instanceof Promise ? pulled.then(narrow) : narrow(pulled)
    },
  }
}

/* Readers of runs, of inboxes and of changes, for `follow`. */

/** Some entries of a run, with its position and state. */
interface EntryPage {
  entries: Entry[]
  /** 0 for a run without entries. */
  lastSeq: number
  hasEnded: boolean
}

/** `next` returns a page of entries after this `seq`, in the reader's own array. */
export function readEntries(options: ReadOptions, next: (seq: number) => EntryPage): Puller<Entry[]> {
  let seq = options.after ?? 0
  let end: number | undefined
  return selectEntries(
    {
      pull() {
        const { entries: value, lastSeq, hasEnded } = next(seq)
        seq = value.at(-1)?.seq ?? seq
        // Without a signal it ends with the entries stored at its first pull.
        end ??= options.signal ? Infinity : lastSeq
        const last = seq >= end || (hasEnded && seq >= lastSeq)
        if (value.length === 0) return last ? 'end' : 'wait'
        return { value, last, stored: seq < lastSeq }
      },
    },
    options,
  )
}

/** `next` returns the first message after this one. */
export function readMessages(next: (n: number) => InboxMessage | undefined, after = 0): Puller<InboxMessage> {
  let n = after
  return {
    pull() {
      const value = next(n)
      if (!value) return 'wait'
      n = value.n
      return { value }
    },
  }
}

/** `next` returns some changes after this one, or none. */
export function readChanges(next: (n: number) => Change[], after = 0): Puller<Change[]> {
  let n = after
  return {
    pull() {
      const value = next(n)
      n = value.at(-1)?.n ?? n
      return value.length === 0 ? 'wait' : { value, stored: true }
    },
  }
}
