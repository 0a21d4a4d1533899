/**
 * JSON from outside. Text is parsed only by `parseJson`, which rejects deep nesting; values that arrive as objects (tool
 * results, provider events) are converted to JSON of at most the same depth. So values in a log are safe for recursive code,
 * including `JSON.stringify`, which overflows the stack at a few thousand levels.
 */
import { MillraceError, messageOf } from './error.ts'

/** The maximum nesting of a value. Real values do not come near it. */
export const maxDepth = 256

/** Replaces values that are nested deeper. */
export const tooDeep = '[nested too deep]'

/**
 * `JSON.parse` with limits. Throws `too-deep` for text that is nested deeper than `maxDepth`, and a `SyntaxError` for invalid
 * JSON and for numbers out of range: `1e999` would become `Infinity`, and `null` when serialized again.
 */
export function parseJson(text: string, reviver?: (key: string, value: unknown) => unknown): unknown {
  const found = scan(text, maxDepth)
  if (found === deep) throw new MillraceError('too-deep', `nested deeper than ${maxDepth} levels`)
  return parseScanned(text, found, reviver)
}

/** `JSON.parse` that throws a `SyntaxError` for numbers out of range. */
export function parseFinite(text: string): unknown {
  return parseScanned(text, scan(text, Infinity))
}

function parseScanned(text: string, found: JsonKind, reviver?: (key: string, value: unknown) => unknown): unknown {
  if (found !== large) return JSON.parse(text, reviver)
  return JSON.parse(text, (key, value: unknown) => {
    if (value === Infinity || value === -Infinity) throw new SyntaxError('a number is out of range')
    return reviver === undefined ? value : reviver(key, value)
  })
}

/** Whether JSON text, complete or not, is nested deeper than `most` levels. */
export function isDeepText(text: string, most = maxDepth): boolean {
  // Every level takes at least one character.
  return text.length > most && scan(text, most) === deep
}

const plain = 0
/** Nested deeper than allowed. */
const deep = 1
/** May contain a number beyond 1e200: a three-digit exponent, or more than 200 digits. */
const large = 2
type JsonKind = typeof plain | typeof deep | typeof large

/** Reads only the text outside of strings, which are most of it: each is skipped in one native call. */
function scan(text: string, most: number): JsonKind {
  let depth = 0
  let digits = 0
  let found: JsonKind = plain
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code >= 0x30 && code <= 0x39) {
      if (++digits > 200) found = large
      continue
    }
    switch (code) {
      case 0x22: // "
        i = endOfString(text, i)
        if (i < 0) return found
        break
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > most) return deep
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
        break
      case 0x45: // E
      case 0x65: // e
        if (digits > 0 && /^\+?\d{3}/u.test(text.slice(i + 1, i + 5))) found = large
    }
    // A decimal point continues the number. Counting too many digits only costs the slower parse.
    if (code !== 0x2e) digits = 0
  }
  return found
}

/** The index of the quote that ends the string which begins at `start`; -1 if there is none. */
function endOfString(text: string, start: number): number {
  for (let at = start; ;) {
    at = text.indexOf('"', at + 1)
    if (at < 0) return -1
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === 0x5c) escapes++
    if (escapes % 2 === 0) return at
  }
}

/** Returns the value itself if it is JSON-safe, else `toJson(value)`. Never throws. */
export function recordable<T>(value: T): T {
  return isRecordable(value) ? value : (toJson(value) as T)
}

/** Whether a value is JSON-safe: not too deep, without cycles, BigInts, non-finite numbers and `toJSON` methods. */
export function isRecordable(value: unknown): boolean {
  try {
    return isShallow(value, maxDepth)
  } catch {
    // A getter or a proxy that throws.
    return false
  }
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return typeof value !== 'bigint'
  if (ArrayBuffer.isView(value)) return true
  if (depth === 0 || 'toJSON' in value) return false
  if (Array.isArray(value)) {
    // A hole is JSON as well: `null`.
    for (let i = 0; i < value.length; i++) if (!isShallow(value[i], depth - 1)) return false
    return true
  }
  // Inherited keys are no part of the JSON: they can only send a value to `toJson`, which leaves them out.
  for (const key in value) if (!isShallow((value as Record<string, unknown>)[key], depth - 1)) return false
  return true
}

/**
 * Converts any value to JSON-safe data: BigInt, Infinity and NaN become strings, an Error `{name, message}`, Map and Set their
 * entries, a cycle `[circular]`, deeper nesting {@link tooDeep}. Values that JSON omits are omitted; returns `undefined` if
 * nothing is left. Plain JSON values return an equal copy. Never throws.
 */
export function toJson(value: unknown): unknown {
  try {
    const copy = copyPlain(value, maxDepth)
    if (copy !== other) return copy
  } catch {
    // A getter or a proxy that throws: `rewrite` replaces only that value.
  }
  return rewrite(value, [])
}

