/**
 * Splits the body of a model server into its events: standard `text/event-stream`, and the deviations of servers. A body that begins like JSON or
 * HTML is not an event stream: it is passed on whole at its end.
 */
import { bodyTooLarge, defaultReadLimits, lineTooLong, type ReadLimits } from '../limits/read-limits.ts'
import { parsed } from './fields.ts'

/** How to read the next event without parsing it, if it differs from this one only in its text. */
export interface Repeat {
  /** The name of the field with the text, as it occurs in the event. */
  key: string
  /** Applies a text like the event itself. Never called with an empty one. */
  apply(text: string): void
}

export interface EventSink {
  /** The `data` lines of an event, joined by line feeds. */
  onEvent(data: string, name: string): Repeat | undefined
  /** The whole of a body that is not an event stream. */
  onDocument(text: string): void
}

const space = 32
const quote = 34
const backslash = 92
/** Maximum number of consecutive events unlike the previous one: then this server changes more than the text. */
const mostMisses = 8
/** Longer events are rare, and their slices would retain much memory. */
const mostChars = 4096

/** A class, not closures: one for each open stream (decisions/0028). */
export class EventStream {
  private readonly sink: EventSink
  private readonly who: string
  private readonly limits: ReadLimits
  private decoder: TextDecoder | undefined = undefined
  /** The decoder holds the beginning of a character. */
  private holds = false
  /** The last piece ended in CR: a following line feed belongs to the same line end. */
  private endsInReturn = false
  /** Until the first character that is not white space. */
  private isStart = true
  private document: string[] | undefined = undefined
  /** An unfinished line. Joined only at its end: appending would take quadratic time. */
  private pieces: string[] = []
  private waiting = 0
  private data: string | undefined = undefined
  private name = ''
  /** Whether the next line is the first of an event. */
  private isFirst = true
  /** The last event, and how to read the next one. */
  private last: string | undefined = undefined
  private repeat: Repeat | undefined = undefined
  /** The parts before and after the text of such an event. */
  private head = ''
  private tail = ''
  private misses = 0

  /** `who`: subject of error messages. */
  constructor(sink: EventSink, { who, limits = defaultReadLimits }: { who: string; limits?: ReadLimits | undefined }) {
    this.sink = sink
    this.who = who
    this.limits = limits
  }

  /** Throws `line-too-long` when the unfinished event has more characters than the limit has bytes. */
  push(bytes: Uint8Array): void {
    let text = this.textOf(bytes)
    if (this.endsInReturn && text[0] === '\n') text = text.slice(1)
    if (bytes.length > 0) this.endsInReturn = text.endsWith('\r')
    if (text.includes('\r')) text = text.replaceAll(/\r\n?/g, '\n')
    if (this.isStart) {
      if (text.startsWith('\u00ef\u00bb\u00bf')) text = text.slice(3)
      const first = text.trimStart()[0]
      if (first === undefined) return
      this.isStart = false
      if (first === '{' || first === '[' || first === '<') this.document = []
    }
    if (this.document !== undefined) {
      this.document.push(text)
      this.waiting += text.length
      if (this.waiting > this.limits.bodyBytes) throw bodyTooLarge(this.who, this.limits.bodyBytes)
      return
    }
    if (this.pieces.length > 0) this.continue(text)
    else this.read(text, 0)
    if (this.waiting + (this.data?.length ?? 0) > this.limits.lineBytes) throw lineTooLong(this.who, this.limits)
  }

  /** The body has ended: its last event may lack the empty line. */
  end(): void {
    const document = this.document
    this.document = undefined
    if (document !== undefined) return this.sink.onDocument(document.join(''))
    const line = this.pieces.join('')
    this.pieces = []
    this.readLine(line, 0, line.length)
    const data = this.data
    this.data = undefined
    if (data?.includes('\n') || data?.trim() === '[DONE]' || parsed(data ?? '') !== undefined)
      this.sink.onEvent(data ?? '', this.name)
  }

  /** Most pieces end with a whole character, and need one native call. */
  private textOf(bytes: Uint8Array): string {
    if (bytes.length === 0) return ''
    const endsWhole = bytes[bytes.length - 1]! < 0x80
    let text: string
    if (endsWhole && !this.holds) {
      const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      text = buffer.toString('utf8')
    } else {
      this.decoder ??= new TextDecoder('utf-8', { ignoreBOM: true })
      text = this.decoder.decode(bytes, { stream: true })
      this.holds = !endsWhole
    }
    return this.isStart && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  }

