/** What may be chained in a relay, read in one way: begun with the first `next()`, freed however reading ends. */
import { MillraceError } from '../../part/error.ts'

/** A source of a relay: its items, and the value `R` that it returns at its end. What a sync iterable gives is awaited. */
export type Chainable<T, R = unknown> = AsyncIterable<T, R> | Iterable<T | PromiseLike<T>, R> | ReadableStream<T>

export type Read<T> = IteratorResult<T, unknown>

export interface SourceReader<T> {
  /** An item or the end; no promise where the source has it at once. Throws or rejects when the source breaks. */
  next(): Read<T> | Promise<Read<T>>
  /** The source has ended or broken by itself. */
  release?(): void
  /** The source is read no further. Never throws, waits for nothing. */
  dispose(): void
}

/** Throws `bad-source` for what is none; touches nothing of the source before the first `next()`. */
export function toReader<T>(source: unknown): SourceReader<T> {
  if (typeof source === 'object' && source !== null) {
    // By shape, not by class: a stream may come from another realm. Not by its iterator: Safari's streams have none.
    if (isStream<T>(source)) return readStream(source)
    if (Symbol.asyncIterator in source) return readAsync(source as AsyncIterable<T>)
    if (Symbol.iterator in source) return readSync(source as Iterable<T | PromiseLike<T>>)
    if (isThenable(source)) return readLater(source)
  }
  throw badSource(source)
}

function readAsync<T>(source: AsyncIterable<T>): SourceReader<T> {
  let iterator: AsyncIterator<T> | undefined
  const open = () => (iterator ??= source[Symbol.asyncIterator]())
  return {
    next: () => Promise.resolve(open().next()),
    dispose: () => close(source, open),
  }
}

function readSync<T>(source: Iterable<T | PromiseLike<T>>): SourceReader<T> {
  let iterator: Iterator<T | PromiseLike<T>> | undefined
  let running = false
  let left = false
  const open = () => (iterator ??= source[Symbol.iterator]())
  const dispose = () => {
    left = true
    // A generator that is running, and in it ends who reads it, cannot be closed before it stands still.
    if (!running) close(source, open)
  }

  async function awaited({ done, value }: Read<T | PromiseLike<T>>): Promise<Read<T>> {
    try {
      return { done, value: await value } as Read<T>
    } catch (error) {
      if (!done) dispose()
      throw error
    }
  }

  return {
    next() {
      running = true
      try {
        const result = open().next()
        return isThenable(result.value) ? awaited(result) : (result as Read<T>)
      } finally {
        running = false
        if (left) dispose()
      }
    },
    dispose,
  }
}

function readStream<T>(stream: ReadableStream<T>): SourceReader<T> {
  if (stream.locked) {
    throw new MillraceError('bad-source', 'This ReadableStream is locked: somebody else reads it.')
  }
  let reader: ReadableStreamDefaultReader<T> | undefined
  const release = () => quietly(() => reader?.releaseLock())
  return {
    next: () => Promise.resolve((reader ??= stream.getReader()).read()),
    release,
    dispose() {
      quietly(() => (reader ?? stream).cancel())
      release()
    },
  }
}

/** The place in the order is taken now; the source that the promise gives is one like any other. */
function readLater<T>(promise: PromiseLike<unknown>): SourceReader<T> {
  let reader: SourceReader<T> | undefined
  const opening = Promise.resolve(promise).then((source) => (reader = toReader<T>(source)))
  // It is told on its turn.
  opening.catch(() => undefined)
  return {
    next: () => reader?.next() ?? opening.then((opened) => opened.next()),
    release: () => reader?.release?.(),
    dispose: () => quietly(() => opening.then((opened) => opened.dispose())),
  }
}

/**
 * A source that was never begun is opened for it: what wraps a connection frees it in its iterator's `return()`. One that
 * has a disposal besides, as Node's streams have, is freed by that also while it waits, when `return()` would wait too.
 */
function close(source: object, open: () => AsyncIterator<unknown> | Iterator<unknown>): void {
  let iterator: object | undefined
  quietly(() => {
    const opened = open()
    iterator = opened
    return opened.return?.()
  })
  if (iterator === source) return
  const { [Symbol.asyncDispose]: disposeAsync, [Symbol.dispose]: disposeSync } = source as AsyncDisposable & Disposable
  quietly(() => (disposeAsync ?? disposeSync)?.call(source))
}

/** Nobody waits for a source that is left, and how its leaving went concerns nobody. */
function quietly(work: () => unknown): void {
  try {
    const result = work()
    if (isThenable(result)) result.then(undefined, () => undefined)
  } catch {
    // As above.
  }
}

export function isStream<T>(value: object): value is ReadableStream<T> {
  return 'getReader' in value && typeof value.getReader === 'function'
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function badSource(source: unknown): MillraceError {
  const takes = 'chain() takes an iterable, an async iterable, a ReadableStream, or a promise of one'
  return new MillraceError('bad-source', `${takes}; ${nameOf(source)}`)
}

function nameOf(source: unknown): string {
  if (typeof source === 'string') return 'a string would be its single characters: chain([text]).'
  if (typeof source === 'function') return 'a function is none: chain what it returns.'
  if (typeof source === 'object' && source !== null && 'body' in source) return 'a Response is none: chain its body.'
  if (source === undefined || source === null) return `${source} is none: end() ends the sequence.`
  return `${typeof source === 'object' ? Object.prototype.toString.call(source) : typeof source} is none.`
}
