/** Two runtimes on one database, as two processes are: whatever happens to a run at both, it has one owner and one end. */
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { Run } from '../../src/runtime/runtime.ts'
import { finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, type EngineOptions } from '../support/engine.ts'
import { createTold, eventually, plant } from '../support/going-on.ts'
import { open, said, echo, ended, pausing, asks, asking } from './two-runtimes.ts'

const both = (options: EngineOptions): [EngineOptions, EngineOptions] => [options, options]
describe('two runtimes', () => {
  test('answered at both at once: one answer counts, and both are told which', async () => {
    const models = [asking(), asking()]
    const [one, two] = open(...models.map((m) => ({ ...asks, scripts: { m } })))
    for (let i = 0; i < 10; i++) {
      const run = await one!.runtime.start('a', said('Hi'))
      expect(await run.result).toMatchObject({ outcome: 'suspended' })
      const [request] = only(await entriesOf(one!.store, run.id), 'request')
      const answers = await Promise.all(
        [one!, two!, one!, two!].map(({ runtime }, n) =>
          runtime.answer(run.id, request!.requestId, { kind: 'tool', output: n }),
        ),
      )
      expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
      expect(new Set(answers.map(({ answer }) => JSON.stringify(answer))).size).toBe(1)
      const entries = await ended(two!, run.id)
      expect(only(entries, 'resume')).toHaveLength(1)
      expect(only(entries, 'response')).toMatchObject([{ outcome: 'answered' }])
      expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
      // Also whoever did not resume it has its result.
      for (const { runtime } of [one!, two!]) {
        expect(await (await runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed' })
      }
    }
    expect(models[0]!.calls.length + models[1]!.calls.length).toBe(20)
  })

  test('stopped at the one that does not own it: the owner ends it', async () => {
    const gate = latch()
    const model = createTold(() => [text('half'), gate, finish()])
    const [one, two] = open({ agents: { a: agent() }, scripts: { m: model } }, { agents: {} })
    const run = await one!.runtime.start('a', said('Hi'))
    await gate.reached
    await two!.runtime.stop(run.id, 'Enough.')
    const there = (await two!.runtime.open(run.id))!
    expect(await there.result).toMatchObject({ outcome: 'aborted', error: { message: 'Enough.' } })
    expect(model.calls[0]!.abortSignal!.aborted).toBe(true)
    await ended(two!, run.id)
    expect(await two!.store.runs.get(run.id)).toMatchObject({ epoch: 1 })
  })

  test('stopped while it is suspended, at both at once: one of them ends it', async () => {
    const [one, two] = open(...both({ ...asks, scripts: { m: asking() } }))
    const run = await one!.runtime.start('a', said('Hi'))
    await run.result
    await Promise.all([one!, two!, two!, one!].map(({ runtime }) => runtime.stop(run.id)))
    const entries = await ended(one!, run.id)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'aborted' }])
  })

  test('both adopt the same orphan: one of them goes on with it', async () => {
    const agents = { a: agent('', 'recover: true') }
    const [source] = open({ agents, scripts: { m: echo() } })
    const { id, result } = await source!.runtime.start('a', said('Hi'))
    await result
    const entries = await entriesOf(source!.store, id)
    for (const k of [1, 3, entries.length - 1]) {
      const models = [echo(), echo()]
      const [one, two] = open(...models.map((m) => ({ agents, scripts: { m } })))
      await plant(one!.dir, entries.slice(0, k))
      const counts = await Promise.all([one!, two!].map(({ runtime }) => runtime.recover()))
      expect(counts.reduce((sum, { resumed }) => sum + resumed, 0)).toBe(1)
      const all = await ended(two!, id)
      expect(only(all, 'run-end')).toMatchObject([{ outcome: 'completed' }])
      expect(only(all, 'warning').filter(({ code }) => code === 'recovered')).toHaveLength(1)
      expect(models[0]!.calls.length + models[1]!.calls.length).toBeLessThanOrEqual(1)
    }
  })

  test('both find an orphan that does not go on: one of them ends it', async () => {
    const [one, two] = open(...both({ agents: { a: agent() } }))
    const pipeline = agent()
    const start = { type: 'run-start', runId: 'r', agent: 'a', pipeline, threadId: 't', protocol: 'api', input: {} }
    await plant(one!.dir, [{ seq: 1, timestamp: 1, step: '', ...start } as Entry])
    const counts = await Promise.all([one!, two!].map(({ runtime }) => runtime.recover()))
    expect(counts.reduce((sum, { interrupted }) => sum + interrupted, 0)).toBe(1)
    expect(only(await ended(one!, 'r'), 'run-end')).toMatchObject([{ outcome: 'interrupted' }])
  })

  test('a paused owner that comes back says nothing more, and its readers read the next one', async () => {
    const { gate, wrapStore } = pausing(({ type }) => type === 'text-start')
    const agents = { a: agent('', 'recover: true') }
    const failed: unknown[] = []
    const first = createTold(() => [text('from the first'), finish()])
    const second = createTold(() => [text('from the second'), finish()])
    const [one, two] = open({ agents, scripts: { m: first }, wrapStore }, { agents, scripts: { m: second } })
    const run = await one!.runtime.start('a', said('Hi'))
    one!.runtime.onLost(run.id, (error) => failed.push(error))
    const read: Entry[] = []
    const reading = (async () => {
      for await (const entry of run.parts) read.push(entry)
    })()
    await gate.reached
    expect(await two!.runtime.recover()).toEqual({ resumed: 1, interrupted: 0 })
    const entries = await ended(two!, run.id)
    gate.open()
    await eventually(() => one!.runtime.active === 0)
    await reading
    expect(read).toEqual(entries)
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'from the second' })
    expect(only(entries, 'error')).toEqual([])
    expect(failed).toEqual([])
    // Longer than a lost run would take to be ended.
    await new Promise((resolve) => setTimeout(resolve, 250))
    expect(await ended(two!, run.id)).toEqual(entries)
  })

  test('one idempotency key at both is one run', async () => {
    const models = [echo(), echo()]
    const [one, two] = open(...models.map((m) => ({ agents: { a: agent() }, scripts: { m } })))
    for (const threadId of ['t', undefined]) {
      const how = { turnKey: 'k', ...(threadId && { threadId }) }
      const runs = await Promise.all([one!, two!, one!, two!].map(({ runtime }) => runtime.start('a', said('x'), how)))
      expect(new Set(runs.map(({ id }) => id)).size).toBe(1)
      expect(runs.filter(({ joined }) => !joined)).toHaveLength(1)
      for (const { result } of runs) expect(await result).toMatchObject({ outcome: 'completed' })
      await ended(two!, runs[0]!.id)
    }
    expect(models[0]!.calls.length + models[1]!.calls.length).toBe(2)
  })

  test('the queue of a thread over both: one at a time, in their order', async () => {
    let active = 0
    const order: string[] = []
    const work = async (config: unknown) => {
      expect(++active).toBe(1)
      order.push((config as { n: string }).n)
      await new Promise((resolve) => setTimeout(resolve, 5))
      active--
      return 1
    }
    const agents = { a: 'workflow: [{ id: w, type: work, config: { n: "$input.n" } }]' }
    const [one, two] = open(...both({ agents, steps: { work } }))
    const how = { threadId: 't', onBusy: 'queue' as const }
    const runs: Run[] = []
    for (let i = 0; i < 6; i++) {
      const { runtime } = i % 2 === 0 ? one! : two!
      runs.push(await runtime.start('a', { n: `${i}` }, how))
    }
    // And some at once, in any order.
    const more = [6, 7, 8, 9].map((i) => (i % 2 === 0 ? one! : two!).runtime.start('a', { n: `${i}` }, how))
    runs.push(...(await Promise.all(more)))
    for (const run of runs) expect(await run.result).toMatchObject({ outcome: 'completed' })
    for (const { id } of runs) await ended(one!, id)
    expect(order.slice(0, 6)).toEqual(['0', '1', '2', '3', '4', '5'])
    expect(order.slice(6).toSorted()).toEqual(['6', '7', '8', '9'])
  })

  test('interrupted from the other one: the run there ends before the new one begins', async () => {
    const gate = latch()
    const [held, quick] = [createTold(() => [text('x'), gate, finish()]), echo()]
    const [one, two] = open(
      { agents: { a: agent() }, scripts: { m: held } },
      { agents: { a: agent() }, scripts: { m: quick } },
    )
    const first = await one!.runtime.start('a', said('1'), { threadId: 't' })
    await gate.reached
    const second = await two!.runtime.start('a', said('2'), { threadId: 't', onBusy: 'interrupt' })
    expect(await second.result).toMatchObject({ outcome: 'completed' })
    expect(await first.result).toMatchObject({ outcome: 'aborted' })
    const [before, after] = [await ended(two!, first.id), await ended(one!, second.id)]
    expect(only(after, 'prompt')[0]!.timestamp).toBeGreaterThanOrEqual(before.at(-1)!.timestamp)
  })

  test('the same id at both: the second start is refused, and the run of the first is not disturbed', async () => {
    const gate = latch()
    const { gate: slow, wrapStore } = pausing(({ type }) => type === 'run-start')
    const agents = { a: agent() }
    const [one, two] = open(
      { agents, scripts: { m: createTold(() => [text('mine'), gate, finish()]) } },
      { agents, scripts: { m: echo() }, wrapStore },
    )
    const late = two!.runtime.start('a', said('2'), { runId: 'run_mine' })
    await slow.reached
    const run = await one!.runtime.start('a', said('1'), { runId: 'run_mine' })
    await gate.reached
    slow.open()
    await expect(late).rejects.toMatchObject({ code: 'run-exists' })
    gate.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'mine' })
    await ended(two!, 'run_mine')
  })
})
