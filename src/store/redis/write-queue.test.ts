/** How many scripts writes cost that are queued together. */
import { afterEach, expect, test } from 'vitest'
import type { Store } from '../../part/log.ts'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { delta } from '../contract/tools.contract.ts'
import { startEntry } from '../example-run.contract.ts'
import { partitionOf } from './keys.ts'
import { redisStore } from './redis-store.ts'

describeRedis('writes of one tick', (redis) => {
  let store: Store
  afterEach(() => store.close())

  /** Scripts of the store since the last reset. Beats are sent otherwise. */
  async function scripts(): Promise<number> {
    const stats = await redis().command('INFO', 'commandstats')
    return Number(/^cmdstat_evalsha:calls=(\d+)/mu.exec(stats)?.[1] ?? 0)
  }

  test('are one script for each partition, whatever the number of runs and appends', async () => {
    store = await redisStore(`${redis().url}?prefix=${freshPrefix()}`)
    const runs = Array.from({ length: 300 }, (_, i) => `run ${i}`)
    await Promise.all(runs.map((run) => store.log.append(run, 1, [startEntry(run)])))
    const lasts = new Map<string, number>()
    const few = runs.filter((run) => partitionOf(run) < 3)
    for (const [asked, partitions] of [
      [runs, 16],
      [few, 3],
      [runs.slice(0, 1), 1],
    ] as const) {
      await redis().command('CONFIG', 'RESETSTAT')
      const appends = asked.flatMap((run) => {
        const last = lasts.get(run) ?? 1
        lasts.set(run, last + 2)
        return [last + 1, last + 2].map((seq) => store.log.append(run, 1, [delta(seq)]))
      })
      expect(new Set(await Promise.all(appends))).toEqual(new Set(['stored']))
      expect(await scripts()).toBe(partitions)
    }
  })
})
