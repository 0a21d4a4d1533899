/**
 * Removes known secrets from the parts of a run, before they are recorded or sent.
 *
 * Pure and synchronous, one per run. Deltas are one text cut anywhere, so a tail of two or more characters that may begin a secret is held until
 * the block's next delta or its end (`secret-tail.ts`). Nothing else is ever delayed. Where secrets overlap, the leftmost wins; of two that begin
 * at the same place, the longer.
 */
import type { BareDelta, RecordedPart } from '../part/entry.ts'
import { recordable } from '../part/json.ts'
import { LazyMap } from './lazy-map.ts'
import { callKey } from './open-items.ts'
import { createAnswerCleaner, createKeyCheck, createKeyRedactor } from './redact-keys.ts'
import { formsOf, redacted, createScanner, type Scanner, type Scan } from './secret-forms.ts'

export interface Redactor {
  /** Returns the parts to record instead of this one: 0 parts (all text is held back), 1, or 2 (the text held back, then the end). */
  redact(step: string, part: RecordedPart): RecordedPart[]
  /** Whether a delta may be recorded as it is, without a call of `redact`. May be false for a clean delta: `redact` decides. */
  keeps(part: BareDelta): boolean
}

/**
 * Removes known secrets from any value, deeply; returns a value without secrets as it is. `keys`: also hides the values of these keys in
 * tool inputs and outputs within clients' replies.
 */
export function createCleaner(secrets: readonly string[], keys: readonly string[] = []): <T>(value: T) => T {
  const clean = createClean(secrets)
  const isSecret = createKeyCheck(keys)
  if (isSecret !== undefined) {
    const cleanAnswer = createAnswerCleaner(isSecret)
    const cleanValues = createCleaner(secrets)
    return (value) => cleanValues(cleanAnswer(recordable(value)))
  }
  return clean === undefined ? (value) => value : (value) => redactDeep(recordable(value), clean.text, [])
}

/** Removes known secrets from a text that arrives in chunks, such as the output of a program. */
export interface TextCleaner {
  /** Returns the text that is ready; holds back a tail that may be the start of a secret. */
  push(piece: string): string
  /** Returns the text that was held back. */
  end(): string
}

export function createTextCleaner(secrets: readonly string[]): TextCleaner {
  const clean = createClean(secrets)
  if (clean === undefined) return { push: (piece) => piece, end: () => '' }
  let tail: Tail | undefined
  return {
    push(piece) {
      const cleaned = cleanPiece(clean.scan, tail, piece, false)
      tail = cleaned.tail
      return cleaned.text
    },
    end: () => cleanPiece(clean.scan, tail, '', true).text,
  }
}

interface Clean extends Scanner {
  text: (given: string) => string
}

/** Caches the forms of secrets, which are the same for every run of a server. */
const cleans = new WeakMap<readonly string[], Clean | { scan?: undefined }>()

/** Undefined if there are no secrets. */
function createClean(secrets: readonly string[]): Clean | undefined {
  let clean = cleans.get(secrets)
  if (clean === undefined) cleans.set(secrets, (clean = makeClean(formsOf(secrets))))
  return clean.scan === undefined ? undefined : clean
}

function makeClean(forms: readonly string[]): Clean | { scan?: undefined } {
  if (forms.length === 0) return {}
  const scanner = createScanner(forms, redacted)
  return { ...scanner, text: (given: string) => scanner.scan(given, true).text }
}

/**
 * By value, and in inputs and outputs of tools also by `keys`. If a call's input is redacted by key, `onHidden` gets the input with only
 * secrets removed, for the tool, just before the call is returned.
 */
export function createRedactor(
  secrets: readonly string[],
  keys: readonly string[] = [],
  onHidden?: (input: string) => void,
): Redactor {
  const byValue = createValueRedactor(secrets)
  const isSecret = createKeyCheck(keys)
  if (isSecret === undefined) return byValue
  const byKey = createKeyRedactor(isSecret)
  return {
    redact(step, part) {
      const shown = byKey(step, part)
      if (shown === undefined) return []
      if (onHidden !== undefined && part.type === 'tool-call' && shown !== part) {
        const [whole] = byValue.redact(step, part)
        onHidden((whole as typeof part).input)
      }
      return byValue.redact(step, shown)
    },
    keeps: (part) => part.type !== 'tool-input-delta' && byValue.keeps(part),
  }
}

/**
 * Finds secrets by value in every string of a part, including object keys, in each form of `secret-forms.ts`. Leaves ids
 * (`id`, `toolCallId`, `runId`, …) as they are: they link parts and are never free text. Returns unchanged parts as they are.
 */
