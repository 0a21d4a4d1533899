/**
 * Hides the values of named keys in the inputs and outputs of tools: in their parts, in the messages of requests, and in replies of
 * clients. Nothing else of a run is touched. Values without such keys are returned as they are.
 */
import type { RecordedPart } from '../part/entry.ts'
import { isDeepText, parseJson } from '../part/json.ts'
import { ownValue } from '../part/own-value.ts'
import { callKey } from './open-items.ts'
import { redacted } from './secret-forms.ts'

type Fields = Record<string, unknown>
type Clean = (value: unknown) => unknown

/** Compares names without case, `-` and `_`. Undefined if there are none. */
export function createKeyCheck(names: readonly string[]): IsSecretKey | undefined {
  const known = new Set(names.map(plain))
  return known.size === 0 ? undefined : (key) => known.has(plain(key))
}

function plain(key: string): string {
  return key.toLowerCase().replace(/[-_]/gu, '')
}

/** One per run. Returns undefined if nothing of the part is left to emit. */
export function createKeyRedactor(
  isSecret: IsSecretKey,
): (step: string, part: RecordedPart) => RecordedPart | undefined {
  const { input, output, answer, messages } = cleanersOf(isSecret)
  /** Tool inputs that are being written. */
  const open = new Map<string, (piece: string) => string>()
  return (step, part) => {
    switch (part.type) {
      case 'tool-input-start':
      case 'tool-input-end':
        open.delete(callKey(step, part.id))
        return part
      case 'tool-input-delta': {
        const key = callKey(step, part.id)
        let scan = open.get(key)
        if (scan === undefined) open.set(key, (scan = createKeyScan(isSecret)))
        const delta = scan(part.delta)
        if (delta === part.delta) return part
        return delta === '' && part.providerMetadata === undefined ? undefined : { ...part, delta }
      }
      case 'tool-call':
        return withFields(part, { input: (text) => createKeyScan(isSecret)(text as string) })
      case 'tool-result':
        return withFields(part, { result: output })
      case 'request':
        return withFields(part, { input })
      case 'response':
        return withFields(part, { answer })
      case 'prompt':
        return withFields(part, { messages })
      case 'run-start':
      case 'resume':
        return withFields(part, { input: (given) => withFields(given, { messages }) })
      default:
        return part
    }
  }
}

/** For replies of clients, alone or as they are posted to a run with their messages. */
export function createAnswerCleaner(isSecret: IsSecretKey): <T>(value: T) => T {
  const { answer, messages } = cleanersOf(isSecret)
  return (value) =>
    withFields(answer(value) as typeof value, { answer, input: (given) => withFields(given, { messages }) })
}

function cleanersOf(isSecret: IsSecretKey) {
  const input: Clean = (value) => cleanDeep(value, isSecret, false, (text) => text)
  const output: Clean = (value) => cleanDeep(value, isSecret, false, (text) => inText(text, isSecret))
  const answer: Clean = (value) => {
    const { kind } = (value ?? {}) as { kind?: unknown }
    return kind === 'tool' ? withFields(value, { output }) : kind === 'approval' ? withFields(value, { input }) : value
  }
  const content: Clean = (value) => {
    const { type } = (value ?? {}) as { type?: unknown }
    if (type === 'tool-call') return withFields(value, { input })
    return type === 'tool-result' ? withFields(value, { output }) : value
  }
  const message: Clean = (value) => withFields(value, { content: (list) => eachOf(list, content) })
  return { input, output, answer, messages: ((list) => eachOf(list, message)) as Clean }
}

