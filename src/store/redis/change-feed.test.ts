/** The order of changes over partitions whose clocks differ, as those of several nodes may. */
import { expect, test } from 'vitest'
import { startLossyRedis } from '../../../test/support/lossy-redis.ts'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import type { Change } from '../../part/log.ts'
import { collect, delta } from '../contract/tools.contract.ts'
import { endEntry, startEntry } from '../example-run.contract.ts'
import { partitionOf } from './keys.ts'
import { redisStore } from './redis-store.ts'

describeRedis('changes in redis', (redis) => {
  test('what a partition with a late clock stores comes after what was read, and after a position', async () => {
    const prefix = freshPrefix()
    const store = await redisStore(`${redis().url}?prefix=${prefix}`)
    const ahead = () => redis().command('INCRBY', `{${prefix}:${partitionOf('a')}}:clock`, '1000000000')
    expect(partitionOf('a')).not.toBe(partitionOf('b'))
    await store.log.append('a', 1, [startEntry('a')])
    await ahead()
    await store.log.append('a', 1, [delta(2)])
    const read = await collect(store.log.changes())
    expect(read).toHaveLength(2)
    await store.log.append('b', 1, [startEntry('b')])
    expect(await collect(store.log.changes({ after: read[1]!.n }))).toMatchObject([{ run: 'b' }])
    await ahead()
    await store.log.append('a', 1, [delta(3)])
    const position = await store.log.position()
    await store.log.append('b', 1, [delta(2)])
    expect(await collect(store.log.changes({ after: position }))).toMatchObject([{ run: 'b', entries: [delta(2)] }])
    await store.close()
  })
})

describeRedis('changes in a Redis that loses its last second', () => {
  test('what is written again comes a second time, later: who keeps the last seq of each run has all once', async () => {
    const server = await startLossyRedis()
    const [owner, elsewhere] = await Promise.all([0, 1].map(() => redisStore(`${server.url}?prefix=p`)))
    const leave = new AbortController()
    const heard: Change[] = []
    const seqs = () => heard.flatMap(({ entries }) => entries.map(({ seq }) => seq))
    const reading = (async () => {
      for await (const changes of elsewhere!.log.changes({ signal: leave.signal })) heard.push(...changes)
    })()
    try {
      await owner!.log.append('r', 1, [startEntry('r'), delta(2)])
      await server.remember()
      await owner!.log.append('r', 1, [delta(3), delta(4)])
      await expect.poll(seqs).toEqual([1, 2, 3, 4])
      await server.lose()
      await owner!.log.append('r', 1, [endEntry(5)])
      await expect.poll(() => seqs().at(-1)).toBe(5)
      expect(seqs()).toEqual([1, 2, 3, 4, 3, 4, 5])
      let last = 0
      const once = seqs().filter((seq) => seq > last && (last = seq))
      expect(once).toEqual([1, 2, 3, 4, 5])
      const places = heard.map(({ n }) => n)
      expect(places).toEqual(places.toSorted((a, b) => a - b))
    } finally {
      leave.abort()
      await reading
      await Promise.all([owner!.close(), elsewhere!.close()])
      await server.close()
    }
  })
})
