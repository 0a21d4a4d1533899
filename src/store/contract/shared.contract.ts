/** The contract of two stores on one place, as in two processes. With a store in memory both are the same. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, Store } from '../../part/log.ts'
import { endEntry, entry, exampleRun, noon, startEntry } from '../example-run.contract.ts'
import { collect, delta, firstMessages, live, other, readAll } from './tools.contract.ts'
import { auditRow } from './ledger.contract.ts'
import { suspendedRun } from './views.contract.ts'

export function sharedContract(name: string, make: () => Promise<readonly [Store, Store]>): void {
  describe(`two stores, ${name}`, () => {
    let one: Store
    let two: Store
    beforeEach(async () => {
      ;[one, two] = await make()
    })
    afterEach(() => Promise.all([one.close(), two.close()]))

    test('the older epoch is refused though it knew the run', async () => {
      await one.log.append('r', 1, [startEntry('r'), delta(2)])
      const claims = await Promise.all([one.log.claim('r', 1), two.log.claim('r', 1)])
      expect(claims.filter(Boolean)).toHaveLength(1)
      await Promise.all([one.fleet.want('r'), two.fleet.want('r')])
      expect(await two.log.claim('r', 2)).toBe(true)
      expect(await two.log.append('r', 3, [delta(3)])).toBe('stored')
      expect(await one.log.append('r', 1, [delta(3)])).toBe('fenced')
      expect(await one.log.append('r', 2, [other(4)])).toBe('fenced')
      expect(await two.log.append('r', 3, [endEntry(4)])).toBe('stored')
      for (const store of [one, two]) {
        expect(await readAll(store, 'r')).toEqual([startEntry('r'), delta(2), delta(3), endEntry(4)])
      }
    })

    test('a run goes to and fro: each claim fences the other, and both read the same', async () => {
      const reader = readAll(one, 'r', 0, live())
      await one.log.append('r', 1, [startEntry('r'), entry(2, { type: 'suspend', requests: [] })])
      const whole = [startEntry('r'), entry(2, { type: 'suspend', requests: [] })]
      for (let epoch = 1; epoch < 8; epoch++) {
        const [owner, before] = epoch % 2 === 0 ? [one, two] : [two, one]
        expect(await owner.log.claim('r', epoch)).toBe(true)
        expect(await before.log.append('r', epoch, [other(whole.length + 1)])).toBe('fenced')
        const more = [
          entry(whole.length + 1, { type: 'resume', protocol: 'api' }),
          delta(whole.length + 2),
          entry(whole.length + 3, { type: 'suspend', requests: [] }),
        ]
        expect(await owner.log.append('r', epoch + 1, more.slice(0, 1))).toBe('stored')
        expect(await owner.log.append('r', epoch + 1, more.slice(1))).toBe('stored')
        whole.push(...more)
        expect(await before.runs.get('r')).toMatchObject({ epoch: epoch + 1, lastSeq: whole.length })
      }
      expect(await one.log.claim('r', 8)).toBe(true)
      whole.push(endEntry(whole.length + 1))
      await one.log.append('r', 9, whole.slice(-1))
      expect(await reader).toEqual(whole)
      expect(await readAll(two, 'r')).toEqual(whole)
    })

    test('a text that one store has written is not written again by the other, and both read all of it', async () => {
      const entries = exampleRun('r')
      await one.log.append('r', 1, entries)
      const reader = readAll(two, 'r', 0, live())
      expect(await two.log.append('r', 1, entries)).toBe('duplicate')
      expect(await two.log.append('r', 1, entries.slice(0, 3))).toBe('duplicate')
      expect(await reader).toEqual(entries)
      expect(await readAll(two, 'r', 0, live())).toEqual(entries)
      expect(await two.runs.get('r')).toMatchObject({ lastSeq: entries.length, status: 'completed' })
    })

    test('sums, marks and the audit are those of all', async () => {
      if (one.ledger === undefined || two.ledger === undefined) return
      const until = Date.now() + 60_000
      const count = (store: Store, position: number) =>
        store.ledger!.add('b', [{ key: 'k', amount: 2, until }], { key: 'run', position, until })
      const sums = await Promise.all([count(one, 1), count(two, 1), count(one, 1), count(two, 1)])
      expect(sums).toEqual([[2], [2], [2], [2]])
      expect(await count(two, 2)).toEqual([4])
      for (const store of [one, two]) {
        expect(await store.ledger!.read('b', ['k'])).toEqual([4])
        expect(await store.ledger!.mark('b', 'run')).toBe(2)
        await store.audit!.add(auditRow())
      }
      for (const store of [one, two]) expect(await store.audit!.list({ tenant: 'acme' })).toHaveLength(2)
    })

    test('one message per key counts, from whichever process', async () => {
      const posts = await Promise.all([one, two, one, two].map((store, i) => store.log.post('r', 'k', i)))
      expect(posts.filter(({ first }) => first)).toHaveLength(1)
      for (const { message } of posts) expect(message).toBe(posts[0]!.message)
    })

    test('runs that one store writes can be listed, read and forked in the other', async () => {
      await one.log.append('a', 1, exampleRun('a'), () => ({ seq: 10, view: { text: 'all' } }))
      await two.log.append('b', 1, suspendedRun('b', noon + 5))
      for (const store of [one, two]) {
        expect((await store.runs.list()).map(({ id }) => id)).toEqual(['b', 'a'])
        expect(await store.runs.get('a')).toMatchObject({ status: 'completed', lastSeq: 10 })
        expect(await store.runs.view('a')).toEqual({ seq: 10, view: { text: 'all' } })
        expect(await store.runs.due(noon + 5)).toEqual([{ id: 'b', dueAt: noon + 5 }])
        expect(await readAll(store, 'a', 3)).toEqual(exampleRun('a').slice(3))
      }
      await Promise.all([one.log.fork('a', 4, 'c'), two.log.fork('a', 4, 'c')])
      await expect(two.log.fork('a', 5, 'c')).rejects.toMatchObject({ code: 'run-exists' })
      expect(await one.log.claim('c', 1)).toBe(true)
      expect((await readAll(two, 'c')).slice(1)).toEqual(exampleRun('a').slice(1, 4))
    })

    test('a reader of one store gets the entries of the other, in the order in which they were stored', async () => {
      await one.log.append('r', 1, [startEntry('r'), delta(2)])
      const reader = readAll(two, 'r', 0, live())
      const inbox = firstMessages(two, 'r', 1, 0, live())
      const seen: string[] = []
      const changes = (async () => {
        for await (const batch of two.log.changes({ signal: live() })) {
          for (const { run, entries } of batch) for (const { seq } of entries) seen.push(`${run}${seq}`)
          if (seen.includes('r7')) break
        }
      })()
      await one.log.append('r', 1, [delta(3)])
      await two.log.append('s', 1, [startEntry('s')])
      await one.log.append('r', 1, [delta(4)])
      await two.log.append('s', 1, [delta(2)])
      await two.log.append('s', 1, [endEntry(3)])
      await one.log.append('r', 1, [delta(5)])
      await one.log.post('r', 'stop', {})
      // From here on the other store writes nothing, so new entries must come from the first.
      expect(await inbox).toMatchObject([{ key: 'stop' }])
      await one.log.append('r', 1, [delta(6), endEntry(7)])
      expect((await reader).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7])
      await changes
      expect(seen).toEqual(['r1', 'r2', 'r3', 's1', 'r4', 's2', 's3', 'r5', 'r6', 'r7'])
    })

    test('changes of many runs that both store at once come to each reader in one order, from any position', async () => {
      const runs = Array.from({ length: 20 }, (_, i) => `r${i}`)
      const follow = async (store: Store, after = 0) => {
        const found: Change[] = []
        for await (const batch of store.log.changes({ after, signal: live() })) {
          found.push(...batch)
          if (batch.some(({ run }) => run === 'end')) break
        }
        return found
      }
      const readers = [one, two].map((store) => follow(store))
      const write = async (run: string, i: number) => {
        const store = i % 2 === 0 ? one : two
        await store.log.append(run, 1, [startEntry(run)])
        for (let seq = 2; seq < 12; seq++) await store.log.append(run, 1, [delta(seq)])
      }
      const written = Promise.all(runs.map(write))
      // Every later change has a greater position.
      const position = await two.log.position()
      const late = follow(one, position)
      await written
      await one.log.append('end', 1, [startEntry('end')])
      const all = await collect(two.log.changes())
      expect(all).toHaveLength(20 * 11 + 1)
      expect(all.every(({ n }, i) => n > (all[i - 1]?.n ?? 0))).toBe(true)
      for (const reader of readers) expect(await reader).toEqual(all)
      expect(await late).toEqual(all.filter(({ n }) => n > position))
    })
  })
}
