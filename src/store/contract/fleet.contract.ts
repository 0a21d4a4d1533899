/** The contract of the fleet within one process. */
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../part/log.ts'
import { startEntry } from '../example-run.contract.ts'
import { suspendedRun } from './views.contract.ts'

export function fleetContract(current: () => Store): void {
  describe('fleet', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const hour = 3_600_000
    const watch = (signal = new AbortController().signal) => store.fleet.wanted(signal)[Symbol.asyncIterator]()
    const add = (run: string, ...deadlines: number[]) => store.log.append(run, 1, suspendedRun(run, ...deadlines))

    test('lists first the runs without an owner that are due, answered, stopped or waiting for nothing', async () => {
      const later = Date.now() + hour
      await store.log.append('running', 1, [startEntry('running')])
      await add('waiting', later)
      await add('due', later, Date.now() - 1)
      await add('answered', later, later)
      await store.log.post('answered', 'answer:b', {})
      await add('stopped', later)
      await store.log.post('stopped', 'stop', {})
      await add('nothing')
      await add('not-open', later)
      await store.log.post('not-open', 'answer:z', {})
      await store.log.post('waiting', 'other', {})
      expect((await watch().next()).value).toEqual(['due', 'answered', 'stopped', 'nothing'])
    })

    test('the first batch comes at once, even if nothing was left', async () => {
      expect(await watch().next()).toEqual({ value: [], done: false })
    })

    test('then lists announced runs: once each until read, also those announced before', async () => {
      await store.fleet.want('before')
      const wanted = watch()
      expect((await wanted.next()).value).toEqual(['before'])
      const next = wanted.next()
      await turn()
      for (const run of ['a', 'b', 'a']) await store.fleet.want(run)
      expect((await next).value![0]).toBe('a')
      for (const run of ['c', 'd', 'c']) await store.fleet.want(run)
      expect((await wanted.next()).value!.slice(-2)).toEqual(['c', 'd'])
    })

    test('a deadline comes when it has passed; a later one replaces it, a claim ends it', async () => {
      const wanted = watch()
      await wanted.next()
      let at: number, replaced: string[]
      // On a slow machine the near deadline passes before it is replaced: then it is retried with more time.
      for (let ms = 150; ; ms *= 4) {
        replaced = [`claimed-${ms}`, `postponed-${ms}`]
        await add(replaced[0]!, Date.now() + hour)
        at = Date.now() + ms
        await store.fleet.want(replaced[0]!, at)
        expect(await store.log.claim(replaced[0]!, 1)).toBe(true)
        await store.fleet.want(replaced[1]!, at)
        await store.fleet.want(replaced[1]!, at + hour)
        if (Date.now() < at || ms > 30_000) break
      }
      await store.fleet.want('never', at + 3e12)
      at = Math.max(at, Date.now()) + 50
      await store.fleet.want('soon', at)
      const found: string[] = []
      while (!found.includes('soon')) found.push(...(await wanted.next()).value!)
      expect(Date.now()).toBeGreaterThanOrEqual(at - 1)
      for (const run of [...replaced, 'never']) expect(found).not.toContain(run)
    })

    test.each([
      { order: 'before', seen: 0 },
      { order: 'before, and was seen', seen: 1 },
      { order: 'after', seen: 0 },
    ])('an answer counts if it comes $order the deadline of a process that reconciles', async ({ order, seen }) => {
      const later = Date.now() + hour
      await add('r', later)
      const wanted = watch()
      await wanted.next()
      const wait = () => store.fleet.want('r', later, seen)
      if (order === 'after') await wait()
      await store.log.post('r', 'answer:a', {})
      if (order === 'after') await store.fleet.want('r')
      else await wait()
      await store.fleet.want('soon', Date.now() + 200)
      const found: string[] = []
      // A run whose reply was seen is not reported again.
      while (!found.includes(seen === 1 ? 'soon' : 'r')) found.push(...(await wanted.next()).value!)
      expect(found.includes('r')).toBe(seen === 0)
    })

    test('a deadline that nobody announced, because it is of an earlier process, comes too', async () => {
      const at = Date.now() + 40
      await add('left', at)
      const wanted = watch()
      const found: string[] = []
      // Until a slow store has checked for the first time, the run may count as due.
      while (found.length === 0) found.push(...(await wanted.next()).value!)
      expect(found).toEqual(['left'])
      expect(Date.now()).toBeGreaterThanOrEqual(at - 1)
    })

    test('ends when its signal aborts and when the store is closed', async () => {
      const leave = new AbortController()
      const [first, second] = [watch(leave.signal), watch()]
      for (const each of [first, second]) await each.next()
      const ends = [first.next(), second.next()]
      leave.abort()
      expect(await ends[0]).toEqual({ value: undefined, done: true })
      await store.close()
      expect(await ends[1]).toEqual({ value: undefined, done: true })
      expect(await watch().next()).toEqual({ value: undefined, done: true })
    })

    test('a run is attended while one client reads it', async () => {
      const { fleet } = store
      // Other processes see it a little later.
      const nobodyReads = async (run: string) => {
        if (fleet.shared) await expect.poll(() => fleet.attended(run)).toBe(false)
        else expect(await fleet.attended(run)).toBe(false)
      }
      await nobodyReads('r')
      const [one, two] = [fleet.attend('r'), fleet.attend('r')]
      one()
      one()
      expect(await fleet.attended('r')).toBe(true)
      await nobodyReads('s')
      two()
      await nobodyReads('r')
    })
  })
}
