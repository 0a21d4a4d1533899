/** The contract of the options of `read`. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Batch, ReadOptions, Store } from '../../part/log.ts'
import type { Entry } from '../../part/entry.ts'
import { cutAt, endEntry, entry, startEntry } from '../example-run.contract.ts'
import { collect, live } from './tools.contract.ts'

export function readOptionsContract(current: () => Store): void {
  describe('read with options', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const append = (run: string, entries: Batch, epoch = 1) => store.log.append(run, epoch, entries)

    test('any combination of seq range, limit, step and types returns the same entries as a filter', async () => {
      const entries = steps('r')
      for (const batch of cutAt(entries, [1, 2, 5, 9])) await append('r', batch)
      const all = [undefined, 0, 1, 3, 7, 50]
      for (const after of all)
        for (const before of all)
          for (const limit of all)
            for (const [step, types] of [
              ...[undefined, '', 'main', 'main/a', 'main/a/1', 'main/none'].map((path) => [path, undefined] as const),
              ...[undefined, 'main/a'].flatMap((path) => ofTypes.map((some) => [path, some] as const)),
            ]) {
              const expected = entries
                .filter(({ seq }) => seq > (after ?? 0) && seq < (before ?? 99))
                .filter((e) => !step || e.step === step || e.step.startsWith(`${step}/`))
                .filter(({ type }) => types?.includes(type) ?? true)
                .slice(0, limit)
              const options: ReadOptions = { after, before, limit, step, types }
              for (const signal of [undefined, live()]) {
                expect(await collect(store.log.read('r', { ...options, signal })), JSON.stringify(options)).toEqual(
                  expected,
                )
              }
            }
    })

    test('a step is followed until the run ends; a range only until it is full', async () => {
      const entries = steps('r')
      const step = collect(store.log.read('r', { step: 'main/a', signal: live() }))
      const range = collect(store.log.read('r', { after: 1, before: 4, signal: live() }))
      const two = collect(store.log.read('r', { limit: 2, step: 'main/a', signal: live() }))
      for (const each of entries.slice(0, -1)) await append('r', [each])
      expect(await range).toEqual(entries.slice(1, 3))
      expect(await two).toEqual([entries[1], entries[2]])
      await append('r', entries.slice(-1))
      expect(await step).toEqual(entries.filter((e) => /^main\/a(\/|$)/u.test(e.step)))
    })
  })
}

const ofTypes: Entry['type'][][] = [[], ['data'], ['run-end', 'run-start'], ['step-start'], ['data', 'run-end']]

/** A run with entries of two steps, one with steps below it. */
function steps(run: string): Entry[] {
  const paths = ['main/a', 'main/a/1', 'main/ab', 'main/a/1', 'main/a/2', 'main/b', 'main/a', 'main/a/10']
  const middle = paths.map((path, i) => entry(i + 2, { type: 'data', name: 'd', data: i }, path))
  return [startEntry(run), ...middle, endEntry(paths.length + 2)]
}
