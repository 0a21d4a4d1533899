import { z } from 'zod'
import type { ToolImplementation } from './tool.ts'
import { MillraceError } from '../part/error.ts'

/** `{expression}` → `{result}`. Errors give the position and the reason. */
export const calculator: ToolImplementation = {
  description: 'Evaluate a mathematical expression',
  parameters: z.object({
    expression: z
      .string()
      .describe('The math expression to evaluate, such as 2+2*3, 2^10, sqrt(2), round(pi, 2); angles in radians'),
  }),
  execute: ({ expression }: { expression: string }) => ({ result: evaluate(expression) }),
  idempotent: true,
}

/**
 * Evaluates an arithmetic expression with a recursive descent parser. Names are looked up in two Maps, so nothing else can be
 * reached, and no code is generated.
 *
 *   sum     = product (("+" | "-") product)*
 *   product = unary (("*" | "/" | "%") unary)*
 *   unary   = ("+" | "-") unary | power
 *   power   = atom "!"* (("^" | "**") unary)?         so -2^2 is -4, and 2^3^2 is 2^9
 *   atom    = number | constant | function "(" sum ("," sum)* ")" | "(" sum ")"
 */
const maxLength = 1000
const maxDepth = 64

const constants = new Map([
  ['pi', Math.PI],
  ['π', Math.PI],
  ['tau', 2 * Math.PI],
  ['e', Math.E],
])

/** Name → minimum and maximum number of arguments, and the function. */
const functions = new Map<string, [number, number, (...values: number[]) => number]>([
  ...(['sqrt', 'cbrt', 'abs', 'floor', 'ceil', 'trunc', 'sign', 'exp', 'log2', 'log10'] as const).map(one),
  ...(['sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'tanh'] as const).map(one),
  ['ln', [1, 1, Math.log]],
  ['log', [1, 2, (x, base) => (base === undefined ? Math.log(x) : Math.log(x) / Math.log(base))]],
  ['round', [1, 2, round]],
  ['pow', [2, 2, Math.pow]],
  ['mod', [2, 2, (a, b) => a % b]],
  ['atan2', [2, 2, Math.atan2]],
  ['min', [1, 100, Math.min]],
  ['max', [1, 100, Math.max]],
  ['sum', [1, 100, (...values) => values.reduce((a, b) => a + b, 0)]],
  ['hypot', [1, 100, Math.hypot]],
  ['factorial', [1, 1, factorial]],
])

/** Throws `bad-expression` for anything that is not arithmetic or has no finite real value. Angles are radians. */
export function evaluate(expression: string): number {
  if (expression.length > maxLength) throw bad(`the expression is longer than ${maxLength} characters; split it up`)
  const tokens = [
    ...expression.matchAll(/\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[\p{L}_][\p{L}\d_]*|\*\*|\S)/gu),
  ]
  let position = 0
  let depth = 0

  const peek = () => tokens[position]?.[1]
  const accept = (...wanted: string[]) => {
    const token = peek()
    if (token === undefined || !wanted.includes(token)) return undefined
    position++
    return token
  }
  const fail = (expected: string): MillraceError => {
    const match = tokens[position]
    if (match === undefined) return bad(`expected ${expected} at the end of the expression`)
    const column = match.index + match[0].length - match[1]!.length + 1
    return bad(`expected ${expected}, found "${match[1]}" at position ${column}`)
  }

  function sum(): number {
    let value = product()
    for (let op = accept('+', '-', '−'); op !== undefined; op = accept('+', '-', '−')) {
      value = op === '+' ? value + product() : value - product()
    }
    return value
  }

  function product(): number {
    let value = unary()
    for (let op = accept('*', '/', '%', '×', '·', '÷'); op !== undefined; op = accept('*', '/', '%', '×', '·', '÷')) {
      const right = unary()
      if (right === 0 && (op === '/' || op === '÷' || op === '%')) throw bad('division by zero')
      value = op === '/' || op === '÷' ? value / right : op === '%' ? value % right : value * right
    }
    return value
  }

  // All recursion passes through here, so this checks the depth.
  function unary(): number {
    if (++depth > maxDepth) throw bad(`nested deeper than ${maxDepth} levels; split it up`)
    const sign = accept('+', '-', '−')
    const value = sign === undefined ? power() : sign === '+' ? unary() : -unary()
    depth--
    return value
  }

  function power(): number {
    let value = atom()
    while (accept('!')) value = factorial(value)
    return accept('^', '**') ? value ** unary() : value
  }

  function atom(): number {
    const token = peek()
    if (accept('(')) {
      const value = sum()
      if (!accept(')')) throw fail('")"')
      return value
    }
    if (token !== undefined && /^\.?\d/.test(token)) {
      position++
      const value = Number(token)
      if (!Number.isFinite(value)) throw bad(`the number ${token.slice(0, 20)} is too large`)
      return value
    }
    if (token !== undefined && /^[\p{L}_]/u.test(token)) {
      position++
      return named(token)
    }
    throw fail('a number')
  }

  function named(name: string): number {
    const key = name.toLowerCase()
    const known = functions.get(key)
    if (known) {
      if (!accept('(')) throw fail(`"(" after ${name}`)
      const values = [sum()]
      while (accept(',')) values.push(sum())
      if (!accept(')')) throw fail('")"')
      const [fewest, most, apply] = known
      if (values.length < fewest || values.length > most) throw bad(`${name} takes ${fewest} to ${most} numbers`)
      return apply(...values)
    }
    const constant = constants.get(key)
    if (constant !== undefined) return constant
    throw bad(`unknown name "${name}"; known: ${[...constants.keys(), ...functions.keys()].join(', ')}`)
  }

  const value = sum()
  if (position < tokens.length) throw fail('an operator')
  return tidy(value)
}

// Rounds away floating-point noise in the last digits (0.1 + 0.2 is 0.3), but keeps real digits (pi).
function tidy(value: number): number {
  if (Number.isNaN(value)) throw bad('the result is not a real number')
  if (!Number.isFinite(value)) throw bad('the result is too large')
  if (Number.isInteger(value)) return value + 0
  const rounded = Number(value.toPrecision(15))
  return String(rounded).length < String(value).length - 3 ? rounded : value
}

function one<const N extends keyof Math>(name: N): [N, [number, number, (x: number) => number]] {
  return [name, [1, 1, Math[name] as (x: number) => number]]
}

function round(value: number, digits = 0): number {
  if (!Number.isInteger(digits) || digits < 0 || digits > 15) throw bad('round takes 0 to 15 digits')
  return Number(value.toFixed(digits)) || 0
}

function factorial(value: number): number {
  if (!Number.isInteger(value) || value < 0 || value > 170) throw bad('a factorial takes a whole number from 0 to 170')
  let product = 1
  for (let i = 2; i <= value; i++) product *= i
  return product
}

function bad(message: string): MillraceError {
  return new MillraceError('bad-expression', message)
}
