import fc from 'fast-check'
import { expect, test } from 'vitest'
import { align } from './align.ts'
import { diffWords } from './words.ts'

const laid = (a: string, b: string) =>
  align([...a], [...b], (each) => each)
    .map(([x = '-', y = '-']) => x + y)
    .join(' ')

/** By the table of all lengths: slow and plain. */
function longest(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, () => Array.from({ length: b.length + 1 }, () => 0))
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++)
      rows[i]![j] = a[i - 1] === b[j - 1] ? rows[i - 1]![j - 1]! + 1 : Math.max(rows[i - 1]![j]!, rows[i]![j - 1]!)
  return rows[a.length]![b.length]!
}

test('what is in both stands beside each other', () => {
  expect(laid('abcd', 'abxd')).toBe('aa bb c- -x dd')
  expect(laid('', 'ab')).toBe('-a -b')
  expect(laid('abc', 'abc')).toBe('aa bb cc')
  expect(laid('model calc model', 'model model')).toContain('c- ')
})

test('nothing is lost or moved, and as much as possible stands beside each other', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 24 })
  fc.assert(
    fc.property(word, word, (a, b) => {
      const pairs = align([...a], [...b], (each) => each)
      expect(pairs.map(([x = '']) => x).join('')).toBe(a)
      expect(pairs.map(([, y = '']) => y).join('')).toBe(b)
      const both = pairs.filter(([x, y]) => x !== undefined && y !== undefined)
      expect(both.every(([x, y]) => x === y)).toBe(true)
      expect(both).toHaveLength(longest(a, b))
    }),
  )
})

test('lists that have nothing in common are laid one after the other, in bounded time', () => {
  const many = (letter: string) => Array.from({ length: 20_000 }, (_, i) => `${letter}${i}`)
  const pairs = align(['same', ...many('a'), 'end'], ['same', ...many('b'), 'end'], (each) => each)
  expect(pairs).toHaveLength(40_002)
  expect(pairs.at(-1)).toEqual(['end', 'end'])
})

test('texts are compared by words; neighbours are one piece', () => {
  expect(diffWords('84.', 'It is 84.')).toEqual([
    { kind: 'b', text: 'It is ' },
    { kind: 'same', text: '84.' },
  ])
  expect(diffWords('one two three', 'one 2 three')).toEqual([
    { kind: 'same', text: 'one ' },
    { kind: 'a', text: 'two' },
    { kind: 'b', text: '2' },
    { kind: 'same', text: ' three' },
  ])
  expect(diffWords('so one two.', 'so 1 2.')).toEqual([
    { kind: 'same', text: 'so ' },
    { kind: 'a', text: 'one two' },
    { kind: 'b', text: '1 2' },
    { kind: 'same', text: '.' },
  ])
  expect(diffWords('', '')).toEqual([])
})
