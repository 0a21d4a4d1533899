/** Who is dead for whom, by a Redis that is played, with a clock that is turned by hand. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createHeartbeats, forgetAfter, type Heartbeats } from './heartbeat.ts'
import type { Channels } from './channels.ts'
import type { RedisConnection } from './connection.ts'
import { createRedisFleet } from './fleet.ts'
import { createKeys } from './keys.ts'
import { createStoreClock } from './store-clock.ts'

const keys = createKeys('p')
const channels: Channels = { open: async () => {}, close: async () => {}, end: () => {} }

beforeEach(() => void vi.useFakeTimers({ now: 1_800_000_000_000 }))
afterEach(() => void vi.useRealTimers())

/** Beats in Redis, which all are connected to. `ahead`: its clock, in ms. */
function createRedis({ ahead = 0 } = {}) {
  const clock = { ahead }
  const scores = new Map<string, number>()
  const takers = new Set<string>()
  let thawed = Promise.resolve()
  let thaw = () => {}

  function beat(id: string, takes: string): unknown {
    const now = Date.now() + clock.ahead
    if (takes !== 'look') scores.set(id, now)
    for (const [each, at] of scores) if (Math.abs(now - at) >= forgetAfter) scores.delete(each)
    if (takes === '1') takers.add(id)
    return [now, [...scores].flatMap(([each, at]) => [each, String(at)]), [...takers], 0]
  }

  return {
    scores,
    clock,
    freeze() {
      ;({ promise: thawed, resolve: thaw } = Promise.withResolvers<void>())
    },
    thaw: () => thaw(),
    /** `owned`: what is said of the runs of a process. */
    connect(owned: () => unknown = () => []) {
      const ups: (() => void)[] = []
      const connection = {
        keys,
        layout: { sharesTexts: true },
        async send(_key: string, [command, ...args]: string[]) {
          await thawed
          if (command === 'EVAL') return beat(args[4]!, args[5]!)
          if (command === 'ZSCORE') return scores.get(args[1]!) ?? null
          if (command === 'PUBSUB') return [args[1], 1]
          // The operation of a script.
          if (args[3] === 'owned') return [await owned()]
          return [args[3] === 'take' ? [''] : []]
        },
        ask: async () => 0,
        onUp: (listener: () => void) => ups.push(listener),
      } as unknown as RedisConnection
      return { connection, reconnect: () => ups.forEach((each) => each()) }
    },
  }
}

const opened: Pick<Heartbeats, 'stop'>[] = []
afterEach(() => opened.splice(0).forEach((each) => each.stop()))

async function join(redis: ReturnType<typeof createRedis>, id: string) {
  const { connection, reconnect } = redis.connect()
  const beats = createHeartbeats(connection, channels, id, () => true, createStoreClock(undefined))
  opened.push(beats)
  await beats.start()
  return { ...beats, reconnect }
}

test('who has not beaten steadily for two seconds judges nobody', async () => {
  const redis = createRedis()
  redis.scores.set('gone', Date.now() - 30_000)
  const late = await join(redis, 'late')
  await vi.advanceTimersByTimeAsync(1900)
  expect([late.isSteady(), late.dead(), late.alive()]).toEqual([false, [], ['late']])
  await vi.advanceTimersByTimeAsync(400)
  expect([late.isSteady(), late.dead()]).toEqual([true, ['gone']])
})

test('a Redis that was frozen or away lets nobody look dead: who is back first waits for two seconds', async () => {
  const redis = createRedis()
  const [a, b] = [await join(redis, 'a'), await join(redis, 'b')]
  await vi.advanceTimersByTimeAsync(3000)
  expect([a.isSteady(), a.alive()]).toEqual([true, ['a', 'b']])
  redis.freeze()
  b.stop()
  await vi.advanceTimersByTimeAsync(4000)
  expect(a.isSteady()).toBe(false)
  redis.thaw()
  // Its first beat is answered, and the last one of `b` is four seconds old.
  await vi.advanceTimersByTimeAsync(300)
  expect(a.alive()).toEqual(['a'])
  expect([a.isDisturbed(), a.dead()]).toEqual([true, []])
  await vi.advanceTimersByTimeAsync(1500)
  expect(a.dead()).toEqual([])
  await vi.advanceTimersByTimeAsync(600)
  expect(a.dead()).toEqual(['b'])
  // The connection breaks for a moment only.
  a.reconnect()
  await vi.advanceTimersByTimeAsync(1800)
  expect([a.isDisturbed(), a.dead()]).toEqual([true, []])
  await vi.advanceTimersByTimeAsync(600)
  expect(a.dead()).toEqual(['b'])
})