  /** `text` continues an unfinished line. Only the rest of its event is joined with it; a piece may have hundreds of further events. */
  private continue(text: string): void {
    const blank = text.indexOf('\n\n')
    const end = blank === -1 ? text.length : blank + 2
    this.pieces.push(end === text.length ? text : text.slice(0, end))
    this.waiting += end
    if (blank === -1 && !text.includes('\n')) return
    const source = this.pieces.join('')
    this.pieces = []
    this.read(source, 0)
    if (end < text.length) this.read(text, end)
  }

  private read(source: string, start: number): void {
    let from = this.isFirst ? start : -1
    let at = start
    for (;;) {
      if (this.isFirst && this.repeat !== undefined) from = at = this.readRepeated(source, at, this.repeat)
      const end = source.indexOf('\n', at)
      if (end === -1) break
      if (end === at) {
        this.endEvent(source, from, end + 1)
        from = end + 1
      } else {
        this.readLine(source, at, end)
        this.isFirst = false
      }
      at = end + 1
    }
    this.waiting = source.length - at
    if (this.waiting > 0) this.pieces.push(at === 0 ? source : source.slice(at))
  }

  private readLine(source: string, at: number, end: number): void {
    // llama.cpp used a separate field for errors.
    const isError = source.startsWith('error', at)
    const isData = !isError && source.startsWith('data', at)
    if (!isData && !isError && !source.startsWith('event', at)) return
    let start = at + (isData ? 4 : 5)
    if (start < end) {
      if (source[start] !== ':') return
      start += source.charCodeAt(start + 1) === space ? 2 : 1
    }
    // A space that is the first character of the next line cannot be: `end` is a line end.
    const value = source.slice(start, end)
    if (!isData) this.name = isError ? 'error' : value
    if (isData || isError) this.data = this.data === undefined ? value : `${this.data}\n${value}`
  }

  private endEvent(source: string, from: number, to: number): void {
    const data = this.data
    const name = this.name
    this.data = this.last = this.repeat = undefined
    this.name = this.head = ''
    this.isFirst = true
    if (data === undefined) return
    const repeat = this.sink.onEvent(data, name)
    if (repeat === undefined || from < 0 || to - from > mostChars || ++this.misses > mostMisses) return
    this.last = source.slice(from, to)
    this.repeat = repeat
  }

  /** Reads events like the last one. Returns the index after them. */
  private readRepeated(source: string, at: number, repeat: Repeat): number {
    // Lazy: the first delta must not wait for it.
    if (this.last !== undefined && !this.learn(this.last, repeat.key)) {
      this.repeat = undefined
      return at
    }
    const head = this.head
    const tail = this.tail
    let next = at
    while (next < source.length) {
      const start = next + head.length
      // `slice` and `===` compare words at a time; `startsWith` takes four times as long.
      if (source.slice(next, start) !== head) break
      const end = endOfString(source, start)
      const from = Math.abs(end)
      if (from <= start || source.slice(from, from + tail.length) !== tail) break
      const text = end > 0 ? ownedSlice(source, start, end) : parsed(source.slice(start - 1, from + 1))
      if (typeof text !== 'string' || text === '') break
      next = from + tail.length
      this.misses = 0
      repeat.apply(text)
    }
    return next
  }

  /** Whether the event has exactly one text with that name. */
  private learn(event: string, key: string): boolean {
    this.last = undefined
    const name = `"${key}":"`
    const start = event.indexOf(name) + name.length
    if (start < name.length || event.includes(name, start)) return false
    const end = Math.abs(endOfString(event, start))
    this.head = event.slice(0, start)
    this.tail = event.slice(end)
    return end > start
  }
}

/** The index of the closing quote; negative if the string has escapes; -1 if it is not complete or not valid. */
function endOfString(source: string, at: number): number {
  let hasEscapes = false
  for (let i = at; ; i++) {
    const code = source.charCodeAt(i)
    if (code === quote) return hasEscapes ? -i : i
    if (code === backslash) {
      hasEscapes = true
      i++
    } else if (!(code >= 32)) return -1
  }
}

/** V8 retains the whole source of a slice of 13 characters or more: a long one is copied. */
function ownedSlice(source: string, from: number, to: number): string {
  const slice = source.slice(from, to)
  return to - from < 13 || source.length < 1024 ? slice : ` ${slice}`.slice(1)
}
