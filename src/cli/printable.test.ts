import { expect, test } from 'vitest'
import { forStream, printable } from './printable.ts'

test.each([
  ['\u001b[31mred\u001b[0m', '\\u001b[31mred\\u001b[0m'],
  // C1: a terminal may take U+009B for ESC [.
  ['a\u009b31m\u0085b\u007f', 'a\\u009b31m\\u0085b\\u007f'],
  ['\u001b]0;title\u0007\u0000\b', '\\u001b]0;title\\u0007\\u0000\\u0008'],
  ['one\r\ntwo\rthree\tfour\n', 'one\ntwothree\tfour\n'],
  // Shown in another order than it is.
  ['rm \u202etxt.exe\u2069', 'rm \\u202etxt.exe\\u2069'],
  ['Grüße, 日本語 👩‍👩‍👧 שלום', 'Grüße, 日本語 👩‍👩‍👧 שלום'],
])('%j is shown as %j', (text, shown) => {
  expect(printable(text)).toBe(shown)
})

test('JSON stays the same JSON', () => {
  const value = { 'k\u009b': '\u001b[2J\u0000\u007f\u0085 \u202e \n "\\' }
  expect(JSON.parse(printable(JSON.stringify(value, null, 2)))).toEqual(value)
})

test('where there is no terminal it is left byte for byte', () => {
  expect(forStream('\u001b[31m\r', {})).toBe('\u001b[31m\r')
  expect(forStream('\u001b[31m\r', { isTTY: true })).toBe('\\u001b[31m')
})
