/** The contract of `read`. */
import { getEventListeners } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Batch, Store } from '../../part/log.ts'
import type { Entry } from '../../part/entry.ts'
import { cutAt, endEntry, entry, exampleRun, startEntry } from '../example-run.contract.ts'
import { firstMessages, live, readAll } from './tools.contract.ts'

export function readContract(current: () => Store): void {
  describe('read', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const append = (run: string, entries: Batch, epoch = 1) => store.log.append(run, epoch, entries)

    test('after k gives exactly the rest, for every k', async () => {
      const entries = exampleRun('r', 20)
      for (const batch of cutAt(entries, [1, 4, 11, 12])) await append('r', batch)
      for (let k = 0; k <= entries.length + 1; k++) expect(await readAll(store, 'r', k)).toEqual(entries.slice(k))
    })

    test('one read can be iterated more than once', async () => {
      await append('r', exampleRun('r', 20))
      const asked = store.log.read('r', { after: 3, signal: live() })
      for (const time of [1, 2]) {
        const got: Entry[] = []
        for await (const batch of asked) got.push(...batch)
        expect({ time, got }).toEqual({ time, got: exampleRun('r', 20).slice(3) })
      }
    })

    test('many readers at different places get the same while it is appended', async () => {
      const entries = exampleRun('r', 2000)
      const cuts = entries.map((_, i) => i).filter((i) => i % 7 === 0)
      const readers: Promise<Entry[]>[] = []
      for (const batch of cutAt(entries, cuts)) {
        if (readers.length < 50) readers.push(readAll(store, 'r', readers.length * 3, live()))
        await append('r', batch)
      }
      const all = await Promise.all(readers)
      expect(all).toHaveLength(50)
      for (const [i, read] of all.entries()) expect(read).toEqual(entries.slice(i * 3))
    })

    test('a reader that lags replays in pages and then follows', async () => {
      const entries = exampleRun('r', 5000)
      const reader = store.log.read('r', { signal: live() })[Symbol.asyncIterator]()
      const got: Entry[] = []
      for (const batch of cutAt(
        entries,
        entries.map((_, i) => i).filter((i) => i % 11 === 0),
      )) {
        await append('r', batch)
        if (batch[0]!.seq % 5 === 0) got.push(...((await reader.next()).value ?? []))
      }
      for (let next = await reader.next(); !next.done; next = await reader.next()) got.push(...next.value)
      expect(got).toEqual(entries)
    })

    test('waits for a run that does not exist yet, and ends after run-end', async () => {
      const early = readAll(store, 'r', 0, live())
      await turn()
      await append('r', exampleRun('r'))
      expect(await early).toEqual(exampleRun('r'))
      expect(await readAll(store, 'r', 10, live())).toEqual([])
    })

    test('without a signal, ends with what is stored by now', async () => {
      expect(await readAll(store, 'r')).toEqual([])
      const entries = exampleRun('r', 3000).slice(0, -1)
      for (const batch of cutAt(entries, [1, 2, 2500])) await append('r', batch)
      expect(await readAll(store, 'r')).toEqual(entries)
      expect(await readAll(store, 'r', entries.length)).toEqual([])
      expect(await firstMessages(store, 'r', 1)).toEqual([])
    })

    test('without a signal, ends also if the run grows faster than it is read', async () => {
      const entries = exampleRun('r', 40_000)
      const batches = cutAt(
        entries,
        entries.map((_, i) => i).filter((i) => i % 1000 === 0),
      )
      for (const batch of batches.splice(0, 3)) await append('r', batch)
      const stored = 2000
      const got: Entry[] = []
      for await (const batch of store.log.read('r')) {
        got.push(...batch)
        for (const more of batches.splice(0, 3)) await append('r', more)
      }
      expect(batches.length).toBeGreaterThan(10)
      expect(got.length).toBeGreaterThanOrEqual(stored)
      expect(got).toEqual(entries.slice(0, got.length))
    })

    test('a suspended run keeps its readers', async () => {
      const suspend = entry(2, { type: 'suspend', requests: [] })
      const resume = entry(3, { type: 'resume', protocol: 'chat' })
      const reader = readAll(store, 'r', 0, live())
      await append('r', [startEntry('r'), suspend])
      await append('r', [resume])
      await append('r', [endEntry(4)])
      expect(await reader).toEqual([startEntry('r'), suspend, resume, endEntry(4)])
    })

    test('isolates readers from each other’s changes', async () => {
      const other = readAll(store, 'r', 0, live())
      const greedy = (async () => {
        for await (const batch of store.log.read('r', { signal: live() })) batch.length = 0
      })()
      await append('r', exampleRun('r'))
      await greedy
      expect(await other).toEqual(exampleRun('r'))
    })

    test('ends quietly when its signal aborts: before, while it waits, between batches', async () => {
      await append('r', [startEntry('r')])
      expect(await readAll(store, 'r', 0, AbortSignal.abort())).toEqual([])
      const waiting = new AbortController()
      const reader = readAll(store, 'r', 0, waiting.signal)
      await turn()
      waiting.abort()
      expect(await reader).toEqual([startEntry('r')])
      const between = new AbortController()
      let batches = 0
      for await (const _ of store.log.read('r', { signal: between.signal })) {
        batches++
        between.abort()
      }
      expect(batches).toBe(1)
    })

    test('leaving releases the signal, also of ten thousand readers', async () => {
      await append('r', [startEntry('r')])
      const { signal } = new AbortController()
      for (let i = 0; i < 10_000; i++) for await (const _ of store.log.read('r', { signal })) break
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
      const stuck = store.log.read('r', { after: 1, signal })[Symbol.asyncIterator]()
      const waiting = stuck.next()
      expect(getEventListeners(signal, 'abort')).toHaveLength(1)
      await stuck.return?.()
      expect(await waiting).toEqual({ value: undefined, done: true })
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    })
  })
}
