/**
 * Most events of an answer differ from the one before only in their text. So an event becomes a template: what is before its text
 * and behind it. An event with the same around its text is not parsed; only its text is read.
 *
 * This is exact: `learnTemplate` finds the one string token that is the text by putting another in its place and parsing that. A
 * JSON text in which one string token is replaced by another is the same value but for that string.
 */

export interface Template {
  /** Reads the event at `at`. Returns the index behind it, or -1 if it is another event or its text needs the full way. */
  read(source: string, at: number): number
  /** The text of the last event that was read. Never empty. */
  text(): string
}

export interface TemplateOptions {
  /** An event as it was sent, with one line of data and the empty line. */
  event: string
  /** The data in it, and its value. */
  data: string
  value: unknown
  /** The name of the field that is the text, and how to find it in the value. */
  key: string
  textOf: (value: unknown) => unknown
  /** Fields of the top level that hold a string or an integer that nobody reads. They may differ too. */
  ignored?: readonly string[]
}

interface Hole {
  kind: 'text' | 'string' | 'integer'
  from: number
  to: number
}

const quote = 34
const backslash = 92

/** Undefined if the text is not found, or if the event is of another form than usual. */
export function learnTemplate({
  event,
  data,
  value,
  key,
  textOf,
  ignored = [],
}: TemplateOptions): Template | undefined {
  const start = event.indexOf(data)
  // The data must stand where it was read from, not in a comment.
  if (start < 0 || !/(^|[\r\n])data: ?$/.test(event.slice(0, start)) || !event.endsWith('\n')) return undefined
  const text = findHole(data, value, key, textOf)
  if (text?.kind !== 'string') return undefined
  const holes: Hole[] = [{ ...text, kind: 'text' }]
  for (const name of ignored) {
    const hole = findHole(data, value, name, (whole) => (whole as Record<string, unknown> | undefined)?.[name])
    if (hole !== undefined) holes.push(hole)
  }
  holes.sort((a, b) => a.from - b.from)
  const literals = [...holes, undefined].map((hole, i) => {
    const from = i === 0 ? 0 : start + holes[i - 1]!.to
    return event.slice(from, hole === undefined ? event.length : start + hole.from)
  })
  return createTemplate(
    literals,
    holes.map(({ kind }) => kind),
  )
}

/** `slice` and `===` compare words at a time; `startsWith` takes four times as long. */
function createTemplate(literals: string[], kinds: Hole['kind'][]): Template {
  const [head = ''] = literals
  let text = ''

  function read(source: string, at: number): number {
    let next = at + head.length
    if (source.slice(at, next) !== head) return -1
    let open = 0
    let close = 0
    let isEscaped = false
    for (let i = 0; i < kinds.length; i++) {
      const from = next
      if (kinds[i] === 'integer') next = endOfInteger(source, from)
      else next = endOfString(source, from)
      if (kinds[i] === 'text') {
        open = from
        isEscaped = next < -1
        close = next = isEscaped ? -next : next
      }
      const literal = literals[i + 1]!
      if (next < 0 || source.slice(next, next + literal.length) !== literal) return -1
      next += literal.length
    }
    if (close === open) return -1
    if (isEscaped) {
      const unescaped = parsed(source.slice(open - 1, close + 1))
      if (typeof unescaped !== 'string') return -1
      text = unescaped
    } else text = ownedSlice(source, open, close)
    return next
  }

  return { read, text: () => text }
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

/** The index behind an integer that is safe and written as JSON wants it, or -1. */
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

const probe = '?probe?'

/** Where the token of a field's value is in the data, without quotes. */
function findHole(data: string, value: unknown, key: string, valueOf: TemplateOptions['textOf']): Hole | undefined {
  // What the probe changes must not be the probe already.
  if (valueOf(value) === probe) return undefined
  const name = JSON.stringify(key)
  let tries = 0
  for (let at = data.indexOf(name); at >= 0 && tries < 4; at = data.indexOf(name, at + 1), tries++) {
    const hole = tokenAfter(data, at + name.length)
    if (hole === undefined) continue
    const token = hole.kind === 'integer' ? `"${probe}"` : probe
    if (valueOf(parsed(data.slice(0, hole.from) + token + data.slice(hole.to))) === probe) return hole
  }
  return undefined
}

/** The string or integer behind a colon. */
function tokenAfter(data: string, at: number): Hole | undefined {
  const [colon] = /^\s*:\s*/.exec(data.slice(at, at + 20)) ?? []
  if (colon === undefined) return undefined
  const from = at + colon.length
  if (data.charCodeAt(from) === quote) {
    const to = Math.abs(endOfString(data, from + 1))
    return to === 1 ? undefined : { kind: 'string', from: from + 1, to }
  }
  const to = endOfInteger(data, from)
  return to > 0 && /[,}\s]/.test(data[to] ?? '') ? { kind: 'integer', from, to } : undefined
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
