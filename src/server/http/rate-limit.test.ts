import { expect, test } from 'vitest'
import { createRateLimit } from './rate-limit.ts'

function clocked(runsPerMinute: number) {
  const clock = { now: 5 }
  const limit = createRateLimit(runsPerMinute, () => clock.now)
  return { clock, limit, take: (address = 'a') => limit(address)?.retryAfter }
}

test('an address may start all its runs at once, then one in each share of the minute', () => {
  const { clock, take, limit } = clocked(3)
  expect([take(), take(), take(), take(), take()]).toEqual([undefined, undefined, undefined, 20, 20])
  clock.now += 19_999
  expect(limit('a')).toMatchObject({
    code: 'rate-limited',
    status: 429,
    retryAfter: 1,
    message: 'Too many runs were started from a. The limit is 3 runs per minute. Try again in 1 second.',
  })
  clock.now += 1
  expect([take(), take()]).toEqual([undefined, 20])
  clock.now += 60_000
  expect([take(), take(), take(), take()]).toEqual([undefined, undefined, undefined, 20])
})

test('addresses do not share a limit; a refused start does not count', () => {
  const { clock, take } = clocked(1)
  expect([take('a'), take('b'), take('a'), take('b')]).toEqual([undefined, undefined, 60, 60])
  for (let i = 0; i < 100; i++) take('a')
  clock.now += 60_000
  expect(take('a')).toBeUndefined()
})

test('fractions add up: 7 runs per minute are 7 in any minute', () => {
  const { clock, take } = clocked(7)
  let started = 0
  for (let i = 0; i <= 60_000 * 10; i += 50) {
    clock.now = 5 + i
    if (take() === undefined) started++
  }
  expect(started).toBe(7 + 70)
})

test('idle addresses are forgotten, busy ones are not', () => {
  const { clock, take } = clocked(1)
  const before = process.memoryUsage().heapUsed
  let wrong = 0
  for (let i = 0; i < 300_000; i++) {
    clock.now += 60_000 / 500
    if (take(`2001:db8::${i}`) !== undefined) wrong++
    if (i % 500 === 0 && take(`2001:db8::${i}`) !== 60) wrong++
  }
  expect(wrong).toBe(0)
  // Each of them would take more than a hundred bytes.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(15e6)
})
