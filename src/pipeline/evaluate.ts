import { MillraceError } from '../part/error.ts'
import { equal } from '../part/equal.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Expression, Operator, Term } from './expression.ts'
import { splitReferences, wholeReference, type Reference } from './reference.ts'
import { ownValue } from '../part/own-value.ts'
import type { RunUser } from '../part/principal.ts'

/**
 * Evaluates the expression of `if` or `while`. Throws `missing-value` for a reference without a value and without `?`, and
 * `bad-expression` with the names of operands whose types cannot be compared or are not conditions.
 */
export function evaluate(expression: Expression, scope: Scope): boolean {
  return isTrue(expression.root, scope, expression.text)
}

function isTrue(term: Term, scope: Scope, text: string): boolean {
  const value = valueOf(term, scope, text)
  if (typeof value === 'boolean') return value
  if (value === null) return false
  const cure = `compare it, or write "not empty ${wordsOf(term)}"`
  throw fail(text, `${wordsOf(term)} is ${typeOf(value)}, not true or false; ${cure}`)
}

function valueOf(term: Term, scope: Scope, text: string): unknown {
  switch (term.kind) {
    case 'literal':
      return term.value
    case 'reference':
      return lookUp(term.reference, scope) ?? null
    case 'list':
      return term.items.map((item) => valueOf(item, scope, text))
    case 'empty':
      return isEmpty(valueOf(term.of, scope, text))
    case 'not':
      return !isTrue(term.of, scope, text)
    case 'and':
      return term.terms.every((each) => isTrue(each, scope, text))
    case 'or':
      return term.terms.some((each) => isTrue(each, scope, text))
    case 'compare':
      return compare(term, scope, text)
    default:
      return term satisfies never
  }
}

function compare(term: Extract<Term, { kind: 'compare' }>, scope: Scope, text: string): boolean {
  const { operator } = term
  const left = valueOf(term.left, scope, text)
  const right = valueOf(term.right, scope, text)
  if (operator === '==') return equal(left, right)
  if (operator === '!=') return !equal(left, right)
  if (operator === 'in') {
    if (right === null) return false
    if (Array.isArray(right)) return right.some((item) => equal(item, left))
    throw fail(text, `the right side of "in" must be a list, but ${wordsOf(term.right)} is ${typeOf(right)}`)
  }
  if (operator === 'contains') {
    if (left === null) return false
    if (Array.isArray(left)) return left.some((item) => equal(item, right))
    if (typeof left === 'string') return typeof right === 'string' && left.includes(right)
    throw fail(
      text,
      `the left side of "contains" must be a string or a list, but ${wordsOf(term.left)} is ${typeOf(left)}`,
    )
  }
  if (typeof left === 'number' && typeof right === 'number') return inOrder(left, right, operator)
  if (typeof left === 'string' && typeof right === 'string') return inOrder(left, right, operator)
  const types = `${wordsOf(term.left)} is ${typeOf(left)} and ${wordsOf(term.right)} is ${typeOf(right)}`
  throw fail(text, `"${operator}" compares two numbers or two strings, but ${types}`)
}

function inOrder<T extends number | string>(
  left: T,
  right: T,
  operator: Exclude<Operator, '==' | '!=' | 'contains' | 'in'>,
) {
  switch (operator) {
    case '<':
      return left < right
    case '<=':
      return left <= right
    case '>':
      return left > right
    case '>=':
      return left >= right
    default:
      return operator satisfies never
  }
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === '') return true
  return typeof value === 'object' && Object.keys(value as object).length === 0
}

function wordsOf(term: Term): string {
  if (term.kind === 'reference') return term.reference.text + (term.reference.optional ? '?' : '')
  return term.kind === 'literal' ? JSON.stringify(term.value) : 'the value'
}

function typeOf(value: unknown): string {
  if (value === null) return 'missing or null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'a map' : typeof value === 'string' ? 'a string' : `a ${typeof value}`
}

function fail(text: string, message: string): MillraceError {
  return new MillraceError('bad-expression', `${message} (in: ${text.length > 80 ? `${text.slice(0, 80)}…` : text})`)
}

/**
 * Templates → values. A string that is a single reference becomes the value and keeps its type; inside a longer string the
 * value is inserted as text (objects as JSON). Inserted values are never resolved again: a `$` in user input is plain text.
 */
export interface Scope {
  /** `$input.…` */
  input: unknown
  /** `$<result>.…` and `$stepResult.<result>.…` */
  variables: ReadonlyMap<string, unknown>
  /** `$env.NAME`: only variables that the config allows. */
  env: Readonly<Record<string, string>>
  /** `$user.…`: who started the run. Undefined: nobody in particular. */
  user: RunUser | undefined
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
function lookUp(reference: Reference, scope: Scope): unknown {
  const [root, ...keys] = reference.path
  let value = rootValue(root, scope)
  let seen = `$${root}`
  if (value === undefined) return missing(reference, root === 'user' ? noUser : `"${root}" is not set`)
  for (const key of keys) {
    const next = memberOf(value, key)
    if (next === undefined) return missing(reference, `${seen} has no "${key}"`)
    value = next
    seen += `.${key}`
  }
  return value
}

const noUser = 'the run belongs to no one'

function rootValue(name: string, { input, variables, env, user }: Scope): unknown {
  if (name === 'input') return input
  if (name === 'env') return env
  if (name === 'stepResult') return Object.fromEntries(variables)
  // Runs that were recorded before `$user` existed may have a result of this name.
  if (name === 'user' && !variables.has(name)) return user && toUserValue(user)
  return variables.get(name)
}

/** Without the key: its name is for quotas and the audit. */
function toUserValue({ id, tenant, name, roles, claims }: RunUser): Record<string, unknown> {
  return omitUndefined({ id, tenant, name, roles, claims })
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
