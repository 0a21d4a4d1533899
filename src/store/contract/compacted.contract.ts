/** Runs with merged deltas, such as imported ones: their `seq`s have gaps. */
import { beforeEach, describe, expect, test } from 'vitest'
import { createCompaction } from '../../fold/compaction.ts'
import type { Store } from '../../part/log.ts'
import { exampleRun } from '../example-run.contract.ts'
import { collect, live, readAll } from './tools.contract.ts'

export function compactedContract(current: () => Store): void {
  describe('compacted runs', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    // The deltas are 4 to 13: 4 stays, 5 to 13 become one.
    const whole = createCompaction()(exampleRun('r', 10))
    const gone = { code: 'compacted', status: 410, message: expect.stringContaining('Use 4 or 13') }

    test('are stored and read as they are, from every entry on', async () => {
      expect(whole.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 13, 14, 15, 16])
      const reader = readAll(store, 'r', 0, live())
      expect(await store.log.append('r', 1, whole.slice(0, 4))).toBe('stored')
      expect(await store.log.append('r', 1, whole.slice(4))).toBe('stored')
      expect(await reader).toEqual(whole)
      for (const { seq } of whole)
        expect(await readAll(store, 'r', seq)).toEqual(whole.filter((each) => each.seq > seq))
      expect(await collect(store.log.read('r', { after: 3, before: 14 }))).toEqual(whole.slice(3, 5))
      expect(await store.log.append('r', 1, whole)).toBe('duplicate')
    })

    test('refuse a cursor among the merged deltas', async () => {
      await store.log.append('r', 1, whole)
      for (const after of [5, 9, 12]) await expect(readAll(store, 'r', after)).rejects.toMatchObject(gone)
    })

    test('are forked at every entry that is left, not among the merged deltas', async () => {
      await store.log.append('r', 1, whole)
      for (const [i, { seq }] of whole.entries()) {
        await store.log.fork('r', seq, `f${i}`)
        expect((await readAll(store, `f${i}`)).slice(1)).toEqual(whole.slice(1, i + 1))
      }
      for (const seq of [5, 12]) await expect(store.log.fork('r', seq, 'g')).rejects.toMatchObject(gone)
    })

    test('have no other gaps', async () => {
      const without = (seq: number) => whole.filter((each) => each.seq !== seq)
      for (const seq of [3, 14]) {
        await expect(store.log.append(`r${seq}`, 1, without(seq))).rejects.toMatchObject({ code: 'bad-entry' })
      }
    })
  })
}
