/** The queue of a relay's sources. An eager relay reads them ahead. A linked list, so that all operations are O(1). */
import type { SourceReader, SourceResult } from './source-reader.ts'

/**
 * The outcome of a chained source: it ended (`value` is its return value), it failed (`error`, which the consumer gets too),
 * or it was disposed because the sequence had already ended (`accepted: false`).
 */
export type Chained<R> =
  | { accepted: true; value: R; error?: undefined }
  | { accepted: true; error: unknown; value?: undefined }
  | { accepted: false; value?: undefined; error?: undefined }

export interface SourceLink<T> {
  reader: SourceReader<T>
  settle(chained: Chained<unknown>): void
  next?: SourceLink<T>
}

export interface SourceQueue<T> {
  /** The current source. */
  first(): SourceReader<T> | undefined
  add(link: SourceLink<T>): void
  /** Removes the first source, after it has ended or failed. */
  shift(end: End): void
  /** Disposes all remaining sources. */
  clear(): void
}

/** Maximum number of sources read ahead at once. Bounds the buffered items and the open requests of an eager relay. */
const maxAhead = 64

/** `highWaterMark`: set for an eager relay. `onCut`: called when a source fails before its turn and those after it are disposed. */
export function createLine<T>(highWaterMark: number | undefined, onCut: () => void): SourceQueue<T> {
  let head: SourceLink<T> | undefined
  let tail: SourceLink<T> | undefined
  /** The first link that is not read ahead yet, and the number of links that are. */
  let behind: SourceLink<T> | undefined
  let ahead = 0

  function startAhead(): void {
    while (highWaterMark !== undefined && behind !== undefined && ahead < maxAhead) {
      const link = behind
      behind = link.next
      ahead++
      const reader = readAhead(link.reader, highWaterMark, (end) => {
        link.settle({ accepted: true, ...end })
        if ('error' in end) cutBehind(link)
      })
      link.reader = reader
      reader.start()
    }
  }

  /** The sequence will end with this link, so dispose all links after it. */
  function cutBehind(link: SourceLink<T>): void {
    onCut()
    const rest = link.next
    delete link.next
    behind = undefined
    disposeAll(rest)
  }

  return {
    first: () => head?.reader,
    add(link) {
      if (tail === undefined) head = link
      else tail.next = link
      tail = link
      if (highWaterMark === undefined) return
      behind ??= link
      startAhead()
    },
    shift(end) {
      const { reader, settle, next } = head!
      reader.release?.()
      settle({ accepted: true, ...end })
      head = next
      if (next === undefined) tail = undefined
      ahead--
      startAhead()
    },
    clear() {
      const rest = head
      head = tail = behind = undefined
      disposeAll(rest)
    },
  }
}

export function disposeAll(first: SourceLink<unknown> | undefined): void {
  for (let link = first; link !== undefined; link = link.next) {
    link.reader.dispose()
    link.settle({ accepted: false })
  }
}

/** Reads a source before its turn. Pauses when `highWaterMark` items are buffered, until some of them are read. */
type End = { value: unknown } | { error: unknown }

/** Reading begins with `start`. `onEnd` is called when the source has ended or failed; items may still be buffered. */
function readAhead<T>(
  reader: SourceReader<T>,
  highWaterMark: number,
  onEnd: (end: End) => void,
): SourceReader<T> & { start(): void } {
  const items: SourceResult<T>[] = []
  let end: End | undefined
  let waiting: PromiseWithResolvers<SourceResult<T>> | undefined
  let reading = false
  let left = false

  function fill(): void {
    while (!reading && !left && end === undefined && items.length < highWaterMark) {
      reading = true
      try {
        const result = reader.next()
        if (result instanceof Promise) {
          result.then(onRead, onBroke)
          return
        }
        take(result)
      } catch (error) {
        onBroke(error)
      }
    }
  }

  function take(result: SourceResult<T>): void {
    reading = false
    if (left) return
    if (result.done) return stop({ value: result.value })
    if (waiting === undefined) items.push(result)
    else waiting.resolve(result)
    waiting = undefined
  }

  function onRead(result: SourceResult<T>): void {
    try {
      take(result)
    } catch (error) {
      // `next()` did not resolve to an iterator result.
      return onBroke(error)
    }
    fill()
  }

  function onBroke(error: unknown): void {
    if (!left) stop({ error })
  }

  function stop(with_: End): void {
    end = with_
    reader.release?.()
    onEnd(end)
    if (waiting === undefined) return
    if ('error' in end) waiting.reject(end.error)
    else waiting.resolve({ done: true, value: end.value })
  }

  return {
    start: fill,
    next() {
      const item = items.shift()
      if (item !== undefined) {
        fill()
        return item
      }
      if (end === undefined) return (waiting = Promise.withResolvers<SourceResult<T>>()).promise
      if ('error' in end) throw end.error
      return { done: true, value: end.value }
    },
    dispose() {
      left = true
      items.length = 0
      if (end === undefined) reader.dispose()
    },
  }
}