function createValueRedactor(secrets: readonly string[]): Redactor {
  const found = createClean(secrets)
  if (found === undefined) return { redact: (_, part) => [part], keeps: () => true }
  const { scan, passes, text: clean } = found
  /** Block → text held back because it may be the start of a secret. Nearly always empty. */
  const held = new LazyMap<string, Tail>()

  function redactDelta(step: string, part: DeltaPart): RecordedPart[] {
    const key = held.size > 0 ? blockKey(step, part) : undefined
    const before = key === undefined ? undefined : held.get(key)
    const { text, tail } = cleanPiece(scan, before, part.delta, false)
    if (tail !== undefined) held.set(key ?? blockKey(step, part), tail)
    else if (before !== undefined) held.delete(key!)
    const { providerMetadata } = part
    const metadata = providerMetadata && redactDeep(providerMetadata, clean, [])
    if (text === part.delta && metadata === providerMetadata) return [part]
    // An empty delta may carry a signature.
    if (text === '' && part.delta !== '' && metadata === undefined) return []
    return [
      metadata === providerMetadata ? { ...part, delta: text } : { ...part, delta: text, providerMetadata: metadata! },
    ]
  }

  function redactEnd(step: string, part: End): RecordedPart[] {
    const end = redactPart(part, clean)
    const key = blockKey(step, part)
    const tail = held.get(key)
    if (tail === undefined) return [end]
    held.delete(key)
    const { text } = cleanPiece(scan, tail, '', true)
    return text === '' ? [end] : [{ type: deltaOf[part.type], id: part.id, delta: text }, end]
  }

  return {
    redact(step, part) {
      switch (part.type) {
        case 'text-delta':
        case 'reasoning-delta':
        case 'tool-input-delta':
          return redactDelta(step, part)
        case 'text-end':
        case 'reasoning-end':
        case 'tool-input-end':
          return redactEnd(step, part)
        default:
          return [redactPart(part, clean)]
      }
    },
    keeps: ({ delta }) => held.size === 0 && passes(delta),
  }
}

type DeltaPart = Extract<RecordedPart, { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta' }>
type End = Extract<RecordedPart, { type: 'text-end' | 'reasoning-end' | 'tool-input-end' }>

const deltaOf = {
  'text-end': 'text-delta',
  'reasoning-end': 'reasoning-delta',
  'tool-input-end': 'tool-input-delta',
} as const

/** Text and reasoning ids are unique in a run, tool input ids only in their loop. */
function blockKey(step: string, part: DeltaPart | End): string {
  return part.type === 'tool-input-delta' || part.type === 'tool-input-end'
    ? `input\n${callKey(step, part.id)}`
    : `${part.type.startsWith('text') ? 'text' : 'reasoning'}\n${part.id}`
}

/** Fields that link parts, runs and threads. They are never free text, and changing them would break the links. */
const structural: ReadonlySet<string> = new Set([
  'type',
  'id',
  'toolCallId',
  'providerCallId',
  'toolName',
  'requestId',
  'stepType',
  'kind',
  'protocol',
  'runId',
  'agent',
  'threadId',
  'parentRunId',
  'previousRunId',
  'traceparent',
])

function redactPart<P extends RecordedPart>(part: P, clean: (text: string) => string): P {
  let copy: Record<string, unknown> | undefined
  const above = [part]
  for (const key of Object.keys(part)) {
    if (structural.has(key)) continue
    const value = part[key as keyof P]
    const cleaned = redactDeep(value, clean, above)
    if (cleaned !== value) (copy ??= { ...part })[key] = cleaned
  }
  return (copy as P | undefined) ?? part
}

/** Copies only changed objects. `above`: the enclosing objects, to detect cycles. */
function redactDeep<T>(value: T, clean: (text: string) => string, above: unknown[]): T {
  if (typeof value === 'string') return clean(value) as T
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  // A reference kept as it is would point to the original with its secrets.
  if (above.includes(value)) return '[circular]' as T
  above.push(value)
  const cleaned = redactInside(value, clean, above)
  above.pop()
  return cleaned as T
}

function redactInside(value: object, clean: (text: string) => string, above: unknown[]): unknown {
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const json: unknown = value.toJSON()
    const cleaned = redactDeep(json, clean, above)
    return cleaned === json ? value : cleaned
  }
  if (Array.isArray(value)) {
    let copy: unknown[] | undefined
    for (let i = 0; i < value.length; i++) {
      const cleaned: unknown = redactDeep(value[i], clean, above)
      if (cleaned !== value[i]) (copy ??= value.slice())[i] = cleaned
    }
    return copy ?? value
  }
  const item = value as Record<string, unknown>
  const keys = Object.keys(item)
  let copy: (readonly [string, unknown])[] | undefined
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!
    const name = clean(key)
    const cleaned = redactDeep(item[key], clean, above)
    if (name !== key || cleaned !== item[key]) copy ??= keys.slice(0, i).map((before) => [before, item[before]])
    copy?.push([name, cleaned])
  }
  return copy === undefined ? value : Object.fromEntries(copy)
}

/**
 * The held end of a text that arrives in pieces. The end of a piece that may begin a secret is held until the next piece decides. A single
 * matching character is not held: nearly every second token of ordinary text would arrive without its last letter. So the first character
 * of a secret that is cut after it may remain.
 */
interface Tail {
  /** Text that may begin a secret. */
  rest: string
  /** Its first character was emitted. */
  shown: boolean
}

/** The text to emit for `piece`, and the tail to hold. `final`: no more text follows. */
function cleanPiece(
  scan: Scan,
  before: Tail | undefined,
  piece: string,
  final: boolean,
): { text: string; tail: Tail | undefined } {
  if (before === undefined) {
    const { text, rest } = scan(piece, final)
    if (rest.length === 1) return { text: text + rest, tail: { rest, shown: true } }
    return { text, tail: rest === '' ? undefined : { rest, shown: false } }
  }
  const scanned = scan(before.rest + piece, final)
  let { text } = scanned
  const { rest } = scanned
  const stillHeld = text === ''
  // If it was not part of a secret, it was emitted before.
  if (before.shown && text[0] === before.rest[0]) text = text.slice(1)
  if (rest === '') return { text, tail: undefined }
  const shown = stillHeld && before.shown
  if (rest.length === 1 && !shown) return { text: text + rest, tail: { rest, shown: true } }
  return { text, tail: { rest, shown } }
}
