import { expect, test } from 'vitest'
import { diffLines } from './line-diff.ts'

const shown = (a: string, b: string) => diffLines(a, b).map(({ kind, text }) => `${kind} ${text}`)

test('the lines that differ, with two around them, and a mark where others are left out', () => {
  const lines = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']
  const text = `${lines.join('\n')}\n`
  expect(shown(text, text)).toEqual([])
  expect(shown(text, text.replace('2\n', 'two\n').replace('9\n', ''))).toEqual([
    'same 1',
    'out 2',
    'in two',
    'same 3',
    'same 4',
    'gap …',
    'same 7',
    'same 8',
    'out 9',
    'same 10',
  ])
  expect(shown('a', 'a\nb\n')).toEqual(['same a', 'in b'])
})
