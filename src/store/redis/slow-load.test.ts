/** A Redis that reads its files for seconds when it starts: it takes connections at once, and answers `-LOADING`. */
import { afterEach, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { slowDown, slowFlags, startLossyRedis } from '../../../test/support/lossy-redis.ts'
import { startRedisProxy } from '../../../test/support/redis-proxy.ts'
import { describeRedis } from '../../../test/support/redis.ts'
import { delta, live, readAll } from '../contract/tools.contract.ts'
import { endEntry, startEntry } from '../example-run.contract.ts'
import { redisStore } from './redis-store.ts'

const stores: Store[] = []
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()))
})

async function open(url: string): Promise<Store> {
  const store = await redisStore(`${url}?prefix=p`)
  stores.push(store)
  return store
}

const seqs = (entries: readonly Entry[]) => entries.map(({ seq }) => seq)

describeRedis('Redis that reads its files for five seconds', () => {
  test('is there again when it has read them: it is said to be connected, and what it lost is written before anything new', async () => {
    const server = await startLossyRedis(slowFlags)
    const proxy = await startRedisProxy(server.port)
    // The one that knows the first answer comes back later than the one who would give another.
    const [late, soon] = [await open(proxy.url), await open(server.url)]
    await late.log.append('r', 1, [startEntry('r'), delta(2)])
    const reader = readAll(soon, 'r', 0, live())
    await slowDown(server, 5000)
    await server.remember()
    await late.log.append('r', 1, [delta(3), delta(4)])
    await late.log.append('new', 1, [startEntry('new')])
    await late.log.post('r', 'answer:1', 'yes')
    await expect.poll(async () => seqs(await readAll(soon, 'r'))).toEqual([1, 2, 3, 4])
    await server.kill()
    proxy.refuse()
    const contrary = soon.log.post('r', 'answer:1', 'no')
    const [row, ofNew] = [soon.runs.get('r'), soon.runs.get('new')]
    const back = server.lose().then(() => proxy.allow())
    await expect.poll(async () => (await soon.status!()).connected).toBe(false)
    const fresh = open(server.url)
    await back
    expect(await contrary).toEqual({ first: false, message: 'yes' })
    expect(await row).toMatchObject({ lastSeq: 4 })
    expect(await ofNew).toMatchObject({ lastSeq: 1 })
    expect(await (await fresh).log.post('r', 'answer:1', 'no')).toEqual({ first: false, message: 'yes' })
    for (const store of [late, soon]) await expect.poll(async () => (await store.status!()).connected).toBe(true)
    expect(await late.log.append('r', 1, [endEntry(5)])).toBe('stored')
    expect(seqs(await reader)).toEqual([1, 2, 3, 4, 5])
    proxy.close()
    await server.close()
  })
})
