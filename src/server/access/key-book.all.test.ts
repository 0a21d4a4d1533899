import { expect, onTestFinished, test } from 'vitest'
import { redisStore } from '../../store/redis/redis-store.ts'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { digestOf } from './digest.ts'
import { addKey, keyInbox, openKeyBook, revokeKey } from './key-book.ts'

describeRedis('keys that instances share', (redis) => {
  async function instances() {
    const prefix = freshPrefix()
    const url = `${redis().url}?prefix=${prefix}`
    const stores = await Promise.all([redisStore(url), redisStore(url)])
    onTestFinished(async () => {
      for (const store of stores) await store.close()
    })
    return { here: stores[0]!, there: stores[1]!, prefix }
  }

  test('a key that one instance revokes ends at the other within a second', async () => {
    const { here, there } = await instances()
    const book = openKeyBook(here.log, {
      onError: (error) => {
        throw error
      },
    })
    onTestFinished(() => book.close())
    await book.ready
    const secret = await addKey(there.log, { name: 'ci', role: 'user' }, { now: 0 })
    const digest = await digestOf(secret)
    await expect.poll(() => book.find(digest, 0)).toMatchObject({ key: 'ci' })
    const ended = new Promise<void>((end) => book.onRevoked('ci', end))
    const began = performance.now()
    await revokeKey(there.log, 'ci', { now: 0 })
    await ended
    expect(performance.now() - began).toBeLessThan(1000)
    expect(book.find(digest, 0)).toBeUndefined()
  })

  test('keys stay, however long nobody adds one', async () => {
    const { here, prefix } = await instances()
    await addKey(here.log, { name: 'ci', role: 'user' }, { now: 0 })
    const found = await redis().command('KEYS', `*${prefix}*${keyInbox}`)
    const keys = found.split('\r\n').filter((line) => line.endsWith(keyInbox))
    expect(keys).toHaveLength(2)
    for (const key of keys) expect(await redis().command('TTL', key), key).toMatch(/^:-1/u)
  })
})
