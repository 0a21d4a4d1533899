import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ToolContext } from './tool.ts'
import { builtinTools } from './builtin-tools.ts'
import { evaluate } from './calculator.ts'

const context = {} as ToolContext

test('the tool: {expression} → {result}', () => {
  const calculator = builtinTools.get('calculator')!
  expect(calculator.execute!({ expression: '12*7' }, context)).toEqual({ result: 84 })
})

test.each<[string, number]>([
  ['2+2*3', 8],
  ['2^10', 1024],
  ['2**10', 1024],
  ['2^3^2', 512],
  ['-2^2', -4],
  ['2^-1', 0.5],
  ['(-2)^2', 4],
  ['--3', 3],
  ['-(1+2)*3', -9],
  ['8 / 2 / 2', 2],
  ['10 - 4 - 3', 3],
  ['7 % 4', 3],
  ['1.5e3 + .5', 1500.5],
  ['2.', 2],
  ['0.1 + 0.2', 0.3],
  ['2^53', 9007199254740992],
  ['6 × 7 ÷ 2', 21],
  ['sqrt(16) + cbrt(27)', 7],
  ['max(1, 2, min(9, 8))', 8],
  ['round(2.345, 2)', 2.35],
  ['round(-0.4)', 0],
  ['log(8, 2)', 3],
  ['ln(e)', 1],
  ['sin(pi/2) + cos(0)', 2],
  ['SQRT(PI*pi)', Math.PI],
  ['5! / 3!', 20],
  ['hypot(3,4)', 5],
])('%s = %d', (expression, result) => expect(evaluate(expression)).toBe(result))

describe('clear errors', () => {
  test.each<[string, string]>([
    ['1/0', 'division by zero'],
    ['1 % 0', 'division by zero'],
    ['sqrt(-1)', 'not a real number'],
    ['10^400', 'too large'],
    ['min(1e999, 5)', 'the number 1e999 is too large'],
    ['1/1e999', 'the number 1e999 is too large'],
    ['', 'expected a number at the end'],
    ['2+', 'expected a number at the end'],
    ['2 3', 'expected an operator, found "3" at position 3'],
    ['1,000 + 1', 'expected an operator, found ","'],
    ['(1', 'expected ")" at the end'],
    ['sqrt 4', 'expected "(" after sqrt'],
    ['pow(1)', 'pow takes 2 to 2 numbers'],
    ['sqrt()', 'expected a number, found ")" at position 6'],
    ['171!', 'a factorial takes'],
    ['constructor.constructor("return process")()', 'unknown name "constructor"; known: pi'],
    ['import("node:fs")', 'unknown name "import"'],
    ['createUnit("x")', 'unknown name "createUnit"'],
    ['__proto__', 'unknown name "__proto__"'],
    ['process.exit(1)', 'unknown name "process"'],
    ['1; 2', 'found ";"'],
    ['a = 1', 'unknown name "a"'],
    ['[1]', 'expected a number, found "["'],
    ['"a"', 'expected a number, found'],
    ['1.2.3', 'expected an operator, found ".3"'],
  ])('%s', (expression, fragment) => {
    expect(() => evaluate(expression)).toThrow(
      expect.objectContaining({ code: 'bad-expression', message: expect.stringContaining(fragment) }),
    )
  })
  test.each(['(', '-', '2^', 'sqrt('])('a nest of %s', (opening) => {
    expect(() => evaluate(opening.repeat(10_000))).toThrow(/longer than 1000 characters/)
    expect(() => evaluate(opening.repeat(190))).toThrow(/nested deeper/)
  })
})

test('agrees with JavaScript on what JavaScript can say', () => {
  const tree = fc.letrec<{ node: { text: string; value: number } }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 5 },
      fc.nat(1000).map((n) => ({ text: String(n), value: n })),
      fc.tuple(tie('node'), fc.constantFrom('+', '-', '*'), tie('node')).map(([a, op, b]) => ({
        text: `(${a.text} ${op} ${b.text})`,
        value: op === '+' ? a.value + b.value : op === '-' ? a.value - b.value : a.value * b.value,
      })),
    ),
  })).node
  fc.assert(
    fc.property(tree, ({ text, value }) => {
      fc.pre(text.length <= 1000)
      expect(evaluate(text)).toBe(value + 0)
    }),
  )
})

test('any text gives a number or a bad-expression', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.+-*/^%!(), episqrtmax'.split('')) }), (text) => {
      try {
        expect(Number.isFinite(evaluate(text))).toBe(true)
      } catch (error) {
        expect(error).toMatchObject({ code: 'bad-expression' })
      }
    }),
  )
})

test('nothing is compiled', () => {
  const source = readFileSync(new URL('./calculator.ts', import.meta.url), 'utf8')
  expect(source).toContain('export function evaluate')
  expect(source).not.toMatch(/\beval\(|\bFunction\(/)
})
