import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import { evaluate, type Scope } from './evaluate.ts'
import { parseExpression, type Expression } from './expression.ts'

const scope: Scope = {
  input: {
    count: 5,
    name: 'Ada',
    fast: true,
    slow: false,
    nothing: null,
    tags: ['a', 'b', 3],
    user: { id: 7 },
    'a-b': 1,
  },
  variables: new Map<string, unknown>([
    ['draft', { score: 4.5, text: 'So it goes', notes: [], meta: {}, blank: '' }],
    ['list', [1, 2]],
  ]),
  env: { MODE: 'test' },
  user: { id: 'u1', roles: ['operator'], claims: { plan: 'pro' } },
}

function parse(text: string): Expression {
  const parsed = parseExpression(text, (at, message) => {
    throw new Error(`${at}: ${message}`)
  })
  return parsed!.expression
}

function faultOf(text: string): string {
  let found = ''
  const parsed = parseExpression(text, (at, message) => (found += `${at}: ${message}`))
  expect(parsed === undefined).toBe(found !== '')
  return found
}

describe('what holds', () => {
  test.each<[string, boolean]>([
    ['true', true],
    ['false', false],
    ['null', false],
    ['$input.fast', true],
    ['$input.slow', false],
    ['$input.nothing', false],
    ['$input.nope?', false],
    ['$input.count == 5', true],
    ['$input.count == 5.0', true],
    ['$input.count == "5"', false],
    ['$input.count != "5"', true],
    ['$input.name == "Ada"', true],
    ["$input.name == 'Ada'", true],
    ["'it\\'s' == \"it's\"", true],
    ['"$input.name" == $input.name', false],
    ['$input.fast == true', true],
    ['$input.fast == "true"', false],
    ['$input.nothing == null', true],
    ['$input.nope? == null', true],
    ['null == false', false],
    ['0 == false', false],
    ['"" == null', false],
    ['$list == [1, 2]', true],
    ['$list == [2, 1]', false],
    ['$list == ["1", 2]', false],
    ['$input.user == $input.user', true],
    ['$user.claims.plan == "pro" and $user.id == "u1"', true],
    ['"admin" in $user.roles', false],
    ['$user.roles contains "operator" and empty $user.tenant?', true],
    ['$draft.notes == $draft.meta', false],
    ['$draft.score < 5', true],
    ['$draft.score<5', true],
    ['4.5 <= $draft.score', true],
    ['$draft.score > 4.5', false],
    ['$draft.score >= 4.5', true],
    ['-1 < 0', true],
    ['1e3 > 999', true],
    ['"a" < "b"', true],
    ['"10" < "9"', true],
    ['$draft.text contains "it"', true],
    ['$draft.text contains "It"', false],
    ['$draft.text contains 5', false],
    ['$input.tags contains "a"', true],
    ['$input.tags contains 3', true],
    ['$input.tags contains "3"', false],
    ['$input.nope? contains "x"', false],
    ['$input.name in ["Bob", "Ada"]', true],
    ['$input.count in [1, $list.1, $input.count]', true],
    ['$input.count in []', false],
    ['3 in $input.tags', true],
    ['3 in $input.nope?', false],
    ['[1] in [[1], [2]]', true],
    ['empty $input.nope?', true],
    ['empty $input.nothing', true],
    ['empty $draft.notes', true],
    ['empty $draft.meta', true],
    ['empty $draft.blank', true],
    ['empty $draft.text', false],
    ['empty 0', false],
    ['empty false', false],
    ['empty($draft.notes)', true],
    ['not empty $input.tags', true],
    ['not $input.nope?', true],
    ['not $input.count == 4', true],
    ['not not true', true],
    ['not $input.count in [1, 2]', true],
    ['true or false and false', true],
    ['(true or false) and false', false],
    ['false or false or true', true],
    ['true and true and false', false],
    ['($input.count > 3) == true', true],
    ['$input.fast and $input.count > 3 or $input.nope?', true],
    ['$input.a-b == 1', true],
    ['$env.MODE == "test"', true],
    ['$stepResult.draft.score == 4.5', true],
    ['  \n true\n and\n not false ', true],
    ['true or $input.missing', true],
    ['false and $input.missing', false],
    ['$input.tags.0 == "a"', true],
  ])('%s', (text, holds) => expect(evaluate(parse(text), scope)).toBe(holds))
})

