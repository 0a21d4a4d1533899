/**
 * Templates → values. A string that is a single reference becomes the value and keeps its type; inside a longer string the
 * value is inserted as text (objects as JSON). Inserted values are never resolved again: a `$` in user input is plain text.
 */
import { MillraceError } from '../part/error.ts'
import { splitReferences, wholeReference, type Reference } from './reference.ts'
import { ownValue } from '../part/own-value.ts'

export { references } from './reference.ts'

export interface Scope {
  /** `$input.…` */
  input: unknown
  /** `$<result>.…` and `$stepResult.<result>.…` */
  variables: ReadonlyMap<string, unknown>
  /** `$env.NAME`: only variables that the config allows. */
  env: Readonly<Record<string, string>>
}

/**
 * Returns a copy of `template` with its references replaced. A missing optional value is omitted from a map and `null` in a
 * list. Throws `missing-value` with the path, and `bad-value` for a value that cannot be converted to text.
 */
export function resolve(template: unknown, scope: Scope): unknown {
  if (typeof template === 'string') return resolveText(template, scope)
  if (Array.isArray(template)) return template.map((item) => resolve(item, scope) ?? null)
  if (!isPlainObject(template)) return template
  const entries = Object.entries(template).map(([key, value]) => [key, resolve(value, scope)] as const)
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

function resolveText(text: string, scope: Scope): unknown {
  const whole = wholeReference(text)
  if (whole) return lookUp(whole, scope)
  return splitReferences(text)
    .map((piece) => {
      if (typeof piece === 'string') return piece
      const value = lookUp(piece, scope)
      return value === undefined ? '' : toWords(value, piece) + piece.suffix
    })
    .join('')
}

/** The value of a reference; undefined if it is optional and has none. Throws `missing-value`. */
export function lookUp(reference: Reference, scope: Scope): unknown {
  const [root, ...keys] = reference.path
  let value = rootValue(root, scope)
  let seen = `$${root}`
  if (value === undefined) return missing(reference, `"${root}" is not set`)
  for (const key of keys) {
    const next = memberOf(value, key)
    if (next === undefined) return missing(reference, `${seen} has no "${key}"`)
    value = next
    seen += `.${key}`
  }
  return value
}

function rootValue(name: string, { input, variables, env }: Scope): unknown {
  if (name === 'input') return input
  if (name === 'env') return env
  if (name === 'stepResult') return Object.fromEntries(variables)
  return variables.get(name)
}

// Own properties of objects only: `constructor`, `__proto__` and methods of strings are not values of a run.
function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  const own = ownValue(value as Record<string, unknown>, key)
  return typeof own === 'function' ? undefined : own
}

function missing(reference: Reference, reason: string): undefined {
  if (reference.optional) return undefined
  const { text } = reference
  throw new MillraceError('missing-value', `${text} has no value: ${reason}; write ${text}? if it may be missing`)
}

function toWords(value: unknown, reference: Reference): string {
  if (typeof value !== 'object' || value === null) return String(value)
  try {
    return JSON.stringify(value)
  } catch (cause) {
    throw new MillraceError('bad-value', `${reference.text} cannot be converted to JSON`, { cause })
  }
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
