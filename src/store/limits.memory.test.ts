import { describe, expect, test } from 'vitest'
import { createLimits } from './limits.ts'
import { expectSize } from '../../test/support/figure.ts'

const minute = 60_000

function clocked(count: number) {
  const clock = { now: 5 }
  const limits = createLimits(() => clock.now)
  const rate = { count, perMs: minute }
  return { clock, take: async (key = 'a') => Math.ceil((await limits.take(key, rate)) / 1000) }
}

describe('createLimits', () => {
  test('idle keys are forgotten, busy ones are not', async () => {
    const { clock, take } = clocked(1)
    const before = process.memoryUsage().heapUsed
    let wrong = 0
    for (let i = 0; i < 300_000; i++) {
      clock.now += minute / 500
      if ((await take(`2001:db8::${i}`)) !== 0) wrong++
      if (i % 500 === 0 && (await take(`2001:db8::${i}`)) !== 60) wrong++
    }
    expect(wrong).toBe(0)
    // Each of them would take more than a hundred bytes.
    expectSize('heap afterwards', process.memoryUsage().heapUsed - before, 15e6)
  })
})
