import { describe, expect, test } from 'vitest'
import { formatTable, cut, widthOf } from './table.ts'

describe('terminal tables', () => {
  test.each([
    ['plain', 5],
    ['Grüße', 5],
    ['日本語', 6],
    ['한국어', 6],
    ['ｆｕｌｌ', 8],
    ['ﾊﾝｶｸ', 4],
    // A letter and its accents, apart.
    ['e\u0301\u0304x', 2],
    ['🎉🎉', 4],
    ['👩‍👩‍👧', 2],
    ['❤️', 2],
    // A conjunct of two consonants, as terminals show it.
    ['नमस्ते', 4],
    ['', 0],
  ])('%s takes %i columns', (text, width) => {
    expect(widthOf(text)).toBe(width)
  })

  test.each([
    ['abcdef', 6, 'abcdef'],
    ['abcdef', 5, 'abcd…'],
    ['日本語', 6, '日本語'],
    ['日本語', 5, '日本…'],
    // Half of a wide letter is none.
    ['日本語', 4, '日…'],
    ['🎉🎉🎉', 3, '🎉…'],
    ['e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
  ])('%s in %i columns is %s', (text, columns, shown) => {
    expect(cut(text, columns)).toBe(shown)
    expect(widthOf(shown)).toBeLessThanOrEqual(columns)
  })

  test('a line is cut without a look at the megabytes behind it', () => {
    expect(cut('日'.repeat(5_000_000), 10)).toBe('日日日日…')
  })

  test('columns line up with wide letters; a cell is one line and no command', () => {
    const rows = [
      ['日本', 'a'],
      ['x\ny', 'b'],
      ['\u001b[1m', 'c'],
    ]
    const lines = formatTable(['NAME', 'END'], rows).split('\n')
    expect(lines).toEqual(['NAME       END', '日本       a', 'x y        b', '\\u001b[1m  c'])
    expect(lines.map((line) => widthOf(line.slice(0, line.lastIndexOf(' '))))).toEqual([10, 10, 10, 10])
  })
})
