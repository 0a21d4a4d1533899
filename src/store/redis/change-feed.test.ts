/** The order of changes over partitions whose clocks differ, as those of several nodes may. */
import { expect, test } from 'vitest'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { collect, delta } from '../contract/tools.contract.ts'
import { startEntry } from '../example-run.contract.ts'
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
