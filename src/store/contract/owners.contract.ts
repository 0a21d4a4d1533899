/** The contract of `claim` and the epoch. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Batch, Store } from '../../part/log.ts'
import { endEntry, entry, startEntry } from '../example-run.contract.ts'
import { delta, fenced, other, readAll } from './tools.contract.ts'

export function ownersContract(current: () => Store): void {
  describe('owners', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const append = (run: string, entries: Batch, epoch = 1) => store.log.append(run, epoch, entries)

    test('a claim fences the owner before, also one that was paused and comes back', async () => {
      await append('r', [startEntry('r'), delta(2)])
      expect(await store.log.claim('r', 1)).toBe(true)
      await fenced(append('r', [other(3)]))
      expect(await append('r', [delta(3)], 2)).toBe('stored')
      await fenced(append('r', [delta(3)]))
      await fenced(append('r', [delta(4)]))
      await append('r', [endEntry(4)], 2)
      await fenced(append('r', [delta(4)]))
      expect(await readAll(store, 'r')).toEqual([startEntry('r'), delta(2), delta(3), endEntry(4)])
      expect(await store.runs.get('r')).toMatchObject({ epoch: 2, lastSeq: 4 })
    })

    test('one of many claims of an epoch counts; none of a run that has ended or does not exist', async () => {
      await append('r', [startEntry('r')])
      const claims = await Promise.all(Array.from({ length: 20 }, () => store.log.claim('r', 1)))
      expect(claims.filter(Boolean)).toHaveLength(1)
      expect(await store.runs.get('r')).toMatchObject({ epoch: 2, status: 'running', lastSeq: 1 })
      await append('r', [endEntry(2)], 2)
      expect(await store.log.claim('r', 2)).toBe(false)
      expect(await store.log.claim('none', 1)).toBe(false)
      expect(await store.runs.get('none')).toBeUndefined()
    })

    test('a suspended run that is claimed is running', async () => {
      await append('r', [startEntry('r'), entry(2, { type: 'suspend', requests: [] })])
      const claimed = store.log.claim('r', 1)
      const resumed = append('r', [entry(3, { type: 'resume', protocol: 'chat' })], 2)
      expect([await claimed, await resumed]).toEqual([true, 'stored'])
      expect(await store.runs.get('r')).toMatchObject({ epoch: 2, status: 'running', lastSeq: 3 })
    })
  })
}