describe('what has no answer', () => {
  test.each<[string, string, string]>([
    ['$input.nope == 1', 'missing-value', '$input.nope has no value'],
    ['$input.constructor == 1', 'missing-value', '$input.constructor has no value'],
    ['$input.name', 'bad-expression', '$input.name is a string, not true or false'],
    ['not $input.tags', 'bad-expression', '$input.tags is a list, not true or false'],
    ['true and $input.count', 'bad-expression', 'write "not empty $input.count"'],
    [
      '$input.name < 5',
      'bad-expression',
      '"<" compares two numbers or two strings, but $input.name is a string and 5 is a number',
    ],
    ['$input.nope? < 5', 'bad-expression', '$input.nope? is missing or null and 5 is a number'],
    ['$input.fast >= $input.slow', 'bad-expression', '$input.fast is a boolean and $input.slow is a boolean'],
    [
      '$input.count contains 5',
      'bad-expression',
      'the left side of "contains" must be a string or a list, but $input.count is a number',
    ],
    ['$input.user contains "id"', 'bad-expression', '$input.user is a map'],
    ['"d" in $input.name', 'bad-expression', 'the right side of "in" must be a list, but $input.name is a string'],
  ])('%s', (text, code, message) => {
    const run = () => evaluate(parse(text), scope)
    expect(run).toThrow(MillraceError)
    expect(run).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }))
  })
  test('the message names the expression', () => {
    expect(() => evaluate(parse('$input.name < 5'), scope)).toThrow('(in: $input.name < 5)')
  })
})

describe('faults, at their place', () => {
  test.each<[string, string]>([
    ['$x =', '3: unknown operator "="; write == to compare'],
    ['$x === 1', '3: unknown operator "==="; write =='],
    ['$x && $y', '3: unknown operator "&&"; write and'],
    ['$x || $y', '3: unknown operator "||"; write or'],
    ['!$x', '0: unknown operator "!"; write not'],
    ['$x ==', '5: expected a value at the end'],
    ['$x == y', '6: unknown word "y"; quote a string ("y"), or write $y for a variable'],
    ['x == 1', '0: unknown word "x"'],
    ['$x is 1', '3: unknown operator "is"; write == to compare'],
    ['$x not in [1]', '3: put "not" before the whole comparison'],
    ['1 < $x < 5', '7: comparisons cannot be chained; join them with "and"'],
    ['$x $y', '3: expected the end of the expression before $y'],
    ['($x', '3: expected ")" at the end'],
    ['$x)', '2: expected the end of the expression before )'],
    ['$x in [1, 2', '11: expected "]" at the end'],
    ['$x in [1,]', '9: expected a value before ]'],
    ['$x in 5', '3: the right side of "in" must be a list'],
    ['5 contains $x', '2: the left side of "contains" must be a string or a list'],
    ['$x < true', '3: "<" compares two numbers or two strings'],
    ['$x < [1]', '3: "<" compares two numbers or two strings'],
    ['5', '0: 5 is not true or false'],
    ['$x and "yes"', '7: "yes" is not true or false'],
    ['not [1]', '4: a list is not true or false'],
    ['$x == "a', '6: unterminated string; add the closing "'],
    ['$ == 1', '0: "$" must be followed by a name'],
    ['$$x', '0: "$" must be followed by a name'],
    ['$x + 1', '3: unexpected "+"'],
    ['$x.f()', '4: expected the end of the expression before ('],
    ['5a == 1', '0: unexpected "5"'],
    ['and $x', '0: expected a value before and'],
    [`${'('.repeat(60)}true${')'.repeat(60)}`, '51: nested deeper than 50 levels'],
    [`${'not '.repeat(60)}true`, 'nested deeper than 50 levels'],
    [`${'empty '.repeat(60)}$x`, 'nested deeper than 50 levels'],
    [`${'['.repeat(60)}`, 'nested deeper than 50 levels'],
    [`true${' or true'.repeat(300)}`, '0: the expression is longer than 2000 characters'],
  ])('%s', (text, message) => expect(faultOf(text)).toContain(message))

  test('whatever is written, it is an expression or has one fault inside the text', () => {
    const word = fc.constantFrom(
      '$a',
      '$a.b?',
      'and',
      'or',
      'not',
      'empty',
      'in',
      'contains',
      '==',
      '<',
      '(',
      ')',
      '[',
      ']',
      ',',
      '"x"',
      '3',
      '$',
      '"',
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(word, { maxLength: 12 }).map((words) => words.join(' ')),
          fc.string(),
        ),
        (text) => {
          const faults: number[] = []
          const parsed = parseExpression(text, (at) => faults.push(at))
          expect(faults).toHaveLength(parsed ? 0 : 1)
          for (const at of faults) expect(at).toBeLessThanOrEqual(text.length)
          if (!parsed) return
          expect(JSON.parse(JSON.stringify(parsed.expression))).toEqual(parsed.expression)
          try {
            expect(typeof evaluate(parsed.expression, scope)).toBe('boolean')
          } catch (error) {
            expect(error).toBeInstanceOf(MillraceError)
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})
