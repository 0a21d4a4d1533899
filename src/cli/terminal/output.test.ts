import { globSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { forStream, printable } from './output.ts'

describe('terminal output', () => {
  test.each([
    ['\u001b[31mred\u001b[0m', '\\u001b[31mred\\u001b[0m'],
    // C1: a terminal may take U+009B for ESC [.
    ['a\u009b31m\u0085b\u007f', 'a\\u009b31m\\u0085b\\u007f'],
    ['\u001b]0;title\u0007\u0000\b', '\\u001b]0;title\\u0007\\u0000\\u0008'],
    ['one\r\ntwo\rthree\tfour\n', 'one\ntwothree\tfour\n'],
    // Shown in another order than it is.
    ['rm \u202etxt.exe\u2069', 'rm \\u202etxt.exe\\u2069'],
    ['a\u200eb\u200fc\u061cd', 'a\\u200eb\\u200fc\\u061cd'],
    ['Grüße, 日本語 👩‍👩‍👧 שלום', 'Grüße, 日本語 👩‍👩‍👧 שלום'],
  ])('%j is shown as %j', (text, shown) => {
    expect(printable(text)).toBe(shown)
  })

  test('all of C1 and all controls of direction are escaped, and nothing beside them', () => {
    const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
    const codes = [...range(0x7f, 0x9f), 0x61c, 0x200e, 0x200f, ...range(0x202a, 0x202e), ...range(0x2066, 0x2069)]
    const escaped = range(0x7f, 0xffff).filter((code) => {
      return !(code >= 0xd800 && code <= 0xdfff) && printable(String.fromCharCode(code)) !== String.fromCharCode(code)
    })
    expect(escaped).toEqual(codes)
  })

  test('JSON stays the same JSON', () => {
    const value = { 'k\u009b': '\u001b[2J\u0000\u007f\u0085 \u202e \n "\\' }
    expect(JSON.parse(printable(JSON.stringify(value, null, 2)))).toEqual(value)
  })

  test('where there is no terminal it is left byte for byte', () => {
    expect(forStream('\u001b[31m\r', {})).toBe('\u001b[31m\r')
    expect(forStream('\u001b[31m\r', { isTTY: true })).toBe('\\u001b[31m')
  })

  test('no command prints JSON to a terminal as it is', () => {
    const printed = globSync('src/cli/**/*.ts').flatMap((file) => {
      const lines = readFileSync(file, 'utf8').split('\n')
      return lines
        .filter((line) => /(?:stdout\.write|writeOut)\(.*JSON\.stringify/u.test(line))
        .map((line) => [file, line.trim()])
    })
    expect(printed.length).toBeGreaterThan(5)
    expect(printed.filter(([, line]) => !/forStream|printable/u.test(line!))).toEqual([])
  })
})
