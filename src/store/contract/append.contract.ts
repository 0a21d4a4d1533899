/** The contract of `append`. */
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Appended, Batch, Store } from '../../part/log.ts'
import { anyRun, cutAt, endEntry, exampleRun, startEntry } from '../example-run.contract.ts'
import { delta, fenced, live, other, readAll, refused } from './tools.contract.ts'
import { often } from '../../../test/support/thorough.ts'

export function appendContract(current: () => Store): void {
  describe('append', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const append = (run: string, entries: Batch, epoch = 1) => store.log.append(run, epoch, entries)

    test('keeps the order of entries for any split into batches', async () => {
      let n = 0
      await fc.assert(
        fc.asyncProperty(anyRun, fc.array(fc.nat(45)), fc.boolean(), async (make, cuts, wait) => {
          const run = `random-${n++}`
          const entries = make(run)
          const reader = readAll(store, run, 0, live())
          const appends: Promise<Appended>[] = []
          for (const batch of cutAt(entries, cuts)) {
            appends.push(append(run, batch))
            if (wait) await appends.at(-1)
          }
          await Promise.all(appends)
          expect(await reader).toEqual(entries)
          expect(await readAll(store, run)).toEqual(entries)
        }),
        { numRuns: often(60) },
      )
    })

    test('refuses a gap, another entry at a stored seq and an epoch that nobody claimed, and stores nothing of them', async () => {
      await append('r', [startEntry('r'), delta(2)])
      await refused(append('r', [other(2)]))
      await refused(append('r', [delta(2), other(2), delta(3)]))
      await refused(append('r', [delta(4)]))
      await refused(append('r', [delta(3), delta(5)]))
      await refused(append('r', [delta(3)], 2))
      await append('r', [delta(3)])
      await append('r', [endEntry(4)])
      expect(await readAll(store, 'r')).toEqual([startEntry('r'), delta(2), delta(3), endEntry(4)])
      expect(await store.runs.get('r')).toMatchObject({ epoch: 1, lastSeq: 4 })
    })

    test('a batch that is sent again, because its acknowledgement was lost, is stored once', async () => {
      const batches = cutAt(exampleRun('r'), [1, 5])
      for (const batch of batches) {
        expect(await append('r', batch)).toBe('stored')
        expect(await append('r', batch)).toBe('duplicate')
        // Like entries that another process read: equal, but not the same objects.
        expect(await append('r', structuredClone(batch))).toBe('duplicate')
      }
      expect(await append('r', exampleRun('r'))).toBe('duplicate')
      expect(await readAll(store, 'r')).toEqual(exampleRun('r'))
    })

    test('of a batch that is stored in part, the rest is stored', async () => {
      await append('r', [startEntry('r'), delta(2)])
      expect(await append('r', [delta(2), delta(3)])).toBe('stored')
      const both = [append('r', [delta(3), delta(4)]), append('r', [delta(3), delta(4), endEntry(5)])]
      expect(await Promise.all(both)).toEqual(['stored', 'stored'])
      expect(await readAll(store, 'r')).toEqual([startEntry('r'), delta(2), delta(3), delta(4), endEntry(5)])
    })

    test('refuses one writer of a tick without harming the others', async () => {
      await append('mine', [startEntry('mine')])
      const results = await Promise.allSettled([
        append('mine', [delta(2)]),
        append('mine', [other(2)]),
        append('mine', [delta(3)]),
        append('other', [startEntry('other')]),
        append('late', [delta(2)]),
      ])
      expect(results.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'fulfilled',
        'rejected',
      ])
      await append('mine', [endEntry(4)])
      expect((await readAll(store, 'mine')).map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
    })

    test('refuses anything after run-end', async () => {
      await append('r', exampleRun('r', 0))
      await fenced(append('r', [delta(7)]))
      await fenced(append('r', [other(6)]))
      await refused(append('s', [startEntry('s'), endEntry(2), delta(3)]))
      expect(await store.runs.get('s')).toBeUndefined()
    })

    test('refuses a run that does not begin with run-start', async () => {
      await refused(append('r', [delta(1)]))
      expect(await store.runs.get('r')).toBeUndefined()
    })

    test('stores a batch as it was, even if its owner changes it afterwards', async () => {
      const batch = [startEntry('r'), delta(2)]
      const appended = append('r', batch)
      batch.length = 0
      await appended
      await append('r', [endEntry(3)])
      expect(await readAll(store, 'r')).toHaveLength(3)
    })

    test('calls a function once for its entries', async () => {
      let asked = 0
      const start = () => [startEntry('r')].slice(asked++)
      const ends = () => [delta(2), endEntry(3)]
      await Promise.all([append('r', start), append('r', ends)])
      await append('empty', () => [])
      await expect(append('bad', () => [delta(1)])).rejects.toMatchObject({ code: 'bad-entry' })
      expect(asked).toBe(1)
      expect(await readAll(store, 'r')).toEqual([startEntry('r'), delta(2), endEntry(3)])
      expect((await store.runs.list()).map(({ id }) => id)).toEqual(['r'])
    })
  })
}
