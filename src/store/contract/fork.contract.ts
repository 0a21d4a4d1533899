/** The contract of `fork`. */
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../part/log.ts'
import { cutAt, endEntry, entry, exampleRun, noon, startEntry } from '../example-run.contract.ts'
import { collect, delta, live, other, readAll } from './tools.contract.ts'
import { suspendedRun } from './views.contract.ts'

export function forkContract(current: () => Store): void {
  describe('fork', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    /** The entries of a run as those of a fork. */
    const as = (run: string, source: string, seq: number, entries = exampleRun('r', 20)) =>
      entries.slice(0, seq).map((each, i) => {
        const own = {
          runId: run,
          threadId: `thread_${run}`,
          forkedFrom: expect.objectContaining({ runId: source, seq }),
        }
        return i === 0 ? { ...each, ...own } : each
      })

    test('begins with its source’s entries up to a seq, for any split, and continues with its own', async () => {
      const entries = exampleRun('r', 20)
      for (const batch of cutAt(entries, [1, 4, 11, 12])) await store.log.append('r', 1, batch)
      for (let seq = 1; seq < entries.length; seq++) {
        const run = `fork${seq}`
        await store.log.fork('r', seq, run)
        const whole = [...as(run, 'r', seq), other(seq + 1), endEntry(seq + 2)]
        expect(await readAll(store, run)).toEqual(whole.slice(0, seq))
        expect(await store.log.claim(run, 1)).toBe(true)
        await store.log.append(run, 2, whole.slice(seq))
        for (const after of [0, 1, seq - 1, seq, seq + 1]) {
          expect(await readAll(store, run, after), `${seq} after ${after}`).toEqual(whole.slice(after))
        }
        expect(await collect(store.log.read(run, { before: seq + 2 }))).toEqual(whole.slice(0, seq + 1))
        expect(await store.runs.get(run)).toMatchObject({ status: 'completed', lastSeq: seq + 2, epoch: 2 })
      }
      expect(await readAll(store, 'r')).toEqual(entries)
    })

    test('of a fork reads through both', async () => {
      await store.log.append('r', 1, exampleRun('r', 20))
      await store.log.fork('r', 10, 'one')
      await store.log.append('one', 1, [other(11), other(12), other(13)])
      await store.log.fork('one', 12, 'two')
      await store.log.fork('one', 5, 'low')
      await store.log.append('two', 1, [delta(13), endEntry(14)])
      const two = [...as('two', 'one', 12).slice(0, 10), other(11), other(12), delta(13), endEntry(14)]
      for (const after of [0, 4, 9, 10, 11, 12, 13])
        expect(await readAll(store, 'two', after)).toEqual(two.slice(after))
      expect(await readAll(store, 'low')).toEqual(as('low', 'one', 5))
    })

    test('has its own row, with the data of its entries and the epoch of its source', async () => {
      await store.log.append('r', 1, suspendedRun('r', 500))
      await store.log.claim('r', 1)
      await store.log.append('r', 2, [endEntry(4)])
      await store.log.fork('r', 3, 'f')
      expect(await store.runs.get('f')).toMatchObject({
        id: 'f',
        threadId: 'thread_f',
        status: 'suspended',
        lastSeq: 3,
        epoch: 2,
      })
      expect(await store.runs.due(500)).toEqual([{ id: 'f', dueAt: 500 }])
      expect((await store.runs.list()).map(({ id }) => id)).toEqual(['f', 'r'])
      expect(await store.log.append('f', 2, suspendedRun('f', 500).slice(1))).toBe('duplicate')
    })

    test('counts from the time of the fork: its start, and its own first output', async () => {
      const at = (seq: number, ms: number, part: Parameters<typeof entry>[1], step = '') => ({
        ...entry(seq, part, step),
        timestamp: noon + ms,
      })
      const says = (seq: number, ms: number, id: string) => [
        at(seq, ms, { type: 'text-start', id }, 'main/a/1'),
        at(seq + 1, ms, { type: 'text-delta', id, delta: 'a' }, 'main/a/1'),
      ]
      await store.log.append('r', 1, [
        startEntry('r', {}, noon),
        at(2, 1, { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }, 'main/a'),
        ...says(3, 7, 'one'),
        at(5, 8, { type: 'suspend', requests: [] }),
      ])
      for (const [run, seq] of [
        ['going', 4],
        ['waiting', 5],
      ] as const) {
        await store.log.fork('r', seq, run, noon + 20_000)
        // Forking again later returns the same fork.
        await store.log.fork('r', seq, run, noon + 30_000)
        const [start] = await readAll(store, run)
        expect(start).toMatchObject({ timestamp: noon, forkedFrom: { runId: 'r', seq, at: noon + 20_000 } })
        const row = (await store.runs.get(run))!
        expect([row.startedAt, row.firstTokenMs], run).toEqual([noon + 20_000, undefined])
      }
      await store.log.append('going', 1, says(5, 20_093, 'two'))
      expect(await store.runs.get('going')).toMatchObject({ startedAt: noon + 20_000, firstTokenMs: 93 })
      const resume = at(6, 21_000, { type: 'resume', protocol: 'api' })
      await store.log.append('waiting', 1, [resume, ...says(7, 21_005, 'two')])
      expect(await store.runs.get('waiting')).toMatchObject({ startedAt: noon + 20_000, firstTokenMs: 5 })
      expect(await store.runs.get('r')).toMatchObject({ startedAt: noon, firstTokenMs: 7 })
      const since = await store.runs.list({ since: noon + 20_000 })
      expect(since.map(({ id }) => id).toSorted()).toEqual(['going', 'waiting'])
    })

    test('that is asked something else is called by that, and is found by its own words alone', async () => {
      const asks = (words: string) => ({ messages: [{ role: 'user', content: words }] })
      const resume = (seq: number, more: object) => entry(seq, { type: 'resume', protocol: 'api', ...more })
      const long = `Ünder ${'the bridge'.repeat(9)}`
      await store.log.append('r', 1, [
        startEntry('r', { input: { ...asks('A week in Rome'), city: 'Rome' } }),
        other(2),
      ])
      for (const run of ['same', 'asked', 'both', 'file', 'one']) {
        await store.log.fork('r', 2, run)
        await store.log.claim(run, 1)
      }
      await store.log.append('same', 2, [resume(3, { input: { city: 'Oslo', messages: [] } }), other(4)])
      await store.log.append('asked', 2, [resume(3, { input: asks('A DAY in Oslo') }), other(4)])
      await store.log.append('both', 2, [resume(3, { input: asks(long), agent: 'guide', pipeline: 'p' })])
      const image = { type: 'file', mediaType: 'image/png', data: 'AAAA' }
      await store.log.append('file', 2, [resume(3, { input: { messages: [{ role: 'user', content: [image] }] } })])
      await store.log.append('one', 2, [resume(3, { input: asks('First') }), resume(4, { input: asks('A year') })])
      // A fork of a fork has what this one was asked, and its end changes nothing.
      await store.log.fork('asked', 3, 'again')
      await store.log.append('asked', 2, [endEntry(5)])
      const found = async (q: string) => (await store.runs.list({ q })).map(({ id }) => id).join(' ')
      const look = async () => {
        const titles = (await store.runs.list()).map(({ id, title }) => `${id}: ${title}`)
        expect(titles).toEqual([
          'again: A DAY in Oslo',
          'one: A year',
          'file: undefined',
          `both: ${long}`,
          'asked: A DAY in Oslo',
          'same: A week in Rome',
          'r: A week in Rome',
        ])
        expect([await found('rome'), await found('week'), await found('oslo'), await found('a day')]).toEqual([
          'same r',
          'same r',
          'again asked',
          'again asked',
        ])
        expect([await found('ün bridgethe'), await found('first'), await found('year'), await found('')]).toEqual([
          'both',
          '',
          'one',
          'again one file both asked same r',
        ])
        expect((await store.runs.list({ search: 'oslo' })).map(({ id }) => id)).toEqual(['again', 'asked'])
        expect((await store.runs.list({ agent: 'guide' })).map(({ id }) => id)).toEqual(['both'])
      }
      await look()
      if (store.records !== undefined) {
        await store.records.reindex()
        await look()
      }
      await store.log.append('one', 2, [endEntry(5)])
      if (store.upkeep === undefined) return
      expect(await store.upkeep.drop('one')).toBe(true)
      expect([await found('year'), await found('a')]).toEqual(['', 'again asked same r'])
    })

    test('can be followed, also by readers that came earlier; only its own entries are changes', async () => {
      await store.log.append('r', 1, exampleRun('r'))
      const position = await store.log.position()
      const reader = readAll(store, 'f', 0, live())
      await turn()
      await store.log.fork('r', 4, 'f')
      await store.log.append('f', 1, [endEntry(5)])
      expect(await reader).toEqual([...as('f', 'r', 4), endEntry(5)])
      const changes = await collect(store.log.changes({ after: position }))
      expect(changes).toEqual([{ n: expect.any(Number), run: 'f', entries: [endEntry(5)] }])
    })

    test('the same again changes nothing; an id that is taken and an entry that is missing are refused', async () => {
      await store.log.append('r', 1, exampleRun('r'))
      await Promise.all([store.log.fork('r', 4, 'f'), store.log.fork('r', 4, 'f')])
      await store.log.append('f', 1, [other(5)])
      await store.log.fork('r', 4, 'f')
      expect(await readAll(store, 'f')).toHaveLength(5)
      const refused = (fork: Promise<void>, code: string) => expect(fork).rejects.toMatchObject({ code })
      await refused(store.log.fork('r', 3, 'f'), 'run-exists')
      await refused(store.log.fork('f', 4, 'r'), 'run-exists')
      await refused(store.log.fork('none', 1, 'g'), 'unknown-run')
      for (const seq of [0, 11, 1.5]) await refused(store.log.fork('r', seq, 'g'), 'bad-entry')
      await store.log.append('g', 1, [startEntry('g')])
      await refused(store.log.fork('r', 1, 'g'), 'run-exists')
    })
  })
}