/** JSON in a text, such as an MCP tool returns. */
function inText(text: string, isSecret: IsSecretKey): string {
  if (!/^\s*[[{]/u.test(text)) return text
  try {
    parseJson(text)
  } catch {
    if (!isDeepText(text)) return text
  }
  return createKeyScan(isSecret)(text)
}

/** The values are recordable: they have no cycles. */
function cleanDeep(value: unknown, isSecret: IsSecretKey, hides: boolean, clean: (text: string) => string): unknown {
  if (typeof value === 'string') return hides ? redacted : clean(value)
  if (typeof value === 'number') return hides ? redacted : value
  if (Array.isArray(value)) return eachOf(value, (each) => cleanDeep(each, isSecret, hides, clean))
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const json: unknown = value.toJSON()
    const cleaned = cleanDeep(json, isSecret, hides, clean)
    return cleaned === json ? value : cleaned
  }
  let copy: [string, unknown][] | undefined
  const fields = Object.entries(value)
  fields.forEach(([key, each], i) => {
    const cleaned = cleanDeep(each, isSecret, hides || isSecret(key), clean)
    if (cleaned !== each) (copy ??= fields.slice())[i] = [key, cleaned]
  })
  return copy === undefined ? value : Object.fromEntries(copy)
}

function eachOf(list: unknown, clean: Clean): unknown {
  if (!Array.isArray(list)) return list
  const cleaned = list.map(clean)
  return cleaned.some((each, i) => each !== list[i]) ? cleaned : list
}

function withFields<T>(value: T, cleaners: Record<string, Clean>): T {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  let copy: Fields | undefined
  for (const [name, clean] of Object.entries(cleaners)) {
    const field = ownValue(value as Fields, name)
    const cleaned = field === undefined ? field : clean(field)
    if (cleaned !== field) copy = { ...(copy ?? (value as Fields)), [name]: cleaned }
  }
  return (copy as T | undefined) ?? value
}

/*
 * Hides strings and numbers under named keys in JSON text that arrives in pieces. The result does not depend on the cuts, and nothing is
 * held back. In text that is not valid JSON, it hides too much rather than too little.
 */

/** Whether values under this object key are secret. */
type IsSecretKey = (key: string) => boolean

/** An object, a list, or the top level. */
interface Level {
  isObject: boolean
  atKey: boolean
  /** All its values are secret. */
  isSecret: boolean
  /** The next value is secret. */
  hides: boolean
}

type Mode = 'between' | 'key' | 'string' | 'hidden string' | 'literal' | 'hidden word'
const literals = ['true', 'false', 'null']

/** The function takes the next piece of the text and returns its redacted form. */
function createKeyScan(isSecretKey: IsSecretKey): (piece: string) => string {
  const above: Level[] = []
  let level: Level = { isObject: false, atKey: false, isSecret: false, hides: false }
  let mode: Mode = 'between'
  let isEscaped = false
  /** The current key or literal so far. */
  let word = ''
  const isBare = () => mode === 'literal' || mode === 'hidden word'

  /** A character inside quotes. */
  function quoted(c: string): string {
    const isEnd = c === '"' && !isEscaped
    isEscaped = c === '\\' && !isEscaped
    const shown = mode !== 'hidden string' || isEnd ? c : ''
    if (mode === 'key' && !isEnd) word += c
    if (isEnd) mode = 'between'
    return shown
  }

  /** A character of a secret number or another bare word. */
  function unquoted(c: string): string {
    if (mode === 'hidden word') return ''
    word += c
    if (literals.some((each) => each.startsWith(word))) return c
    mode = 'hidden word'
    return `"${redacted}"`
  }

  function between(c: string): string {
    const hides = level.hides && !level.atKey
    if (c === '"') {
      word = ''
      mode = level.atKey ? 'key' : hides ? 'hidden string' : 'string'
      return hides ? `"${redacted}` : c
    }
    if (c === '{' || c === '[') {
      above.push(level)
      level = { isObject: c === '{', atKey: c === '{', isSecret: hides, hides }
    } else if (c === '}' || c === ']') level = above.pop() ?? level
    else if (c === ',') {
      level.atKey = level.isObject
      level.hides = level.isSecret
    } else if (c === ':') {
      level.hides = level.isSecret || isSecretKey(unescaped(word.trim()))
      level.atKey = false
    } else if (hides && c.trim() !== '') {
      word = ''
      mode = 'literal'
      return unquoted(c)
    } else {
      if (level.atKey) word += c
      return c
    }
    word = ''
    return c
  }

  return (piece) => {
    let shown = ''
    for (let i = 0; i < piece.length; i++) {
      const c = piece[i]!
      if (isBare() && /[\s,:"{}[\]]/u.test(c)) mode = 'between'
      if (mode === 'between') shown += between(c)
      else shown += isBare() ? unquoted(c) : quoted(c)
    }
    return shown
  }
}

function unescaped(key: string): string {
  try {
    return parseJson(`"${key}"`) as string
  } catch {
    return key
  }
}
