/** The contract of the changes of all runs. */
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Change, Store } from '../../part/log.ts'
import { cutAt, endEntry, exampleRun, startEntry } from '../example-run.contract.ts'
import { collect, delta, live } from './tools.contract.ts'

export function changesContract(current: () => Store): void {
  describe('changes', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const append = (run: string, ...entries: Entry[]) => store.log.append(run, 1, entries)
    const said = (changes: Change[]) => changes.flatMap(({ run, entries }) => entries.map(({ seq }) => `${run}${seq}`))
    const rising = (changes: Change[]) => changes.every(({ n }, i) => n > (changes[i - 1]?.n ?? 0))

    /** Follows until the run `end` starts. */
    async function followed(after = 0): Promise<Change[]> {
      const changes: Change[] = []
      for await (const batch of store.log.changes({ after, signal: live() })) {
        changes.push(...batch)
        if (batch.some(({ run }) => run === 'end')) break
      }
      return changes
    }

    test('are all batches of all runs, in the order in which they were stored', async () => {
      expect(await collect(store.log.changes())).toEqual([])
      expect(await store.log.position()).toBe(0)
      await append('a', startEntry('a'))
      await append('b', startEntry('b'), delta(2))
      await append('a', delta(2))
      await append('b', endEntry(3))
      const changes = await collect(store.log.changes())
      expect(said(changes)).toEqual(['a1', 'b1', 'b2', 'a2', 'b3'])
      expect(changes[1]!.entries).toEqual([startEntry('b'), delta(2)])
      expect(rising(changes)).toBe(true)
      expect(await store.log.position()).toBe(changes.at(-1)!.n)
    })

    test('from any position on are exactly the rest', async () => {
      for (let i = 0; i < 5; i++)
        for (const batch of cutAt(exampleRun(`r${i}`), [2, 3, 7])) await append(`r${i}`, ...batch)
      const all = await collect(store.log.changes())
      expect(said(all)).toHaveLength(50)
      for (const [i, { n }] of all.entries()) {
        expect(await collect(store.log.changes({ after: n }))).toEqual(all.slice(i + 1))
      }
    })

    test('live: readers that come early, late and in between get each entry once, also those that are slow', async () => {
      const early = followed()
      const slow = (async () => {
        const changes: Change[] = []
        for await (const batch of store.log.changes({ signal: live() })) {
          changes.push(...batch)
          if (batch.some(({ run }) => run === 'end')) break
          for (let i = 0; i < 20; i++) await turn()
        }
        return changes
      })()
      const runs = Array.from({ length: 5 }, (_, i) => `r${i}`)
      await Promise.all(runs.map((run) => append(run, startEntry(run))))
      const between = followed(await store.log.position())
      for (let seq = 2; seq < 100; seq++) await Promise.all(runs.map((run) => append(run, delta(seq))))
      const late = followed()
      await append('end', startEntry('end'))
      const all = await collect(store.log.changes())
      expect(said(all)).toHaveLength(5 * 99 + 1)
      for (const changes of [await early, await slow, await late]) {
        expect(changes).toEqual(all)
        expect(rising(changes)).toBe(true)
      }
      expect(said(await between)).toEqual(said(all).slice(5))
    })

    test('duplicates, claims and refused batches are no changes', async () => {
      await append('a', startEntry('a'))
      await append('a', startEntry('a'))
      await store.log.claim('a', 1)
      await append('a', delta(2))
      await append('b', delta(2)).catch(() => undefined)
      expect(said(await collect(store.log.changes()))).toEqual(['a1'])
    })

    test('a reader that changes its batch does not affect other readers', async () => {
      const other = followed()
      const greedy = (async () => {
        for await (const batch of store.log.changes({ signal: live() })) {
          for (const { entries } of batch) entries.length = 0
          if (batch.some(({ run }) => run === 'end')) break
          batch.length = 0
        }
      })()
      await append('a', startEntry('a'), delta(2))
      await append('end', startEntry('end'))
      await greedy
      expect(said(await other)).toEqual(['a1', 'a2', 'end1'])
    })

    test('end when the signal aborts and when the store is closed', async () => {
      const leave = new AbortController()
      const ends = [leave.signal, live()].map((signal) => collect(store.log.changes({ signal })))
      await turn()
      leave.abort()
      expect(await ends[0]).toEqual([])
      await store.close()
      expect(await ends[1]).toEqual([])
    })
  })
}
