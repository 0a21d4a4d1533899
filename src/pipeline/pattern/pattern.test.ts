import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compilePattern, fullBudget, PatternError, PatternTooCostly } from './pattern.ts'

const matches = (source: string, text: string, isLenient = false) =>
  compilePattern(source, { isLenient }).test(text, { left: fullBudget })

const sources = [
  '',
  'abc',
  '^abc$',
  'a|b|',
  '^(a|bc)*d$',
  '^(?:ab?){2,3}$',
  '^a{2}$',
  '^a{2,}$',
  'a+?b*?c??',
  '^[a-c\\]x-]+$',
  '[^a-c]',
  '\\d\\D\\w\\W\\s\\S',
  '\\bcat\\b',
  '\\Bat',
  '^.$',
  '^..$',
  '^\\p{L}+$',
  '^\\u{1F600}$',
  '^\\uD83D\\uDE00$',
  '^[\\u{1F600}-\\u{1F64F}]$',
  '\\x41\\u0042\\cA?\\0?',
  '^(?<year>\\d{4})-(?<month>\\d\\d)$',
  '(^|,)a($|,)',
  '^(a*)*$',
  '(?:|a)+b',
  '\\/\\.\\$\\^\\|',
  '^(?:\\b|a)*c',
  '$^',
]
const texts = [
  '',
  'a',
  'b',
  'abc',
  'aab',
  'abcd',
  'bcbcd',
  'cat',
  'a cat.',
  'bat',
  'at',
  '2026-11',
  '😀',
  'a\nb',
  '\n',
  'é',
  'AB',
  '/.$^|',
  ',a,',
  '1a b_ c',
  'aac',
  ']x-',
]

test.each(sources)('%s matches the same texts as in JavaScript', (source) => {
  const own = new RegExp(source, 'u')
  for (const text of texts) expect([text, matches(source, text)]).toEqual([text, own.test(text)])
})

test('so do patterns that are put together at random', () => {
  const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\w', '\\s', '^', '$', '\\b', '\\B')
  const quantifier = fc.constantFrom('', '', '*', '+', '?', '{2}', '{0,2}', '{1,}', '*?')
  const { pattern } = fc.letrec<{ pattern: string; piece: string }>((tie) => ({
    piece: fc.oneof(
      { maxDepth: 3 },
      fc.tuple(atom, quantifier).map(([one, more]) => (/^(?:[$^]|\\[bB])/u.test(one) ? one : one + more)),
      fc.tuple(tie('pattern'), quantifier).map(([inner, more]) => `(?:${inner})${more}`),
    ),
    pattern: fc
      .array(fc.array(tie('piece'), { maxLength: 3 }), { minLength: 1, maxLength: 2 })
      .map((choices) => choices.map((pieces) => pieces.join('')).join('|')),
  }))
  const text = fc.array(fc.constantFrom('a', 'b', ' ', '\n', 'é'), { maxLength: 5 }).map((chars) => chars.join(''))
  fc.assert(
    fc.property(pattern, fc.array(text, { maxLength: 6 }), (source, given) => {
      const own = new RegExp(source, 'u')
      for (const each of given)
        expect(matches(source, each), `${source} on ${JSON.stringify(each)}`).toBe(own.test(each))
    }),
    { numRuns: 1000 },
  )
})

describe('what takes JavaScript exponential or quadratic time', () => {
  const long = 120_000
  test.each([
    ['\\s+$', `${' '.repeat(long)}x`],
    ['^(a+)+$', `${'a'.repeat(long)}b`],
    ['^(a|aa)+$', `${'a'.repeat(long)}b`],
    ['(x+x+)+y', 'x'.repeat(long)],
    ['^(?:\\w+\\s?)*$', `${'word '.repeat(long / 5)}!`],
    ['^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}$', 'a'.repeat(long)],
  ])('%s is decided', (source, text) => {
    const budget = { left: fullBudget }
    expect(compilePattern(source).test(text, budget)).toBe(false)
    // Work, not time: a machine may be slow.
    expect(fullBudget - budget.left).toBeLessThan(10 * text.length)
  })

  test('or is given up within the budget, which all texts share', () => {
    const pattern = compilePattern('(?:a|b)*a(?:a|b){200}c')
    const text = Array.from({ length: 200_000 }, (_, i) => (Math.imul(i, 2_654_435_761) & (1 << 20) ? 'a' : 'b')).join(
      '',
    )
    const budget = { left: fullBudget }
    expect(() => pattern.test(text, budget)).toThrow(PatternTooCostly)
    expect(() => pattern.test('a', budget)).toThrow(PatternTooCostly)
    expect(pattern.test(`a${'b'.repeat(200)}c`, { left: fullBudget })).toBe(true)
  })
})

test.each([
  ['(?=a)', 'uses a lookahead, which is not supported'],
  ['(?!a)', 'uses a lookahead, which is not supported'],
  ['(?<=a)b', 'uses a lookbehind, which is not supported'],
  ['(?<!a)b', 'uses a lookbehind, which is not supported'],
  ['(a)\\1', 'uses a back-reference, which is not supported'],
  ['(?<x>a)\\k<x>', 'uses a back-reference, which is not supported'],
  ['(?i:a)', 'uses a flag inside a group, which is not supported'],
  ['(', 'is not a valid regular expression'],
  ['[\\w-.]', 'is not a valid regular expression'],
  ['a{100000}', 'has too many repetitions'],
  ['(?:a{100}){100}', 'has too many repetitions'],
  ['(?:){1000000000}', 'has too many repetitions'],
  ['('.repeat(101) + ')'.repeat(101), 'is nested more than 100 levels deep'],
  ['a'.repeat(10_001), 'is longer than 10000 characters'],
])('%s is refused: it %s', (source, message) => {
  expect(() => compilePattern(source)).toThrow(new PatternError(message))
})

test.each([
  ['^[\\w-.]+$', 'a-b.c'],
  ['^\\-{2}$', '--'],
  ['^a{,2}$', 'a{,2}'],
  ['^]}$', ']}'],
  ['^\\y\\%$', 'y%'],
])('lenient: %s is taken as other languages write it', (source, text) => {
  expect(matches(source, text, true)).toBe(true)
  expect(matches(source, 'no', true)).toBe(new RegExp(source).test('no'))
})
