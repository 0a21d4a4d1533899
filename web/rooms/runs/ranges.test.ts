import { expect, test } from 'vitest'
import { readRange, sayRange, writeRange } from './ranges.ts'

test.each([
  ['10s..', { min: 10_000, max: undefined }, '10 s or more'],
  ['..1.5m', { min: undefined, max: 90_000 }, 'up to 1.5 m'],
  ['500ms..2h', { min: 500, max: 7_200_000 }, '500 ms to 2 h'],
])('times: %s', (text, range, words) => {
  expect(readRange(text, 'time')).toEqual(range)
  expect(writeRange(range, 'time')).toBe(text)
  expect(sayRange(range, 'time')).toBe(words)
})

test.each([
  ['0.01..', { min: 0.01, max: undefined }, '$0.01 or more'],
  ['0..2.5', { min: 0, max: 2.5 }, '$0 to $2.5'],
])('money: %s', (text, range, words) => {
  expect(readRange(text, 'usd')).toEqual(range)
  expect(writeRange(range, 'usd')).toBe(text)
  expect(sayRange(range, 'usd')).toBe(words)
})

test('what is no number stays as it is, for the server to say so', () => {
  expect(readRange('long..', 'time')).toEqual({ min: 'long', max: undefined })
  expect(readRange('1e3..-1', 'usd')).toEqual({ min: '1e3', max: '-1' })
  expect(readRange(undefined, 'usd')).toEqual({ min: undefined, max: undefined })
  expect(writeRange({ min: undefined, max: undefined }, 'usd')).toBeUndefined()
})
