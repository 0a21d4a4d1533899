/**
 * Most events of an answer differ from the one before only in their text, and in some values that nobody reads. A template is made
 * of an event that has been parsed and checked: its fixed pieces, and between them the places that may differ. An event with the
 * same pieces, and with valid tokens of the same kind in the places, is the same value but for those, so it need not be parsed.
 */
import { placesIn, type Choose, type Place } from './json-places.ts'

export interface Template {
  /** Reads the event at `at`. Returns the index behind it, or -1 if it is another event or needs the full way. */
  read(source: string, at: number): number
  /** The text of the last event that was read. Never empty: an empty text means something else to some decoders. */
  text(): string
  /** The data of an event that was read. */
  data(source: string, at: number, end: number): string
}

const quote = 34
const backslash = 92

/**
 * `event` is as it was sent, with one line of `data` and the empty line. Undefined if there is not exactly one text in it, or if it
 * has another form than usual.
 */
export function createTemplate(event: string, data: string, choose: Choose): Template | undefined {
  const head = event.indexOf(data)
  // The data must stand where it was read from, not in a comment. A CR at the end may be half of a line end.
  if (head < 0 || !/(^|[\r\n])data: ?$/.test(event.slice(0, head)) || !event.endsWith('\n')) return undefined
  const places = placesIn(data, choose)
  if (places === undefined || places.filter(({ kind }) => kind === 'text').length !== 1) return undefined
  const fixed = [...places, undefined].map((place, i) =>
    event.slice(i === 0 ? 0 : head + places[i - 1]!.end, place === undefined ? event.length : head + place.start),
  )
  return templateOf(
    fixed,
    places.map(({ kind }) => kind),
    { head, tail: event.length - head - data.length },
  )
}

function templateOf(
  fixed: readonly string[],
  kinds: readonly Place['kind'][],
  { head, tail }: { head: number; tail: number },
): Template {
  const first = fixed[0]!
  let text = ''

  // `slice` and `===` compare words at a time; `startsWith` takes four times as long.
  function read(source: string, at: number): number {
    let next = at + first.length
    if (source.slice(at, next) !== first) return -1
    let found = text
    for (let i = 0; i < kinds.length; i++) {
      const kind = kinds[i]
      const start = next
      next = kind === 'integer' ? endOfInteger(source, start) : endOfString(source, start)
      if (kind === 'text') {
        if (next === start) return -1
        if (next < -1) {
          next = -next
          const unescaped = parsedString(source.slice(start - 1, next + 1))
          if (unescaped === undefined) return -1
          found = unescaped
        } else found = ownedSlice(source, start, next)
      }
      // Escapes are only checked where they are read.
      if (next < 0) return -1
      const piece = fixed[i + 1]!
      const end = next + piece.length
      if (source.slice(next, end) !== piece) return -1
      next = end
    }
    text = found
    return next
  }

  return {
    read,
    text: () => text,
    data: (source, at, end) => ownedSlice(source, at + head, end - tail),
  }
}

/** The index of the closing quote; negative if the string has escapes; -1 if it is not complete or not valid. */
function endOfString(source: string, at: number): number {
  let isEscaped = false
  for (let i = at; ; i++) {
    const code = source.charCodeAt(i)
    if (code === quote) return isEscaped ? -i : i
    if (code === backslash) {
      isEscaped = true
      i++
    } else if (!(code >= 32)) return -1
  }
}

/** The index behind an integer that is safe and written as JSON wants it, or -1. What follows it is for the next piece to check. */
function endOfInteger(source: string, at: number): number {
  let i = at
  while (source.charCodeAt(i) >= 48 && source.charCodeAt(i) <= 57) i++
  const isOne = i > at && i - at < 16 && (source.charCodeAt(at) !== 48 || i === at + 1)
  return isOne ? i : -1
}

/** V8 keeps the whole source of a slice of 13 characters or more in memory: a long one is not worth that. */
function ownedSlice(source: string, from: number, to: number): string {
  const slice = source.slice(from, to)
  return to - from < 13 || source.length < 1024 ? slice : ` ${slice}`.slice(1)
}

function parsedString(literal: string): string | undefined {
  try {
    return JSON.parse(literal) as string
  } catch {
    return undefined
  }
}