test('a Redis whose clock is set back is heard on: who is dead is judged two seconds later', async () => {
  const redis = createRedis()
  const [a, b] = [await join(redis, 'a'), await join(redis, 'b')]
  await vi.advanceTimersByTimeAsync(3000)
  redis.clock.ahead = -3_600_000
  await vi.advanceTimersByTimeAsync(300)
  expect([a.isSteady(), a.isDisturbed(), a.dead(), a.all()[0]?.age]).toEqual([false, true, [], 0])
  b.stop()
  await vi.advanceTimersByTimeAsync(3000)
  expect([a.isSteady(), a.dead()]).toEqual([true, ['b']])
})

test('its own age is the time since the last beat that was answered', async () => {
  const redis = createRedis()
  const { all } = await join(redis, 'a')
  redis.scores.set('b', Date.now())
  await vi.advanceTimersByTimeAsync(600)
  expect(all()).toEqual([
    { id: 'a', age: 0 },
    { id: 'b', age: 600 },
  ])
  redis.freeze()
  await vi.advanceTimersByTimeAsync(1500)
  expect(all()).toEqual([
    { id: 'a', age: 1500 },
    { id: 'b', age: 600 },
  ])
  redis.thaw()
  await vi.advanceTimersByTimeAsync(0)
  expect(all()[0]).toEqual({ id: 'a', age: 0 })
})

test('an owner that Redis has forgotten is dead; one that has come since the last beat is not', async () => {
  const redis = createRedis()
  const a = await join(redis, 'a')
  await a.findForgotten(new Set(['a', 'gone']))
  expect(a.dead()).toEqual([])
  await vi.advanceTimersByTimeAsync(2400)
  expect(a.dead()).toEqual(['gone'])
  redis.scores.set('new', Date.now())
  await a.findForgotten(new Set(['a', 'new', 'gone']))
  expect(a.dead()).toEqual(['gone'])
  // It was paused for all that time.
  redis.scores.set('gone', Date.now())
  await vi.advanceTimersByTimeAsync(300)
  expect(a.dead()).toEqual([])
})

test.each([
  { what: 'the search for runs', owned: () => new Promise(() => {}), found: [] },
  { what: 'their adoption', owned: () => ['r'], found: ['r'] },
])('beats do not wait for $what', async ({ owned, found }) => {
  const redis = createRedis()
  redis.scores.set('gone', Date.now() - 30_000)
  const search = vi.fn<() => unknown>(owned)
  const { connection } = redis.connect(search)
  const fleet = createRedisFleet({
    connection,
    channels,
    process: 'a',
    clock: createStoreClock(undefined),
    want: async () => false,
  })
  await fleet.start()
  const adopted: string[] = []
  const adoption = async () => {
    for await (const runs of fleet.wanted(new AbortController().signal)) {
      adopted.push(...runs)
      if (runs.length > 0) await new Promise(() => {})
    }
  }
  void adoption()
  await vi.advanceTimersByTimeAsync(2700)
  expect(search).toHaveBeenCalled()
  expect(adopted).toEqual(found)
  for (let i = 0; i < 20; i++) {
    expect(Date.now() - redis.scores.get('a')!).toBeLessThanOrEqual(300)
    await vi.advanceTimersByTimeAsync(300)
  }
})

test.each([
  [-2500, 'is 2.5 s ahead of that of Redis'],
  [7000, 'is 7.0 s behind that of Redis'],
])(
  'a clock from which that of Redis differs by %i ms is told of once, and again if it was right',
  async (ahead, words) => {
    const redis = createRedis({ ahead: 1500 })
    const told: string[] = []
    const { connection } = redis.connect()
    const clock = createStoreClock((message) => told.push(message))
    const beats = createHeartbeats(connection, channels, 'a', () => true, clock)
    opened.push(beats)
    await beats.start()
    await vi.advanceTimersByTimeAsync(900)
    expect(told).toEqual([])
    for (let i = 1; i < 3; i++) {
      await vi.advanceTimersByTimeAsync(10_000)
      redis.clock.ahead = ahead
      await vi.advanceTimersByTimeAsync(10_000)
      expect(told).toEqual(Array.from({ length: i }, () => expect.stringContaining(words)))
      redis.clock.ahead = 0
    }
  },
)
