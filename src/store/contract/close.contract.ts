/** The contract of `close`. */
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Batch, Store } from '../../part/log.ts'
import { startEntry } from '../example-run.contract.ts'
import { delta, firstMessages, live, readAll } from './tools.contract.ts'

export function closeContract(current: () => Store): void {
  describe('close', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const append = (run: string, entries: Batch, epoch = 1) => store.log.append(run, epoch, entries)

    test('rejects after close, as everything else does', async () => {
      await append('r', [startEntry('r')])
      await store.close()
      const closed = { code: 'store-closed' }
      await expect(append('r', [delta(2)])).rejects.toMatchObject(closed)
      await expect(store.log.post('r', 'k', 1)).rejects.toMatchObject(closed)
      await expect(store.runs.get('r')).rejects.toMatchObject(closed)
      await expect(store.runs.list()).rejects.toMatchObject(closed)
      expect(await readAll(store, 'r')).toEqual([])
      await store.close()
    })

    test('close ends readers and inboxes that wait', async () => {
      await append('r', [startEntry('r')])
      const reader = readAll(store, 'r', 0, live())
      const inbox = firstMessages(store, 'r', 1, 0, live())
      await turn()
      await store.close()
      expect(await reader).toEqual([startEntry('r')])
      expect(await inbox).toEqual([])
    })

    test('close keeps the last appended entries', async () => {
      const appended = append('r', [startEntry('r')])
      await store.close()
      await appended
    })
  })
}
