/**
 * The required shape of values from outside. A {@link Shape} belongs to one type, and the compiler reports every field that a shape
 * misses, has too much, or has of another type: so the types of `part/` stay the only place where the form of an entry is written down.
 */
import { ownValue } from './own-value.ts'

/**
 * Returns the fault, or undefined. A fault begins with the place inside the value: `.usage.cost must be a number`. `isStrict`: words
 * must be known ones. Entries of another version may have new ones.
 */
export type Look = (value: unknown, isStrict: boolean) => string | undefined

declare const shaped: unique symbol
/** The look of a type, and of no other. */
export interface Shape<T> extends Look {
  readonly [shaped]?: (value: T) => T
}

/** The shapes of all fields of a type. */
export type FieldShapes<T> = {
  readonly [K in keyof T]-?: Shape<{} extends Pick<T, K> ? Exclude<T[K], undefined> | undefined : T[K]>
}

type Values = Readonly<Record<string, unknown>>

/** A description of a value, for messages. Long texts are cut. */
function wordsFor(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (value === null) return 'not null'
  if (Array.isArray(value)) return 'not a list'
  if (typeof value === 'object') return 'not an object'
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, 40) : value)
  return `not ${text}${typeof value === 'string' && value.length > 40 ? '…' : ''}`
}

/** ` must be <what>, not 5`; ` is missing`. */
export function didNotFit(what: string, value: unknown): string {
  return value === undefined ? ` is missing: it must be ${what}` : ` must be ${what}, ${wordsFor(value)}`
}

/** A value for which a function returns true. */
export function valueOf<T>(what: string, isOne: (value: unknown) => boolean): Shape<T> {
  return (value) => (isOne(value) ? undefined : didNotFit(what, value))
}

export const anything: Shape<unknown> = () => undefined
export const text = valueOf<string>('a string', (value) => typeof value === 'string')
export const flag = valueOf<boolean>('true or false', (value) => typeof value === 'boolean')
export const yes = valueOf<true>('true', (value) => value === true)

export function numberFrom(least: number, most: number): Shape<number> {
  const what = `a number from ${least} to ${most}`
  return valueOf(what, (value) => typeof value === 'number' && value >= least && value <= most)
}

export function wholeFrom(least: number, most: number): Shape<number> {
  const what = `a whole number from ${least} to ${most}`
  return valueOf(what, (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most)
}

/** One of these words. */
export function oneOf<const T extends string>(...words: readonly T[]): Shape<T> {
  const known: ReadonlySet<unknown> = new Set(words)
  const what = words.length === 1 ? `"${words[0]}"` : `one of ${words.join(', ')}`
  return (value, isStrict) =>
    known.has(value) || (!isStrict && typeof value === 'string') ? undefined : didNotFit(what, value)
}

/** A field that may be absent. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, isStrict) => (value === undefined ? undefined : shape(value, isStrict))
}

export function listOf<T>(shape: Shape<T>): Shape<T[]> {
  return (value, isStrict) => {
    if (!Array.isArray(value)) return didNotFit('a list', value)
    for (let i = 0; i < value.length; i++) {
      const found = shape(value[i], isStrict)
      if (found !== undefined) return `[${i}]${found}`
    }
    return undefined
  }
}

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An object with any keys. */
export function recordOf<T>(shape: Shape<T>): Shape<Record<string, T>> {
  return (value, isStrict) => {
    if (!isObject(value)) return didNotFit('an object', value)
    for (const [key, each] of Object.entries(value)) {
      const found = shape(each, isStrict)
      if (found !== undefined) return `.${nameOf(key)}${found}`
    }
    return undefined
  }
}

function nameOf(key: string): string {
  return /^[\w-]{1,40}$/u.test(key) ? key : JSON.stringify(key.slice(0, 40))
}

/** An object with these fields, and perhaps others: they are kept, and nobody looks at them. */
export function objectOf<T extends object>(fields: FieldShapes<T>): Shape<T> {
  const looks = Object.entries<Look>(fields)
  return (value, isStrict) => {
    if (!isObject(value)) return didNotFit('an object', value)
    for (let i = 0; i < looks.length; i++) {
      const [key, look] = looks[i]!
      const found = look(ownValue(value, key), isStrict)
      if (found !== undefined) return `.${key}${found}`
    }
    return undefined
  }
}

/** One of several types, which a field tells. */
export function variantOf<T extends object, K extends keyof T & string>(
  key: K,
  variants: { readonly [V in T[K] & string]: Shape<Extract<T, Record<K, V>>> },
): Shape<T> {
  const looks = new Map<unknown, Look>(Object.entries<Look>(variants))
  const what = `one of ${Object.keys(variants).join(', ')}`
  return (value, isStrict) => {
    if (!isObject(value)) return didNotFit('an object', value)
    const name = ownValue(value, key)
    const look = looks.get(name)
    return look === undefined ? `.${key}${didNotFit(what, name)}` : look(value, isStrict)
  }
}

/** A text, or something else. */
export function textOr<T>(shape: Shape<T>): Shape<string | T> {
  return (value, isStrict) => (typeof value === 'string' ? undefined : shape(value, isStrict))
}

/** A name or an id: 1 to `most` characters that every store, path and header can keep. One that is stored already may be any text. */
export function nameUpTo(most: number): Shape<string> {
  const what = `1 to ${most} characters without control characters, and not . or ..`
  return (value, isStrict) => {
    if (typeof value !== 'string') return didNotFit(what, value)
    return !isStrict || isName(value, most) ? undefined : didNotFit(what, value)
  }
}

/** Invalid in a name: control characters, halves of a character, and the names of folders that a path goes through. */
export function isName(value: string, most: number): boolean {
  if (value === '' || value.length > most || value === '.' || value === '..') return false
  return !/[\p{Cc}\p{Cs}]/u.test(value)
}
