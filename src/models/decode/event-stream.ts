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
   * Asked where an event begins. Returns the index behind the events that it has read itself, or `at`. It may only read events that
   * are complete and end in a line feed.
   */
  shortcut?: { read(source: string, at: number): number }
  /** Subject of error messages. */
  who: string
  limits?: ReadLimits | undefined
}

const space = 32

/** `push` throws `line-too-long` when the unfinished event has more characters than the limit has bytes. */
export function createEventStream(options: EventStreamOptions): EventStream {
  return new EventSplitter(options)
}

/** A class, because its functions would cost each open answer more than what it knows. */
class EventSplitter implements EventStream {
  readonly #options: EventStreamOptions
  readonly #limits: ReadLimits
  readonly #readText = createTextReader()
  /** An unfinished line. Joined only when its end comes: adding up would cost the square of its length. */
  #pieces: string[] = []
  #waiting = 0
  #data: string | undefined = undefined
  /** Whether the next line is the first of an event. */
  #isFirst = true

  constructor(options: EventStreamOptions) {
    this.#options = options
    this.#limits = options.limits ?? defaultReadLimits
  }

  push(bytes: Uint8Array): void {
    const text = this.#readText(bytes)
    if (this.#pieces.length > 0) this.#continue(text)
    else this.#read(text)
    if (this.#waiting + (this.#data?.length ?? 0) > this.#limits.lineBytes) {
      throw lineTooLong(this.#options.who, this.#limits)
    }
  }

  /** `text` follows an unfinished line. What ends its event is joined with it; a piece may have hundreds of events more. */
  #continue(text: string): void {
    const blank = text.indexOf('\n\n')
    const end = blank === -1 ? text.length : blank + 2
    this.#pieces.push(end === text.length ? text : text.slice(0, end))
    this.#waiting += end
    if (blank === -1 && !text.includes('\n') && !text.includes('\r')) return
    const source = this.#pieces.join('')
    this.#pieces = []
    this.#read(source)
    if (end < text.length) this.#read(text, end)
  }

  #read(source: string, start = 0): void {
    const { shortcut } = this.#options
    let from = this.#isFirst ? start : -1
    let at = start
    // Each is searched once, not once a line.
    let feed = -2
    let back = -2
    for (;;) {
      if (this.#isFirst && shortcut !== undefined) {
        at = shortcut.read(source, at)
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
        const whole = this.#data
        this.#data = undefined
        this.#isFirst = true
        if (whole !== undefined && whole !== '[DONE]') this.#options.onData(whole, source, from, next)
        from = next
      } else {
        this.#readLine(source, at, end)
        this.#isFirst = false
      }
      at = next
    }
    this.#waiting = source.length - at
    if (this.#waiting > 0) this.#pieces.push(at === 0 ? source : source.slice(at))
  }

  #readLine(source: string, at: number, end: number): void {
    if (!source.startsWith('data', at)) return
    let start = at + 4
    if (start < end) {
      if (source[start] !== ':') return
      start += source.charCodeAt(start + 1) === space ? 2 : 1
    }
    // A space that is the first character of the next line cannot be: `end` is a line end.
    const value = source.slice(start, end)
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`
  }
}
