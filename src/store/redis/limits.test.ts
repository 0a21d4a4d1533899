/** Limits that two stores on one Redis share. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Store } from '../../part/log.ts'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { placeLease } from './limits-script.ts'
import { partitionOf } from './keys.ts'
import { redisStore } from './redis-store.ts'

describeRedis('limits on Redis', (redis) => {
  let prefix: string
  let stores: Store[]
  beforeEach(async () => {
    prefix = freshPrefix()
    const url = `${redis().url}?prefix=${prefix}`
    stores = [await redisStore(url), await redisStore(url)]
  })
  afterEach(() => Promise.all(stores.map((store) => store.close())))
  const key = (name: string, of: string) => `{${prefix}:${partitionOf(of)}}:${name}:${of}`

  test('a rate is that of all: so many at once, then one in each share of the time', async () => {
    const [a, b] = stores.map(({ limits }) => limits!)
    const rate = { count: 4, perMs: 60_000 }
    const waits = await Promise.all([a, b, a, b, a, b].map((limits) => limits!.take('k', rate)))
    expect(waits.filter((wait) => wait === 0)).toHaveLength(4)
    // A quarter of a minute, less what has passed since the first.
    for (const wait of waits.filter((each) => each > 0)) {
      expect(wait).toBeGreaterThan(10_000)
      expect(wait).toBeLessThanOrEqual(15_000)
    }
    expect(await a!.take('other', rate)).toBe(0)
    // As if that time had passed.
    await redis().command('SET', key('rate', 'k'), '1')
    expect(await b!.take('k', rate)).toBe(0)
    // Nothing is left of it when it counts no more.
    expect(Number((await redis().command('PTTL', key('rate', 'k'))).slice(1))).toBeLessThanOrEqual(15_000)
  })

  test('places are those of all: one that is left, or whose process has closed or died, is free', async () => {
    const [a, b] = stores.map(({ limits }) => limits!)
    const first = await a!.occupy('p', 2)
    await a!.occupy('p', 2)
    expect(await b!.occupy('p', 2)).toBeUndefined()
    expect(await b!.occupy('q', 1)).toBeDefined()
    first!.leave()
    first!.leave()
    await expect.poll(async () => b!.occupy('p', 2)).toBeDefined()
    expect(await a!.occupy('p', 2)).toBeUndefined()
    // Whoever holds a place leases it again; whoever is dead does not.
    const listed = await redis().command('ZRANGE', key('places', 'p'), '0', '-1')
    const places = listed.split('\r\n').filter((line) => /^[\da-f]/u.test(line))
    expect(places).toHaveLength(2)
    await redis().command('ZADD', key('places', 'p'), '1', places[0]!, '1', places[1]!)
    await expect.poll(async () => a!.occupy('p', 3), { timeout: placeLease }).toBeDefined()
    await stores[0]!.close()
    await stores[1]!.close()
    expect(await redis().command('EXISTS', key('places', 'p'), key('places', 'q'))).toBe(':0')
  })
})

describeRedis('limits on a Redis of their own', (redis) => {
  test('while Redis is away limits let everything through, and soon', async () => {
    const store = await redisStore(redis().url)
    try {
      expect(await store.limits!.occupy('p', 1)).toBeDefined()
      redis().freeze()
      const began = performance.now()
      const rate = { count: 1, perMs: 60_000 }
      expect(await Promise.all([store.limits!.take('k', rate), store.limits!.take('k', rate)])).toEqual([0, 0])
      expect(await store.limits!.occupy('p', 1)).toBeDefined()
      expect(performance.now() - began).toBeLessThan(3000)
      redis().thaw()
      await expect.poll(() => store.limits!.occupy('p', 1)).toBeUndefined()
    } finally {
      redis().thaw()
      await store.close()
    }
  })
})
