import { MillraceError } from '../part/error.ts'
import { equal } from './equal.ts'
import type { Expression, Operator, Term } from './expression.ts'
import { lookUp, type Scope } from './resolve.ts'

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
