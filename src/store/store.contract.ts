/** The tests that every store must pass: `storeContract('memory', () => memoryStore())`. */
import { getEventListeners } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import type { Appended, Batch, InboxMessage, ReadOptions, RunRow, Store } from '../part/log.ts'
import { anyRun, cutAt, endEntry, entry, exampleRun, noon, startEntry } from './example-run.contract.ts'

/** Reads everything stored so far; with a signal, reads until the run ends. */
export async function readAll(store: Store, run: string, after?: number, signal?: AbortSignal): Promise<Entry[]> {
  return collect(store.log.read(run, { after, signal }))
}

export async function collect<T>(batches: AsyncIterable<T[]>): Promise<T[]> {
  const all: T[] = []
  for await (const batch of batches) all.push(...batch)
  return all
}

/** A run with entries of two steps, one with steps below it. */
function steps(run: string): Entry[] {
  const paths = ['main/a', 'main/a/1', 'main/ab', 'main/a/1', 'main/a/2', 'main/b', 'main/a', 'main/a/10']
  const middle = paths.map((path, i) => entry(i + 2, { type: 'data', name: 'd', data: i }, path))
  return [startEntry(run), ...middle, endEntry(paths.length + 2)]
}

/** A signal that never aborts, to follow a run. */
export const live = () => new AbortController().signal

