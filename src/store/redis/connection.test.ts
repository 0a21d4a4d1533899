import { afterEach, describe, expect, test, vi } from 'vitest'
import { setImmediate as turn } from 'node:timers/promises'
import { describeRedis, describeRedisCluster, freshPrefix } from '../../../test/support/redis.ts'
import { delta, firstMessages, live, readAll } from '../contract/tools.contract.ts'
import { endEntry, startEntry } from '../example-run.contract.ts'
import { createChannels } from './channels.ts'
import { openConnection } from './connection.ts'
import { redisStore } from './redis-store.ts'

const failure = async (url: string) => {
  try {
    await redisStore(url)
  } catch (error) {
    return error as Error & { code: string; detail?: string }
  }
  throw new Error('it has connected')
}

describe('without the package', () => {
  afterEach(() => vi.doUnmock('@redis/client'))

  test('the error says how to install it', async () => {
    vi.doMock('@redis/client', () => {
      throw new Error('Cannot find package')
    })
    vi.resetModules()
    const { redisStore: open } = await import('./redis-store.ts')
    const message = expect.stringContaining('npm install @redis/client')
    await expect(open('redis://127.0.0.1:1')).rejects.toMatchObject({ code: 'missing-package', message })
  })
})

describeRedis('a connection to Redis', (redis) => {
  test('that is refused is told without user and password', async () => {
    await redis().command('ACL', 'SETUSER', 'ada', 'on', '>right-one', '~*', '&*', '+@all')
    const place = `127.0.0.1:${redis().port}`
    await (await redisStore(`redis://ada:right-one@${place}?prefix=${freshPrefix()}`)).close()
    const wrong = await failure(`redis://ada:wrong-secret@${place}`)
    expect(wrong).toMatchObject({ code: 'store-failed', message: expect.stringContaining('check user and password') })
    expect(wrong.message).toContain(place)
    expect(JSON.stringify([wrong, wrong.message, wrong.detail, String(wrong.cause)])).not.toMatch(/wrong-secret|ada/u)
  })

  test('with another layout is refused', async () => {
    const prefix = freshPrefix()
    await redis().command('SET', `{${prefix}}:format`, '7 16')
    const fault = await failure(`${redis().url}?prefix=${prefix}`)
    expect(fault).toMatchObject({ code: 'store-version', message: expect.stringContaining('another ?prefix=') })
  })

  test('that may delete runs is warned of', async () => {
    const warnings: string[] = []
    const warn = (message: string) => void (message.includes('policy') && warnings.push(message))
    await redis().command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    await (await redisStore(`${redis().url}?prefix=${freshPrefix()}`, { warn })).close()
    await redis().command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    await (await redisStore(`${redis().url}?prefix=${freshPrefix()}`, { warn })).close()
    expect(warnings).toEqual([expect.stringContaining('Use noeviction')])
  })

  test('tenants with prefixes of their own see nothing of each other', async () => {
    const [one, two] = await Promise.all([0, 1].map(() => redisStore(`${redis().url}?prefix=${freshPrefix()}`)))
    await one!.log.append('r', 1, [startEntry('r')])
    expect(await two!.runs.get('r')).toBeUndefined()
    await two!.log.append('r', 1, [startEntry('r'), delta(2)])
    expect(await readAll(one!, 'r')).toHaveLength(1)
    await Promise.all([one!.close(), two!.close()])
  })

  test('a channel that is left and joined at once, again and again, is heard', async () => {
    const connection = await openConnection(`${redis().url}?prefix=${freshPrefix()}`, {})
    const channels = createChannels(connection)
    for (let i = 0; i < 50; i++) {
      const heard = Promise.withResolvers<string>()
      const opened = channels.open('{c}:1', heard.resolve)
      if (i % 3 === 0) await opened
      if (i % 5 === 0) await turn()
      if (i % 7 === 0) {
        await opened
        await redis().command('SPUBLISH', '{c}:1', String(i))
        expect(await heard.promise).toBe(String(i))
      }
      void channels.close('{c}:1')
    }
    channels.end()
    await connection.close()
  })
})

describeRedisCluster('a cluster', (cluster) => {
  test('is found out from any of its nodes; runs, messages and readers of all partitions work', async () => {
    const prefix = freshPrefix()
    const [owner, elsewhere] = await Promise.all(
      cluster().nodes.map(({ url }) => redisStore(`${url}?prefix=${prefix}`)),
    )
    const runs = Array.from({ length: 40 }, (_, i) => `r${i}`)
    const readers = runs.map((run) => readAll(elsewhere!, run, 0, live()))
    await Promise.all(
      runs.map(async (run) => {
        await owner!.log.append(run, 1, [startEntry(run), delta(2)])
        await elsewhere!.log.post(run, 'stop', run)
        expect(await firstMessages(owner!, run, 1, 0, live())).toMatchObject([{ key: 'stop', message: run }])
        expect(await owner!.log.claim(run, 1)).toBe(true)
        expect(await owner!.log.append(run, 2, [endEntry(3)])).toBe('stored')
      }),
    )
    for (const reader of readers) expect(await reader).toHaveLength(3)
    const used = await Promise.all(cluster().nodes.map((node) => node.command('DBSIZE')))
    for (const size of used) expect(Number(size.slice(1))).toBeGreaterThan(10)
    await expect(redisStore(`${cluster().url}/3`)).rejects.toMatchObject({ code: 'bad-config' })
    await Promise.all([owner!.close(), elsewhere!.close()])
  })
})