const other = Symbol()

/** Fast path for plain JSON: four times as fast as stringify and parse. Returns `other` if the value is not plain. */
function copyPlain(value: unknown, depth: number): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
  // JSON has no negative zero.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : other
  if (typeof value !== 'object' || depth === 0 || 'toJSON' in value) return other
  if (Array.isArray(value)) {
    const copy: unknown[] = []
    for (const item of value as unknown[]) {
      const copied = copyPlain(item, depth - 1)
      if (copied === other) return other
      copy.push(copied)
    }
    return copy
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return other
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const copied = copyPlain((value as Record<string, unknown>)[key], depth - 1)
    // Assigning to `__proto__` would change the prototype.
    if (copied === other || key === '__proto__') return other
    copy[key] = copied
  }
  return copy
}

/** `above`: the enclosing objects. A value that throws when read is replaced; the rest is kept. */
function rewrite(item: unknown, above: object[]): unknown {
  if (typeof item === 'bigint') return item.toString()
  if (typeof item === 'number') return Number.isFinite(item) ? item + 0 : String(item)
  if (typeof item === 'function' || typeof item === 'symbol') return undefined
  if (typeof item !== 'object' || item === null) return item
  if (above.includes(item)) return '[circular]'
  if (above.length >= maxDepth) return tooDeep
  above.push(item)
  try {
    return rewriteInside(item, above)
  } catch (error) {
    return `[not JSON: ${error instanceof Error ? error.message : String(error)}]`
  } finally {
    above.pop()
  }
}

function rewriteInside(item: object, above: object[]): unknown {
  // An error's own `toJSON` may expose all of its fields, such as request headers.
  if (item instanceof Error) return { name: String(item.name), message: String(item.message) }
  if ('toJSON' in item && typeof item.toJSON === 'function') {
    const json: unknown = item.toJSON('')
    if (json !== item) return rewrite(json, above)
  }
  if (item instanceof Number || item instanceof String || item instanceof Boolean) return item.valueOf()
  if (item instanceof Set) return rewriteList([...item], above)
  if (Array.isArray(item)) return rewriteList(item, above)
  const entries = item instanceof Map ? [...item] : Object.entries(item)
  const rewritten = entries.map(([key, value]: [unknown, unknown]) => [String(key), rewrite(value, above)] as const)
  return Object.fromEntries(rewritten.filter(([, value]) => value !== undefined))
}

function rewriteList(items: readonly unknown[], above: object[]): unknown[] {
  return Array.from(items, (item) => rewrite(item, above) ?? null)
}

/* Extracts JSON from a model's text, in linear time. */

/**
 * The JSON value in a text: the whole text, else the first fenced block marked `json` or unmarked, else the text from the
 * first bracket to the last matching closing bracket. Throws `no-json`.
 */
export function readJson(text: string): unknown {
  return findJson(text).value
}

/** The same, with the part of the text that contains it. */
function findJson(text: string): { value: unknown; json: string } {
  let fault = 'it is empty'
  for (const find of [whole, fenced, bracketed]) {
    const json = find(text)
    if (json === undefined || json.trim() === '') continue
    try {
      return { value: parseJson(json), json }
    } catch (error) {
      // Remove the quoted text from the message.
      fault = messageOf(error).replace(/, (?:\.\.\.)?"[^]*$/u, '')
    }
  }
  throw new MillraceError('no-json', `The text contains no valid JSON (${fault}).`, { detail: text })
}

/** The JSON in a text; returns a text without valid JSON as it is. */
export function jsonOf(text: string): string {
  if (text === '') return text
  try {
    return findJson(text).json.trim()
  } catch {
    return text
  }
}

function whole(text: string): string {
  return text
}

const fence = '```'

function fenced(text: string): string | undefined {
  for (let at = text.indexOf(fence); at >= 0;) {
    const lineEnd = text.indexOf('\n', at)
    if (lineEnd < 0) return undefined
    // Only the last fence of a line can open a block, so each line is read once.
    const mark = text.slice(text.lastIndexOf(fence, lineEnd) + fence.length, lineEnd).trim()
    const end = text.indexOf(fence, lineEnd)
    if (end < 0) return undefined
    if (mark === '' || mark === 'json') return text.slice(lineEnd + 1, end)
    const isBlock = /^[\w+-]+$/u.test(mark)
    at = isBlock ? text.indexOf(fence, end + fence.length) : end
  }
  return undefined
}

function bracketed(text: string): string | undefined {
  const start = text.search(/[{[]/u)
  if (start < 0) return undefined
  const end = text.lastIndexOf(text[start] === '{' ? '}' : ']')
  return end > start ? text.slice(start, end + 1) : undefined
}