export function storeContract(name: string, make: () => Store): void {
  describe(`${name} store`, () => {
    let store: Store
    beforeEach(() => {
      store = make()
    })
    afterEach(() => store.close())
    const append = (run: string, entries: Batch, epoch = 1) => store.log.append(run, epoch, entries)
    const fenced = async (promise: Promise<Appended>) => expect(await promise).toBe('fenced')
    const refused = (promise: Promise<Appended>) => expect(promise).rejects.toMatchObject({ code: 'bad-entry' })
    const delta = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}` })
    const other = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: 'other' })

    describe('append', () => {
      test('keeps entries in order, whatever the cuts', async () => {
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
          { numRuns: 60 },
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
          // As another process has it that read it: equal, but not the same objects.
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

      test('takes a batch that its owner changes afterwards as it was', async () => {
        const batch = [startEntry('r'), delta(2)]
        const appended = append('r', batch)
        batch.length = 0
        await appended
        await append('r', [endEntry(3)])
        expect(await readAll(store, 'r')).toHaveLength(3)
      })

      test('asks a function once for what it appends', async () => {
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
    })

    describe('read', () => {
      test('after k gives exactly the rest, for every k', async () => {
        const entries = exampleRun('r', 20)
        for (const batch of cutAt(entries, [1, 4, 11, 12])) await append('r', batch)
        for (let k = 0; k <= entries.length + 1; k++) expect(await readAll(store, 'r', k)).toEqual(entries.slice(k))
      })

      test('what was asked for may be read more than once', async () => {
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

      test('between two seqs, at most so many, of one step: every combination gives what a filter gives', async () => {
        const entries = steps('r')
        for (const batch of cutAt(entries, [1, 2, 5, 9])) await append('r', batch)
        const all = [undefined, 0, 1, 3, 7, 50]
        for (const after of all)
          for (const before of all)
            for (const limit of all)
              for (const step of [undefined, '', 'main', 'main/a', 'main/a/1', 'main/none']) {
                const expected = entries
                  .filter(({ seq }) => seq > (after ?? 0) && seq < (before ?? 99))
                  .filter((e) => !step || e.step === step || e.step.startsWith(`${step}/`))
                  .slice(0, limit)
                const options: ReadOptions = { after, before, limit, step }
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

      test('a suspended run keeps its readers', async () => {
        const suspend = entry(2, { type: 'suspend', requests: [] })
        const resume = entry(3, { type: 'resume', protocol: 'chat' })
        const reader = readAll(store, 'r', 0, live())
        await append('r', [startEntry('r'), suspend])
        await append('r', [resume])
        await append('r', [endEntry(4)])
        expect(await reader).toEqual([startEntry('r'), suspend, resume, endEntry(4)])
      })

      test('does not let one reader change what another gets', async () => {
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

      test('close ends readers and inboxes that wait', async () => {
        await append('r', [startEntry('r')])
        const reader = readAll(store, 'r', 0, live())
        const inbox = firstMessages(store, 'r', 1, 0, live())
        await turn()
        await store.close()
        expect(await reader).toEqual([startEntry('r')])
        expect(await inbox).toEqual([])
      })

      test('close keeps what was appended just before', async () => {
        const appended = append('r', [startEntry('r')])
        await store.close()
        await appended
      })
    })

    describe('inbox', () => {
      test('one of fifty posts of a key wins, and all are told its message', async () => {
        const posts = Array.from({ length: 50 }, (_, i) => store.log.post('r', 'answer:1', { i, nested: [i] }))
        const results = await Promise.all(posts)
        const winners = results.filter(({ first }) => first)
        expect(winners).toHaveLength(1)
        for (const { message } of results) expect(message).toEqual(winners[0]!.message)
        expect(await store.log.post('r', 'answer:1', 'late')).toEqual({ ...winners[0], first: false })
        expect(await store.log.post('s', 'answer:1', 'another run')).toEqual({ first: true, message: 'another run' })
      })

      test('gives what is left in order, then live, and goes on after n', async () => {
        await store.log.post('r', 'a', 1)
        const reader = firstMessages(store, 'r', 3, 0, live())
        await turn()
        await store.log.post('r', 'b', { two: 2 })
        await store.log.post('r', 'b', 'lost')
        await store.log.post('r', 'c', null)
        const messages = [
          { n: 1, key: 'a', message: 1 },
          { n: 2, key: 'b', message: { two: 2 } },
          { n: 3, key: 'c', message: null },
        ]
        expect(await reader).toEqual(messages)
        expect(await firstMessages(store, 'r', 9, 1)).toEqual(messages.slice(1))
      })

      test('ends quietly when its signal aborts', async () => {
        const controller = new AbortController()
        const reader = firstMessages(store, 'r', 1, 0, controller.signal)
        await turn()
        controller.abort()
        expect(await reader).toEqual([])
      })
    })

    describe('runs', () => {
      test('a row follows its run', async () => {
        const input = { messages: [{ role: 'user', content: ' What is\n the time? ' }] }
        await append('r', [startEntry('r', { input, labels: { chat: 'c' }, parentRunId: 'p' })])
        const row: RunRow = {
          id: 'r',
          agent: 'echo',
          threadId: 'thread-1',
          parentRunId: 'p',
          protocol: 'api',
          status: 'running',
          startedAt: noon,
          updatedAt: noon,
          lastSeq: 1,
          epoch: 1,
          title: 'What is the time?',
        }
        expect(await store.runs.get('r')).toEqual(row)
        await append('r', [delta(2), entry(3, { type: 'suspend', requests: [] })])
        expect(await store.runs.get('r')).toEqual({ ...row, status: 'suspended', lastSeq: 3, updatedAt: noon + 3 })
        await store.log.claim('r', 1)
        await append('r', [entry(4, { type: 'resume', protocol: 'chat' }), delta(5)], 2)
        expect(await store.runs.get('r')).toEqual({ ...row, lastSeq: 5, updatedAt: noon + 5, epoch: 2 })
        const usage = { inputTokens: 1, source: 'estimated' as const }
        const error = { code: 'boom', message: 'It broke.' }
        const end = entry(6, { type: 'run-end', outcome: 'failed', usage, cost: 0.5, error })
        await append('r', [end], 2)
        const ended = { status: 'failed', lastSeq: 6, updatedAt: noon + 6, endedAt: noon + 6, epoch: 2 }
        expect(await store.runs.get('r')).toEqual({ ...row, ...ended, usage, cost: 0.5, error })
        expect(await store.runs.get('none')).toBeUndefined()
      })

      test('a run that begins and ends in one tick is listed as ended', async () => {
        const entries = exampleRun('r')
        const cut = cutAt(entries, [1, 3])
        await Promise.all(cut.map((batch) => append('r', batch)))
        expect(await store.runs.get('r')).toMatchObject({ status: 'completed', cost: 0.25, lastSeq: 10 })
      })

      test('lists newest first, by every field, page by page', async () => {
        const start = (id: string, part: Parameters<typeof startEntry>[1]) => append(id, [startEntry(id, part, noon)])
        const says = (content: string) => ({ input: { messages: [{ role: 'user', content }] } })
        await start('d', { agent: 'two', threadId: 't2' })
        await start('a', { agent: 'one', threadId: 't1', ...says('Über den Wolken') })
        await start('b', { agent: 'two', threadId: 't1', ...says('100% of it_all') })
        await start('c', { agent: 'one', threadId: 't2', ...says('all of the clouds') })
        await append('d', [endEntry(2)])
        const ids = async (query?: Parameters<Store['runs']['list']>[0]) =>
          (await store.runs.list(query)).map(({ id }) => id).join('')
        expect(await ids()).toBe('cbad')
        expect(await ids({ agent: 'one' })).toBe('ca')
        expect(await ids({ threadId: 't1' })).toBe('ba')
        expect(await ids({ status: 'completed' })).toBe('d')
        expect(await ids({ status: 'running', agent: 'two' })).toBe('b')
        expect(await ids({ q: 'ALL OF' })).toBe('cb')
        expect(await ids({ q: 'wolken über' })).toBe('a')
        expect(await ids({ q: '%' })).toBe('b')
        expect(await ids({ q: 't_a' })).toBe('b')
        expect(await ids({ q: '  ' })).toBe('cbad')
        expect(await ids({ limit: 2 })).toBe('cb')
        expect(await ids({ limit: 2, before: 'b' })).toBe('ad')
        expect(await ids({ before: 'c', agent: 'one' })).toBe('a')
        expect(await ids({ before: 'd' })).toBe('')
        await expect(store.runs.list({ before: 'gone' })).rejects.toMatchObject({ code: 'unknown-run' })
      })

      test.each([
        ['a clock that runs', [1, 2, 3, 4]],
        ['one millisecond', [0, 0, 0, 0]],
        ['a clock that was set back', [1000, 3, 2, 1]],
        ['a clock that was set back and forward', [5, -9_000_000_000, 9_000_000_000, 4]],
      ])('lists runs in the order in which they began: %s', async (_, times) => {
        const runs = ['b', 'd', 'a', 'c']
        for (const [i, id] of runs.entries()) {
          await append(id, [startEntry(id, { agent: 'one', threadId: 't' }, noon + times[i]!)])
        }
        const ids = async (query?: Parameters<Store['runs']['list']>[0]) =>
          (await store.runs.list(query)).map(({ id }) => id).join('')
        for (const query of [
          {},
          { threadId: 't' },
          { agent: 'one' },
          { status: 'running' as const },
          { idPrefix: '' },
        ]) {
          expect(await ids(query)).toBe('cadb')
          expect(await ids({ ...query, limit: 1 })).toBe('c')
          expect(await ids({ ...query, before: 'a' })).toBe('db')
          expect(await ids({ ...query, before: 'a', limit: 1 })).toBe('d')
        }
      })

      test('finds runs by how their ids begin', async () => {
        for (const id of ['run_a1', 'run_a2', 'run_b', 'ran', 'run%']) await append(id, [startEntry(id, {}, noon)])
        const ids = async (idPrefix: string) => (await store.runs.list({ idPrefix })).map(({ id }) => id).toSorted()
        expect(await ids('run_a')).toEqual(['run_a1', 'run_a2'])
        expect(await ids('run_b')).toEqual(['run_b'])
        expect(await ids('run_b1')).toEqual([])
        expect(await ids('run%')).toEqual(['run%'])
        expect(await ids('')).toHaveLength(5)
        expect((await store.runs.list({ idPrefix: 'run_a', agent: 'none' })).length).toBe(0)
      })
    })
  })
}

async function firstMessages(store: Store, run: string, count: number, after?: number, signal?: AbortSignal) {
  const messages: InboxMessage[] = []
  for await (const message of store.log.inbox(run, { after, signal })) {
    messages.push(message)
    if (messages.length === count) break
  }
  return messages
}
