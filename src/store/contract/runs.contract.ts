/** The contract of the list of runs. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Batch, RunQuery, RunRow, Store } from '../../part/log.ts'
import { cutAt, endEntry, entry, exampleRun, noon, startEntry } from '../example-run.contract.ts'
import { delta, readAll } from './tools.contract.ts'

export function runsContract(current: () => Store): void {
  describe('runs', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const append = (run: string, entries: Batch, epoch = 1) => store.log.append(run, epoch, entries)

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
      expect(await store.runs.get('r')).toEqual({ ...row, ...ended, usage, cost: 0.5, error, errors: 1 })
      expect(await store.runs.get('none')).toBeUndefined()
    })

    test('a row and the rows of its forks record how far the run was recorded elsewhere, whatever entries follow', async () => {
      await append('r', [startEntry('r', { foreign: 3 }), delta(2), entry(3, { type: 'suspend', requests: [] })])
      await store.log.claim('r', 1)
      await append('r', [entry(4, { type: 'resume', protocol: 'api' }), delta(5), endEntry(6)], 2)
      await append('own', [startEntry('own'), endEntry(2)])
      for (const [fork, source, at] of [
        ['low', 'r', 2],
        ['high', 'r', 5],
        ['lower', 'high', 1],
      ] as const)
        await store.log.fork(source, at, fork)
      const rows = { r: 3, own: undefined, low: 2, high: 3, lower: 1 }
      for (const [id, foreign] of Object.entries(rows)) {
        expect((await store.runs.get(id))!.foreign, id).toBe(foreign)
        const [start] = await readAll(store, id)
        expect(start, id).toEqual(expect.objectContaining({ type: 'run-start' }))
        expect((start as { foreign?: number }).foreign, id).toBe(foreign)
      }
      const listed = (await store.runs.list()).map(({ id, foreign }) => [id, foreign])
      expect(Object.fromEntries(listed)).toEqual(rows)
    })

    test('a row has the start of the answer and the number of failures at once', async () => {
      const start = { stepType: 'llm', attempt: 1 }
      const says = (seq: number, step: string) => [
        entry(seq, { type: 'text-start', id: `${seq}` }, step),
        entry(seq + 1, { type: 'text-delta', id: `${seq}`, delta: 'a' }, step),
      ]
      const call = { toolCallId: 'c', toolName: 'look', result: '', isError: true }
      const told = async () => {
        const { firstTokenMs, errors, previousRunId } = (await store.runs.get('r'))!
        return { firstTokenMs, errors, previousRunId }
      }
      await append('r', [
        startEntry('r', { previousRunId: 'before' }),
        entry(2, { type: 'step-start', ...start }, 'main/think'),
        ...says(3, 'main/think/1'),
        entry(5, { type: 'step-start', ...start, answer: true }, 'main/answer'),
      ])
      expect(await told()).toEqual({ firstTokenMs: undefined, errors: undefined, previousRunId: 'before' })
      await append('r', says(6, 'main/answer/1'))
      expect(await told()).toMatchObject({ firstTokenMs: 7, errors: undefined })
      await append('r', [
        ...says(8, 'main/answer/1'),
        entry(10, { type: 'tool-result', ...call }, 'main/answer/1'),
        entry(11, { type: 'tool-result', ...call, outcome: 'denied' }, 'main/answer/1'),
      ])
      expect(await told()).toMatchObject({ firstTokenMs: 7, errors: 1 })
      await append('r', [
        entry(12, { type: 'error', error: { code: 'x', message: 'x' } }, 'main/answer/1'),
        endEntry(13),
      ])
      expect(await told()).toMatchObject({ firstTokenMs: 7, errors: 2 })
      expect(await store.runs.list()).toEqual([await store.runs.get('r')])
      // A process that has not seen the answer begin.
      await append('s', [startEntry('s'), entry(2, { type: 'suspend', requests: [] })])
      await store.log.claim('s', 1)
      await append('s', [entry(3, { type: 'resume', protocol: 'api' })], 2)
      await append('s', [entry(4, { type: 'step-start', ...start, answer: true }, 'main/answer')], 2)
      await append('s', says(5, 'main/answer/1'), 2)
      // Without the millisecond in which it was suspended.
      expect(await store.runs.get('s')).toMatchObject({ firstTokenMs: 5 })
    })

    test('no time to the first token has the time in which a person was asked', async () => {
      const at = (seq: number, ms: number, part: Parameters<typeof entry>[1], step = '') => ({
        ...entry(seq, part, step),
        timestamp: noon + ms,
      })
      const answers = { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } as const
      const asks = (seq: number, ms: number) => at(seq, ms, { type: 'suspend', requests: [] })
      const goesOn = (seq: number, ms: number) => at(seq, ms, { type: 'resume', protocol: 'api' })
      await append('r', [startEntry('r', {}, noon), at(2, 1, answers, 'main/a'), asks(3, 3)])
      expect((await store.runs.get('r'))!.firstTokenMs).toBeUndefined()
      await store.log.claim('r', 1)
      // A response may come before the run is resumed: it does not end the suspension.
      const response = { type: 'response', requestId: 'x', outcome: 'closed', reason: 'gone' } as const
      await append('r', [at(4, 100_000, response)], 2)
      await append('r', [goesOn(5, 144_003), asks(6, 144_004)], 2)
      await store.log.claim('r', 2)
      await append('r', [goesOn(7, 200_004)], 3)
      await append('r', [at(8, 200_006, { type: 'text-start', id: 't' }, 'main/a/1')], 3)
      await append('r', [at(9, 200_008, { type: 'text-delta', id: 't', delta: 'a' }, 'main/a/1')], 3)
      expect(await store.runs.get('r')).toMatchObject({ startedAt: noon, firstTokenMs: 8 })
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
      expect(await ids({ status: ['completed', 'running'], agent: 'two' })).toBe('bd')
      expect(await ids({ status: ['failed', 'aborted'] })).toBe('')
      expect(await ids({ status: [] })).toBe('')
      expect(await ids({ status: ['completed', 'completed', 'running'] })).toBe('cbad')
      expect(await ids({ since: noon })).toBe('cbad')
      expect(await ids({ since: noon + 1 })).toBe('')
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

    test('lists runs of a time, a model, a protocol, a cost and a duration, and sorts them', async () => {
      const prompt = (seq: number, model: string) =>
        entry(seq, { type: 'prompt', stage: 'answer', model, messages: [] }, 'main/a/1')
      const used = (seq: number, model: string) =>
        entry(seq, { type: 'usage', model, usage: { inputTokens: seq, source: 'reported' } }, 'main/a/1')
      const end = (ms: number, at: number, cost?: number, totalTokens?: number): Entry => {
        const usage = { source: 'reported' as const, ...(totalTokens !== undefined && { totalTokens }) }
        const part = { type: 'run-end', outcome: 'completed', usage, ...(cost !== undefined && { cost }) } as const
        return { ...entry(4, part), timestamp: noon + at + ms }
      }
      const run = async (id: string, at: number, protocol: string, models: string[], ending?: Entry) => {
        const start = startEntry(id, { protocol, agent: 'one' }, noon + at)
        await append(id, [start, prompt(2, models[0]!), used(3, models.at(-1)!), ...(ending ? [ending] : [])])
      }
      await run('a', 100, 'ui', ['m1'], end(50, 100, 0.5, 10))
      await run('b', 200, 'api', ['m1', 'm2'], end(500, 200, 0.25, 300))
      await run('c', 300, 'ui', ['m2'], end(5000, 300))
      await run('d', 400, 'page', ['m3'], end(10, 400, 0, 5))
      await run('e', 500, 'ui', ['m1'])
      const ids = async (query?: RunQuery) => (await store.runs.list(query)).map(({ id }) => id).join('')
      expect((await store.runs.get('b'))!.models).toEqual(['m1', 'm2'])
      expect((await store.runs.list({ limit: 1 }))[0]!.models).toEqual(['m1'])
      const cases: [RunQuery, string][] = [
        [{ model: 'm1' }, 'eba'],
        [{ model: 'm' }, ''],
        [{ model: 'm2', protocol: 'api' }, 'b'],
        [{ protocol: 'ui', limit: 2 }, 'ec'],
        [{ protocol: 'ui', before: 'c' }, 'a'],
        [{ minCost: 0.25 }, 'ba'],
        [{ maxCost: 0.25 }, 'db'],
        [{ minMs: 500, maxMs: 1e9, status: 'completed' }, 'cb'],
        [{ maxMs: 50, status: ['completed', 'failed'] }, 'da'],
        [{ until: noon + 400 }, 'cba'],
        [{ since: noon + 200, until: noon + 400 }, 'cb'],
        [{ since: noon + 200, until: noon + 400, status: ['running', 'completed'], limit: 1 }, 'c'],
        [{ until: noon + 400, agent: 'one', before: 'c' }, 'ba'],
        [{ sort: 'started' }, 'edcba'],
        [{ sort: 'started', order: 'asc' }, 'abcde'],
        [{ sort: 'cost' }, 'abdec'],
        [{ sort: 'cost', order: 'asc' }, 'dbace'],
        [{ sort: 'cost', limit: 2, before: 'b' }, 'de'],
        [{ sort: 'cost', before: 'e' }, 'c'],
        [{ sort: 'tokens', model: 'm1' }, 'bae'],
        [{ sort: 'duration', status: 'completed' }, 'cbad'],
        [{ sort: 'duration', order: 'asc', status: 'completed', protocol: 'ui' }, 'ac'],
        // Its place, although it does not fit any more.
        [{ sort: 'duration', status: 'completed', protocol: 'ui', before: 'b' }, 'a'],
      ]
      for (const [query, expected] of cases) expect(await ids(query), JSON.stringify(query)).toBe(expected)
      await expect(store.runs.list({ sort: 'cost', before: 'gone' })).rejects.toMatchObject({ code: 'unknown-run' })
      await expect(store.runs.list({ sort: 'cost', before: 'a', owner: 'ann' })).rejects.toMatchObject({
        code: 'unknown-run',
      })
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
      for (const query of [{}, { threadId: 't' }, { agent: 'one' }, { status: 'running' as const }, { idPrefix: '' }]) {
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
}
