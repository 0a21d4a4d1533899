import { expect, test } from 'vitest'
import { since, until } from './when.ts'

// In whatever zone the test runs: a Friday, half past three in the afternoon.
const now = new Date(2026, 11, 4, 15, 30).getTime()
const at = (day: number, hour: number, minute = 0) => new Date(2026, 11, day, hour, minute).getTime()

test('how long ago something was asked', () => {
  const seconds = [0, 4, 40, 59 * 60, 11 * 60 + 59, 3 * 3600, 47 * 3600, 72 * 3600, -60]
  expect(seconds.map((each) => since(now - each * 1000, now))).toEqual([
    'just now',
    'just now',
    '40 s ago',
    '59 min ago',
    '11 min ago',
    '3 h ago',
    '47 h ago',
    '3 days ago',
    'just now',
  ])
})

test('until when it may be answered', () => {
  const times = [now - 5000, now + 40_000, at(4, 16, 29), at(4, 20, 5), at(5, 0, 1), at(5, 20, 5), at(6, 9), at(400, 9)]
  expect(times.map((time) => until(time, now))).toEqual([
    'in 0 s',
    'in 40 s',
    'in 59 min',
    'today 20:05',
    'tomorrow 00:01',
    'tomorrow 20:05',
    'Sun 6 Dec, 09:00',
    '4 Jan 2028',
  ])
})
