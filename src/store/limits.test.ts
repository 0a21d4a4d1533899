import { describe, expect, test } from 'vitest'
import { createLimits } from './limits.ts'

const minute = 60_000

function clocked(count: number) {
  const clock = { now: 5 }
  const limits = createLimits(() => clock.now)
  const rate = { count, perMs: minute }
  return { clock, take: async (key = 'a') => Math.ceil((await limits.take(key, rate)) / 1000) }
}

async function all<T>(...asked: Promise<T>[]): Promise<T[]> {
  return Promise.all(asked)
}

describe('createLimits', () => {
  test('a key may take all at once, then one in each share of the time', async () => {
    const { clock, take } = clocked(3)
    expect(await all(take(), take(), take(), take(), take())).toEqual([0, 0, 0, 20, 20])
    clock.now += 19_999
    expect(await take()).toBe(1)
    clock.now += 1
    expect(await all(take(), take())).toEqual([0, 20])
    clock.now += minute
    expect(await all(take(), take(), take(), take())).toEqual([0, 0, 0, 20])
  })

  test('keys do not share a rate; what was refused does not count', async () => {
    const { clock, take } = clocked(1)
    expect(await all(take('a'), take('b'), take('a'), take('b'))).toEqual([0, 0, 60, 60])
    for (let i = 0; i < 100; i++) await take('a')
    clock.now += minute
    expect(await take('a')).toBe(0)
  })

  test('fractions add up: 7 in a minute are 7 in any minute', async () => {
    const { clock, take } = clocked(7)
    let started = 0
    for (let i = 0; i <= minute * 10; i += 50) {
      clock.now = 5 + i
      if ((await take()) === 0) started++
    }
    expect(started).toBe(7 + 70)
  })

  test('so many places are taken at a time; one that is left twice is free once', async () => {
    const limits = createLimits()
    const [first, second, third] = await all(...['a', 'a', 'a'].map((key) => limits.occupy(key, 2)))
    expect([first, second, third].map((place) => place !== undefined)).toEqual([true, true, false])
    expect(await limits.occupy('b', 2)).toBeDefined()
    first!.leave()
    first!.leave()
    expect(await limits.occupy('a', 2)).toBeDefined()
    expect(await limits.occupy('a', 2)).toBeUndefined()
  })
})
