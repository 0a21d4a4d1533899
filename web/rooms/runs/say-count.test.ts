import { expect, test } from 'vitest'
import { sayCount } from './say-count.ts'

const counted = (count: number, isMore = false) => ({ count, isMore })

test('how many runs there are, or fit, is a number or says that it is more than one', () => {
  expect(sayCount(undefined, undefined)).toBe('')
  expect([1, 320].map((n) => sayCount(counted(n), undefined))).toEqual(['1 run', '320 runs'])
  expect(sayCount(counted(1000, true), undefined)).toBe('over 1,000 runs')
  expect(sayCount(counted(9), counted(316))).toBe('9 of 316')
  expect(sayCount(counted(9), counted(1000, true))).toBe('9 of over 1,000')
  expect(sayCount(counted(1000, true), counted(1000, true))).toBe('over 1,000 fit')
})

test('who has loaded more than the server counts is not told less', () => {
  expect(sayCount(counted(1000, true), undefined, 2300)).toBe('over 2,300 runs')
  expect(sayCount(counted(5), undefined, 7)).toBe('5 runs')
})
