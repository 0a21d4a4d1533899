/**
 * Most events of an answer differ from the one before only in a text and in some numbers. A template is made of an event that has
 * been parsed and checked: its fixed pieces, and between them the places that may differ. An event with the same pieces, and with
 * valid tokens of the same kind in the places, has the same shape, so it need not be parsed.
 *
 * That is exact as long as only the text is read, and as no check depends on what stands in the places.
 */
import { placesIn, type Choose } from './json-places.ts'

export interface Template {
  /** Reads the event at `at`. Returns the index behind it, or -1 if it has another shape or is not complete. */
  read(source: string, at: number): number
  /** The text of the last event that was read. */
  text(): string
  /** The data in an event that was read. */
  data(source: string, at: number, end: number): string
}

/**
 * `event` is as it was sent, with one line of `data` and the empty line. Undefined if there is not exactly one text in it, or if it
 * has another form than usual.
 */
export function createTemplate(event: string, data: string, choose: Choose): Template | undefined {
  const head = event.indexOf(data)
  const tail = event.length - head - data.length
  const places = head < 0 || !event.endsWith('\n') ? undefined : placesIn(data, choose)
  if (places === undefined || places.filter(({ isText }) => isText).length !== 1) return undefined
  const fixed: string[] = []
  let behind = 0
  for (const { start, end } of places) {
    fixed.push(event.slice(behind, head + start))
    behind = head + end
  }
  fixed.push(event.slice(behind))
  let text = ''

  function read(source: string, at: number): number {
    let next = at
    for (let i = 0; i < places!.length; i++) {
      const piece = fixed[i]!
      if (!hasAt(source, piece, next)) return -1
      const from = next + piece.length
      const { isString, isText } = places![i]!
      next = isString ? endOfString(source, from) : endOfInteger(source, from)
      if (next === -1) return -1
      if (isText) {
        const found = next < -1 ? unescaped(source.slice(from, -next)) : source.slice(from + 1, next - 1)
        if (found === undefined) return -1
        text = found
        next = Math.abs(next)
      }
      // Escapes are only checked where they are read.
      if (next < 0) return -1
    }
    const last = fixed[places!.length]!
    return hasAt(source, last, next) ? next + last.length : -1
  }

  return {
    read,
    // V8 keeps the whole source of a longer slice in memory.
    text: () => (text.length < 13 ? text : ` ${text}`.slice(1)),
    data: (source, at, end) => source.slice(at + head, end - tail),
  }
}

/** `startsWith` compares character by character: five times as slow. */
function hasAt(source: string, piece: string, at: number): boolean {
  return source.slice(at, at + piece.length) === piece
}

/** The index behind the string that begins at `at`, negative if it has escapes. -1 if it is not complete or not valid. */
function endOfString(source: string, at: number): number {
  if (source.charCodeAt(at) !== 34) return -1
  let sign = 1
  for (let i = at + 1; ; i++) {
    const code = source.charCodeAt(i)
    if (code === 34) return sign * (i + 1)
    if (code === 92) {
      sign = -1
      i++
    } else if (!(code >= 32)) return -1
  }
}

/** The index behind an integer that is safe and written as JSON wants it. What follows it is for the next piece to check. */
function endOfInteger(source: string, at: number): number {
  let i = at
  while (source.charCodeAt(i) >= 48 && source.charCodeAt(i) <= 57) i++
  const isOne = i > at && i - at < 16 && (source.charCodeAt(at) !== 48 || i === at + 1)
  return isOne ? i : -1
}

function unescaped(literal: string): string | undefined {
  try {
    return JSON.parse(literal) as string
  } catch {
    return undefined
  }
}
