/** Reads a source before its turn. Pauses when `highWaterMark` items are buffered, until some of them are read. */
import type { Read, SourceReader } from './source-reader.ts'

export type End = { value: unknown } | { error: unknown }

/** Reading begins with `start`. `onEnd` is called when the source has ended or failed; items may still be buffered. */
export function readAhead<T>(
  reader: SourceReader<T>,
  highWaterMark: number,
  onEnd: (end: End) => void,
): SourceReader<T> & { start(): void } {
  const items: Read<T>[] = []
  let end: End | undefined
  let waiting: PromiseWithResolvers<Read<T>> | undefined
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

  function take(result: Read<T>): void {
    reading = false
    if (left) return
    if (result.done) return stop({ value: result.value })
    if (waiting === undefined) items.push(result)
    else waiting.resolve(result)
    waiting = undefined
  }

  function onRead(result: Read<T>): void {
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
      if (end === undefined) return (waiting = Promise.withResolvers<Read<T>>()).promise
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
