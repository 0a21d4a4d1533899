/** Readers of an inbox that cannot be asked for a moment. */
import { expect, test } from 'vitest'
import { createNotifier } from '../notifier.ts'
import { createChannels } from './channels.ts'
import type { RedisConnection } from './connection.ts'
import { createInboxes } from './inboxes.ts'
import { createKeys } from './keys.ts'

test('a box that cannot be opened takes nothing from a newer one', async () => {
  const keys = createKeys('p')
  const subscribed = new Map<string, (message: string) => void>()
  const lengths: PromiseWithResolvers<number>[] = []
  const connection = {
    keys,
    ask: async (_: string, __: string, [command]: string[]) => {
      if (command === 'LRANGE') return ['key\ntoken\n"told"']
      lengths.push(Promise.withResolvers<number>())
      return lengths.at(-1)!.promise
    },
    subscribe: async (channel: string, listener: (message: string) => void) => void subscribed.set(channel, listener),
    unsubscribe: async (channel: string) => void subscribed.delete(channel),
  } as unknown as RedisConnection
  const bell = createNotifier()
  const inboxes = createInboxes({ channels: createChannels(connection), connection, bell })
  const reader = () => inboxes.reader('r', 0, new AbortController().signal)
  const first = reader()
  const failed = first.pull()
  first.leave!()
  const second = reader()
  const opened = second.pull()
  await expect.poll(() => lengths.length).toBe(2)
  lengths[0]!.reject(new Error('Redis is away'))
  await expect(failed).rejects.toThrow('away')
  lengths[1]!.resolve(0)
  expect(await opened).toBe('again')
  expect(second.pull()).toBe('wait')
  const rung = new Promise<void>((resolve) => bell.wait('r', resolve))
  subscribed.get(keys.bell('r'))!('1')
  await rung
  expect(await second.pull()).toEqual({ value: { n: 1, key: 'key', message: 'told' } })
  second.leave!()
  await expect.poll(() => subscribed.size).toBe(0)
  inboxes.end()
})
