/** The fleet of several stores on one Redis. What needs processes that die is in test/fleet. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../part/log.ts'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { fleetContract } from '../contract/fleet.contract.ts'
import { ownersContract } from '../contract/owners.contract.ts'
import { suspendedRun } from '../contract/views.contract.ts'
import { startEntry } from '../example-run.contract.ts'
import { partitionOf } from './keys.ts'
import { redisStore } from './redis-store.ts'

const hourAhead = () => Date.now() + 3_600_000

describeRedis('the fleet on Redis', (redis) => {
  const stores: Store[] = []
  let prefix: string
  beforeEach(() => {
    prefix = freshPrefix()
  })
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close()
  })
  const open = async () => {
    const store = await redisStore(`${redis().url}?prefix=${prefix}`)
    stores.push(store)
    return store
  }
  const two = async () => [await open(), await open()] as const
  const watch = (store: Store, leave = new AbortController()) =>
    store.fleet.wanted(leave.signal)[Symbol.asyncIterator]()

  describe('of one process', () => {
    let store: Store
    beforeEach(async () => {
      store = await open()
    })
    fleetContract(() => store)
    ownersContract(() => store)
  })

  test('a run with a living owner cannot be claimed elsewhere; one that was given away can, and is announced at once', async () => {
    const [a, b] = await two()
    await a.log.append('r', 1, [startEntry('r')])
    expect(await b.log.claim('r', 1)).toBe(false)
    const wanted = watch(b)
    expect((await wanted.next()).value).toEqual([])
    const next = wanted.next()
    await a.fleet.want('r')
    expect((await next).value).toEqual(['r'])
    expect(await b.log.claim('r', 1)).toBe(true)
    expect(await a.log.claim('r', 2)).toBe(false)
    expect((await b.status!()).takeovers).toBe(1)
  })

  test('who only reads does not join: nobody sees it, and it sees the others', async () => {
    const [a] = await two()
    const reader = await redisStore(`${redis().url}?prefix=${prefix}`, { joins: false })
    stores.push(reader)
    expect((await reader.fleet.processes!()).map(({ self, alive }) => [self, alive])).toEqual([
      [false, true],
      [false, true],
    ])
    await sleep(350)
    expect(await a.fleet.processes!()).toHaveLength(2)
  })

  test('a process that closes is gone at once and gives its runs away', async () => {
    const [a, b] = await two()
    await a.log.append('r', 1, [startEntry('r')])
    const wanted = watch(b)
    await wanted.next()
    await a.close()
    expect((await wanted.next()).value).toEqual(['r'])
    await sleep(350)
    expect((await b.fleet.processes!()).map(({ self, runs }) => [self, runs])).toEqual([[true, 0]])
    expect(await b.log.claim('r', 1)).toBe(true)
  })

  test('a due run is a hint for one process; it comes back if nobody claims it', async () => {
    const [a, b] = await two()
    const wanted = [watch(a), watch(b)]
    for (const each of wanted) await each.next()
    const hints: number[] = []
    const all = wanted.map(async (each, i) => {
      for (let next = await each.next(); !next.done; next = await each.next()) hints.push(i)
    })
    const c = await open()
    await c.log.append('r', 1, suspendedRun('r', Date.now() + 50))
    await expect.poll(() => hints.length).toBe(1)
    await expect.poll(() => hints.length).toBe(2)
    await Promise.all([a.close(), b.close(), ...all])
  })

  test('whoever posts an answer to a suspended run and dies leaves a hint', async () => {
    const [a, b] = await two()
    await a.log.append('r', 1, suspendedRun('r', Date.now() + 3_600_000))
    const wanted = watch(b)
    expect((await wanted.next()).value).toEqual([])
    const open = (await a.log.read('r')[Symbol.asyncIterator]().next()).value!.find(
      ({ type }: { type: string }) => type === 'request',
    )
    await a.log.post('r', `answer:${open.requestId}`, {})
    expect((await wanted.next()).value).toEqual(['r'])
  })

  test('the same answer once more is a hint as well', async () => {
    const [a, b] = await two()
    await a.log.append('r', 1, suspendedRun('r', hourAhead()))
    const wanted = watch(b)
    await wanted.next()
    await a.log.post('r', 'answer:a', {})
    // As if whoever has looked at the run since had not understood it.
    await a.fleet.want('r', hourAhead(), 1)
    const next = wanted.next()
    expect(await a.log.post('r', 'answer:a', {})).toMatchObject({ first: false })
    expect((await next).value).toEqual(['r'])
  })

  test('what a process passes on comes to all others at once, and then less and less often', async () => {
    const all = [...(await two()), await open()]
    const seen = all.map((): string[] => [])
    const [a] = all as [Store, Store, Store]
    await a.log.append('r', 1, suspendedRun('r', hourAhead()))
    const soon = all.map(() => Promise.withResolvers<void>())
    const followers = all.map(async (store, i) => {
      const wanted = watch(store)
      await wanted.next()
      soon[i]!.resolve()
      for (let next = await wanted.next(); !next.done; next = await wanted.next())
        for (const run of next.value) {
          seen[i]!.push(run)
          // None of them can run it.
          await store.fleet.pass!(run)
        }
    })
    await Promise.all(soon.map(({ promise }) => promise))
    await a.fleet.pass!('r')
    await expect.poll(() => seen.slice(1).every((runs) => runs.includes('r'))).toBe(true)
    const key = `{${prefix}:${partitionOf('r')}}`
    const dueAt = async () => Number((await redis().command('ZSCORE', `${key}:due`, 'r')).split('\r\n')[1])
    const first = await dueAt()
    // As if they had passed it on for ten seconds.
    const passed = (await redis().command('HGET', `${key}:run:r`, 'passed')).split('\r\n')[1]!.split(' ')
    await redis().command('HSET', `${key}:run:r`, 'passed', `${(Number(passed[0]) - 10_000).toFixed(3)} ${passed[1]}`)
    await a.fleet.pass!('r')
    expect((await dueAt()) - first).toBeGreaterThan(7000)
    // An answer makes it new.
    await a.log.post('r', 'answer:a', {})
    expect((await dueAt()) - first).toBeLessThan(7000)
    await Promise.all(all.map((store) => store.close()))
    await Promise.all(followers)
  })

  test('readers are counted over all processes', async () => {
    const [a, b] = await two()
    const leave = a.fleet.attend('r')
    await expect.poll(() => b.fleet.attended('r')).toBe(true)
    expect(await b.fleet.attended('s')).toBe(false)
    const again = b.fleet.attend('r')
    leave()
    // The other one's subscription does not count for this one's readers, and this one's own has ended.
    await expect.poll(() => a.fleet.attended('r')).toBe(true)
    again()
    expect(await b.fleet.attended('r')).toBe(false)
    expect(await a.fleet.attended('r')).toBe(false)
    for (let i = 0; i < 20; i++) b.fleet.attend('r')()
    const last = b.fleet.attend('r')
    await expect.poll(() => a.fleet.attended('r')).toBe(true)
    last()
    await expect.poll(() => a.fleet.attended('r')).toBe(false)
  })

  test('processes say who they are and how many runs they have', async () => {
    const [a, b] = await two()
    await a.log.append('r', 1, [startEntry('r')])
    await a.fleet.introduce!({ version: '1.2.3', url: 'http://a' })
    await expect.poll(async () => (await b.fleet.processes!()).length).toBe(2)
    const [self, other] = await b.fleet.processes!()
    expect(self).toMatchObject({ self: true, alive: true, runs: 0, draining: false, pid: process.pid })
    expect(other).toMatchObject({ self: false, alive: true, runs: 1, version: '1.2.3', url: 'http://a' })
    await a.fleet.introduce!({ draining: true })
    expect((await b.fleet.processes!())[1]).toMatchObject({ draining: true, url: 'http://a' })
  })
})
