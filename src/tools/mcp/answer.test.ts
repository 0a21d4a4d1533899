import { expect, test } from 'vitest'
import { readProgress } from './answer.ts'

test.each<[object, string | undefined]>([
  [{ progress: 3, total: 10 }, '3 of 10'],
  [{ progress: 1 / 3, total: 1 }, '0.33 of 1'],
  [{ progress: 7 }, '7'],
  [{ progress: 3, total: 10, message: 'Copies rows' }, 'Copies rows (3 of 10)'],
  [{ progress: 3, message: 'Copies rows' }, 'Copies rows'],
  [{ progress: 3, total: 10, message: 'Row 3 of 10' }, 'Row 3 of 10'],
  [{ progress: Number.NaN, message: 'Working\u202e\u0007' }, 'Working'],
  [{ progress: '3', total: {}, message: [] }, undefined],
  [{}, undefined],
  [{ message: 'x'.repeat(10_000) }, `${'x'.repeat(499)}…`],
])('progress in words: %j', (said, words) => {
  expect(readProgress(said as Record<string, unknown>)).toBe(words)
})
