/** What a tail makes of messages that do not come, come twice, or come from somebody who does not know what was read. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createNotifier } from '../notifier.ts'
import { delta } from '../contract/tools.contract.ts'
import { createChannels } from './channels.ts'
import type { RedisConnection } from './connection.ts'
import { createKeys } from './keys.ts'
import type { RunHead, Pages } from './pages.ts'
import { createTails } from './tails.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A run with two entries, that is read. */
async function setUp() {
  let head: RunHead = { epoch: 1, seq: 2, status: 'running' }
  let say: (message: string) => void = () => {}
  const bell = createNotifier()
  const channels = {
    open: async (_: string, listener: typeof say) => void (say = listener),
    close: async () => {},
    end: () => {},
  }
  const stored = { head: async () => head, entries: async (_: string, after: number) => [delta(after + 1)] }
  const tails = createTails({ channels, keys: createKeys('p'), pages: stored as unknown as Pages, bell })
  const tail = tails.join('r')
  await tail.ready
  const message = (epoch: number, before: number, ...seqs: number[]) =>
    say(`${epoch} ${before} ${seqs.at(-1)} running\n${seqs.map((seq) => JSON.stringify(delta(seq))).join('\n')}`)
  return { tails, tail, bell, message, store: (next: RunHead) => void (head = next) }
}

test('hears what follows, skips what it has, and says after a gap that the stream must be read', async () => {
  const { tails, tail, message } = await setUp()
  message(1, 2, 3, 4)
  message(1, 2, 3, 4)
  expect(tail.recent.after(2)).toEqual([delta(3), delta(4)])
  message(1, 6, 7)
  expect(tail.head).toMatchObject({ seq: 7 })
  expect(tail.recent.after(4)).toBeUndefined()
  expect(tail.recent.after(6)).toEqual([delta(7)])
  expect(tail.error).toBeUndefined()
  tails.end()
})

test('looks for itself when it hears nothing', async () => {
  const { tails, tail, bell, store } = await setUp()
  const rung = vi.fn<() => void>()
  bell.wait('r', rung)
  store({ epoch: 1, seq: 5, status: 'running' })
  await vi.advanceTimersByTimeAsync(4000)
  expect(rung).toHaveBeenCalledOnce()
  expect(tail.head).toMatchObject({ seq: 5 })
  tails.end()
})

test('does not go on with what another owner wrote in the place of what was read', async () => {
  for (const [epoch, before, ...seqs] of [
    [2, 3, 4],
    [2, 3, 4, 5],
    [1, 3, 4, 5],
  ] as [number, number, ...number[]][]) {
    const { tails, tail, message } = await setUp()
    message(1, 2, 3, 4)
    message(epoch, before, ...seqs)
    expect(tail.error).toMatchObject({ code: 'store-lost' })
    tails.end()
  }
})

test('after a reconnect waits for what was read to be written again, and compares it', async () => {
  for (const [seq, code] of [
    [4, undefined],
    [3, 'store-lost'],
  ] as const) {
    const { tails, tail, message, store } = await setUp()
    message(1, 2, 3, 4)
    store({ epoch: 1, seq: 2, status: 'running' })
    tails.verifyAll()
    expect(tail.isSuspect).toBe(true)
    await vi.advanceTimersByTimeAsync(500)
    store({ epoch: 1, seq, status: 'running' })
    await vi.advanceTimersByTimeAsync(2500)
    expect(tail.isSuspect).toBe(false)
    expect((tail.error as { code?: string } | undefined)?.code).toBe(code)
    tails.end()
  }
  const { tails, tail, message, store } = await setUp()
  message(1, 2, 3)
  tail.last = { ...delta(3), timestamp: 1 }
  store({ epoch: 1, seq: 3, status: 'running' })
  tails.verifyAll()
  await vi.advanceTimersByTimeAsync(100)
  expect(tail.error).toMatchObject({ code: 'store-lost' })
  tails.end()
})

test('one that cannot be opened takes nothing from a newer one, and neither does who leaves it', async () => {
  const keys = createKeys('p')
  const subscribed = new Map<string, (message: string) => void>()
  const connection = {
    subscribe: async (channel: string, listener: (message: string) => void) => void subscribed.set(channel, listener),
    unsubscribe: async (channel: string) => void subscribed.delete(channel),
  } as unknown as RedisConnection
  const looks: PromiseWithResolvers<RunHead>[] = []
  const pages = {
    head: () => (looks.push(Promise.withResolvers<RunHead>()), looks.at(-1)!.promise),
  } as unknown as Pages
  const tails = createTails({ channels: createChannels(connection), keys, pages, bell: createNotifier() })
  const looked = (n: number) => expect.poll(() => looks.length).toBe(n)
  vi.useRealTimers()
  const first = tails.join('r')
  tails.leave('r', first)
  const second = tails.join('r')
  await looked(2)
  looks[0]!.reject(new Error('Redis is away'))
  await expect(first.ready).rejects.toThrow('away')
  looks[1]!.reject(new Error('Redis is away'))
  await expect(second.ready).rejects.toThrow('away')
  const third = tails.join('r')
  tails.leave('r', second)
  await looked(3)
  looks[2]!.resolve({ epoch: 1, seq: 2, status: 'running' })
  await third.ready
  subscribed.get(keys.live('r'))!(`1 2 3 running\n${JSON.stringify(delta(3))}`)
  expect(third.recent.after(2)).toEqual([delta(3)])
  tails.leave('r', third)
  await expect.poll(() => subscribed.size).toBe(0)
  tails.end()
})
