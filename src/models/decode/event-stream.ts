/**
 * Splits an event stream (`text/event-stream`) into the data of its events, as the AI SDK's packages do with `TextDecoderStream` and
 * `eventsource-parser`. They use nothing but the data, so `event`, `id` and `retry` are skipped.
 *
 * Like there, the last CR of a piece counts as a line end only once more has come (it may be half of a CRLF), and an event without
 * its empty line at the end of the stream is dropped.
 */
import { defaultReadLimits, lineTooLong, type ReadLimits } from '../outside/read-limits.ts'
import { createTextReader } from './text-reader.ts'

export interface EventStream {
  push(bytes: Uint8Array): void
}

export interface EventStreamOptions {
  /**
   * The `data` lines of an event, joined by line feeds. Not called for `[DONE]`. `source.slice(from, to)` is the event as it was
   * sent, with the empty line; `from` is -1 if it began in an earlier source.
   */
  onData(data: string, source: string, from: number, to: number): void
  /**
   * Called where an event begins. Returns the index behind the events that it has read itself, or `at`. It may only read events that
   * are complete and end in a line feed.
   */
  shortcut?: (source: string, at: number) => number
  /** Subject of error messages. */
  who: string
  limits?: ReadLimits | undefined
}

const space = 32

/** `push` throws `line-too-long` when the unfinished event has more characters than the limit has bytes. */
export function createEventStream({
  onData,
  shortcut,
  who,
  limits = defaultReadLimits,
}: EventStreamOptions): EventStream {
  const readText = createTextReader()
  /** An unfinished line. Joined only when its end comes: adding up would cost the square of its length. */
  let pieces: string[] = []
  let waiting = 0
  let data: string | undefined
  /** Whether the next line is the first of an event. */
  let isFirst = true

  function push(bytes: Uint8Array): void {
    const text = readText(bytes)
    if (pieces.length > 0) {
      pieces.push(text)
      waiting += text.length
      if (text.includes('\n') || text.includes('\r')) {
        const source = pieces.join('')
        pieces = []
        read(source)
      }
    } else read(text)
    if (waiting + (data?.length ?? 0) > limits.lineBytes) throw lineTooLong(who, limits)
  }

  function read(source: string): void {
    let from = isFirst ? 0 : -1
    let at = 0
    // Each is searched once, not once a line.
    let feed = -2
    let back = -2
    for (;;) {
      if (isFirst && shortcut !== undefined) {
        at = shortcut(source, at)
        from = at
      }
      if (feed !== -1 && feed < at) feed = source.indexOf('\n', at)
      if (back !== -1 && back < at) back = source.indexOf('\r', at)
      let end = feed
      let next = feed + 1
      if (back !== -1 && (feed === -1 || back < feed)) {
        if (back === source.length - 1) break
        end = back
        next = feed === back + 1 ? back + 2 : back + 1
      }
      if (end === -1) break
      if (end === at) {
        const whole = data
        data = undefined
        isFirst = true
        if (whole !== undefined && whole !== '[DONE]') onData(whole, source, from, next)
        from = next
      } else {
        readLine(source, at, end)
        isFirst = false
      }
      at = next
    }
    waiting = source.length - at
    if (waiting > 0) pieces.push(at === 0 ? source : source.slice(at))
  }

  function readLine(source: string, at: number, end: number): void {
    if (!source.startsWith('data', at)) return
    let start = at + 4
    if (start < end) {
      if (source[start] !== ':') return
      start += source.charCodeAt(start + 1) === space ? 2 : 1
    }
    // A space that is the first character of the next line cannot be: `end` is a line end.
    const value = source.slice(start, end)
    data = data === undefined ? value : `${data}\n${value}`
  }

  return { push }
}
