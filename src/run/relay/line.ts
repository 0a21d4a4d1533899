/** The sources of a relay in their order; an eager one's are read ahead of their turn. Linked, so that no length costs time. */
import { readAhead, type End } from './read-ahead.ts'
import type { SourceReader } from './source-reader.ts'

/**
 * What became of a chained source. It ran to its end (`value` is what it returned), it broke (`error`, which the consumer
 * is told too), or the sequence had ended and the source was disposed: `accepted: false`.
 */
export type Chained<R> =
  | { accepted: true; value: R; error?: undefined }
  | { accepted: true; error: unknown; value?: undefined }
  | { accepted: false; value?: undefined; error?: undefined }

export interface Link<T> {
  reader: SourceReader<T>
  settle(chained: Chained<unknown>): void
  next?: Link<T>
}

export interface Line<T> {
  /** Whose turn it is. */
  first(): SourceReader<T> | undefined
  add(link: Link<T>): void
  /** The first has ended by itself. */
  shift(end: End): void
  /** Disposes all that is left. */
  clear(): void
}

/** Sources that are read ahead at once: it bounds the items that an eager relay holds, and the requests it makes. */
const maxAhead = 64

/** `highWaterMark`: of an eager line. `onCut`: a source broke before its turn, and those behind it were disposed. */
export function createLine<T>(highWaterMark: number | undefined, onCut: () => void): Line<T> {
  let head: Link<T> | undefined
  let tail: Link<T> | undefined
  /** The first link that is not read ahead yet, and the number of those that are. */
  let behind: Link<T> | undefined
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

  /** The sequence will end with this link: what is behind it is not wanted any more. */
  function cutBehind(link: Link<T>): void {
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

export function disposeAll(first: Link<unknown> | undefined): void {
  for (let link = first; link !== undefined; link = link.next) {
    link.reader.dispose()
    link.settle({ accepted: false })
  }
}
