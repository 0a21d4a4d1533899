/** One interface for all kinds of relay sources: opened by the first `next()`, released however reading ends. */
import { MillraceError } from '../part/error.ts'

/** A source of a relay: its items, and its return value `R`. The items of a sync iterable are awaited. */
export type Chainable<T, R = unknown> = AsyncIterable<T, R> | Iterable<T | PromiseLike<T>, R> | ReadableStream<T>

export type SourceResult<T> = IteratorResult<T, unknown>

export interface SourceReader<T> {
  /** The next item or the end, without a promise if it is available at once. Throws or rejects if the source fails. */
  next(): SourceResult<T> | Promise<SourceResult<T>>
  /** Called after the source has ended or failed. */
  release?(): void
  /** Closes the source early. Never throws and does not wait. */
  dispose(): void
}

/** Throws `bad-source` if the value cannot be a source. Does not touch the source before the first `next()`. */
export function toReader<T>(source: unknown): SourceReader<T> {
  if (typeof source === 'object' && source !== null) {
    // Check the shape: a stream may come from another realm, and Safari's streams have no async iterator.
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
    // A generator cannot be closed while it runs: its own code may have ended the relay. `next` closes it afterwards.
    if (!running) close(source, open)
  }

  async function awaited({ done, value }: SourceResult<T | PromiseLike<T>>): Promise<SourceResult<T>> {
    try {
      return { done, value: await value } as SourceResult<T>
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
        return isThenable(result.value) ? awaited(result) : (result as SourceResult<T>)
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
    throw new MillraceError('bad-source', 'This ReadableStream is locked: it already has a reader.')
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

/** A promise of a source takes its place in the order at once. */
function readLater<T>(promise: PromiseLike<unknown>): SourceReader<T> {
  let reader: SourceReader<T> | undefined
  const opening = Promise.resolve(promise).then((source) => (reader = toReader<T>(source)))
  // A rejection is reported when it is this source's turn.
  opening.catch(() => undefined)
  return {
    next: () => reader?.next() ?? opening.then((opened) => opened.next()),
    release: () => reader?.release?.(),
    dispose: () => quietly(() => opening.then((opened) => opened.dispose())),
  }
}

/**
 * Opens a source that was never read, because a source that wraps a connection releases it in its iterator's `return()`. Also
 * calls the source's `Symbol.asyncDispose` or `Symbol.dispose`, as on Node streams, because `return()` waits for a pending read.
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

/** Runs cleanup without waiting for it; errors are ignored. */
function quietly(work: () => unknown): void {
  try {
    const result = work()
    if (isThenable(result)) result.then(undefined, () => undefined)
  } catch {
    // Cleanup errors are ignored.
  }
}

export function isStream<T>(value: object): value is ReadableStream<T> {
  return 'getReader' in value && typeof value.getReader === 'function'
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function badSource(source: unknown): MillraceError {
  const takes = 'chain() accepts an iterable, an async iterable, a ReadableStream, or a promise of one'
  return new MillraceError('bad-source', `${takes}; ${nameOf(source)}`)
}

function nameOf(source: unknown): string {
  if (typeof source === 'string') return 'for a string, use chain([text]).'
  if (typeof source === 'function') return 'for a function, pass what it returns.'
  if (typeof source === 'object' && source !== null && 'body' in source) return 'for a Response, pass its body.'
  if (source === undefined || source === null) return `got ${source}. To end the sequence, call end().`
  return `got ${typeof source === 'object' ? Object.prototype.toString.call(source) : typeof source}.`
}
