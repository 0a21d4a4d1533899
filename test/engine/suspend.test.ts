/** A run that waits for its client: durable, answered at most once, by whoever comes, in whatever life of the server. */
import { rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { EntryOf } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { continueOrStart, type Turn } from '../../src/runtime/continue.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { finish, latch, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, until, type Engine, type EngineOptions, openEngine } from '../support/engine.ts'
import { createTold, eventually, resultsIn } from '../support/going-on.ts'
import { often } from '../support/thorough.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]
const any = z.looseObject({})
const here: ToolImplementation = { description: 'runs in the client', parameters: z.object({ q: z.string() }) }

/** Makes these calls once, then says what their results were. */
function asking(...calls: [string, string, unknown?][]) {
  return createTold((prompt): ScriptStep[] => {
    const results = resultsIn(prompt)
    if (results.size < calls.length) {
      return [
        text('One moment. '),
        ...calls.map(([id, name, input = {}]) => toolCall(id, name, input)),
        finish('tool-calls'),
      ]
    }
    return [text(calls.map(([id]) => JSON.stringify(results.get(id))).join(' ')), finish()]
  })
}

async function requestOf({ store }: Engine, run: string, toolCallId?: string): Promise<EntryOf<'request'>> {
  const wanted = (id?: string) => toolCallId === undefined || id === toolCallId
  return (await until(store, run, (e) => e.type === 'request' && wanted(e.toolCallId))) as EntryOf<'request'>
}

const tool = (output: unknown) => ({ kind: 'tool' as const, output })

describe('suspended runs', () => {
  test.each([
    ['a registered tool without execute', { tools: { ask: here } }, 'tools: [ask]', {}],
    ['a tool of the request', {}, '', { tools: [{ name: 'ask', parameters: { type: 'object' } }] }],
  ])('%s: the run suspends, is answered, goes on under its id', async (_, config, yaml, input) => {
    const engine = openEngine({
      agents: { a: agent(yaml) },
      scripts: { m: asking(['c', 'ask', { q: 'why' }]) },
      ...config,
    })
    const run = await engine.runtime.start('a', { messages, ...input })
    expect(await run.result).toMatchObject({ outcome: 'suspended', text: 'One moment. ' })
    expect(engine.runtime.active).toBe(0)
    const request = await requestOf(engine, run.id)
    expect(request).toMatchObject({ kind: 'tool', toolCallId: 'c', toolName: 'ask', input: { q: 'why' } })
    expect(await run.answer(request.requestId, tool({ because: 1 }))).toMatchObject({ duplicate: false })
    const again = (await engine.runtime.open(run.id))!
    expect(await again.result).toMatchObject({
      id: run.id,
      outcome: 'completed',
      text: 'One moment. {"type":"json","value":{"because":1}}',
    })
    const entries = await entriesOf(engine.store, run.id)
    const types = entries.map(({ type }) => type)
    expect(types.filter((type) => ['request', 'suspend', 'resume', 'response', 'run-end'].includes(type))).toEqual([
      'request',
      'suspend',
      'resume',
      'response',
      'run-end',
    ])
  })

  test('50 answers at once: one counts, all are told which', async () => {
    const engine = openEngine({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking(['c', 'ask', { q: '' }]) },
    })
    const run = await engine.runtime.start('a', { messages })
    await run.result
    const { requestId } = await requestOf(engine, run.id)
    const all = await Promise.all(Array.from({ length: 50 }, (_, i) => run.answer(requestId, tool(i))))
    expect(all.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    const winners = new Set(all.map(({ answer }) => JSON.stringify(answer)))
    expect(winners.size).toBe(1)
    await (await engine.runtime.open(run.id))!.result
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'response')).toHaveLength(1)
    expect(only(entries, 'resume')).toHaveLength(1)
    expect(only(entries, 'tool-result')).toHaveLength(1)
    // Also long after: the first one's answer is what a later one is told.
    const late = await run.answer(requestId, tool('late'))
    expect(late.duplicate).toBe(true)
    expect(late.answer).toMatchObject({
      answer: { output: (only(entries, 'response')[0]!.answer as { output: unknown }).output },
    })
  })

  test('an answer in the next life of the server: same run, also when it was left just before the crash', async () => {
    const options: EngineOptions = {
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking(['c', 'ask', { q: '' }]) },
      keep: true,
    }
    const first = openEngine(options)
    const asked = await first.runtime.start('a', { messages })
    const left = await first.runtime.start('a', { messages })
    await Promise.all([asked.result, left.result])
    // A server that died between taking the answer and waking the run.
    const leftRequest = await requestOf(first, left.id)
    await first.store.log.post(left.id, `answer:${leftRequest.requestId}`, { answer: tool('kept'), protocol: 'api' })

    const second = openEngine({ ...options, dir: first.dir })
    expect(await second.runtime.recover()).toEqual({ resumed: 0, interrupted: 0 })
    expect(await (await second.runtime.open(left.id))!.result).toMatchObject({
      outcome: 'completed',
      text: expect.stringMatching(/kept/),
    })
    expect((await second.store.runs.get(asked.id))?.status).toBe('suspended')
    const { requestId } = await requestOf(second, asked.id)
    await second.runtime.answer(asked.id, requestId, tool('later'))
    expect(await (await second.runtime.open(asked.id))!.result).toMatchObject({
      outcome: 'completed',
      text: expect.stringMatching(/later/),
    })
    await entriesOf(second.store, left.id)
    await entriesOf(second.store, asked.id)
    rmSync(first.dir, { recursive: true, force: true })
  })

  test('two client tools and a server tool in one message, answered one by one', async () => {
    let ran = 0
    const gate = latch()
    const tools = { ask: here, work: { parameters: any, execute: async () => (await gate.opened, ++ran) } }
    const model = asking(['c1', 'ask', { q: '1' }], ['s', 'work'], ['c2', 'ask', { q: '2' }])
    const engine = openEngine({ agents: { a: agent('tools: [ask, work]') }, tools, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    const two = await requestOf(engine, run.id, 'c2')
    expect(engine.runtime.active).toBe(1)
    gate.open()
    expect((await run.result).outcome).toBe('suspended')
    await run.answer(two.requestId, tool('second'))
    const between = (await engine.runtime.open(run.id))!
    expect((await between.result).outcome).toBe('suspended')
    expect(model.calls).toHaveLength(1)
    const one = await requestOf(engine, run.id, 'c1')
    await run.answer(one.requestId, tool('first'))
    const after = (await engine.runtime.open(run.id))!
    expect(await after.result).toMatchObject({ outcome: 'completed', text: expect.stringMatching(/first.*1.*second/) })
    expect(ran).toBe(1)
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'suspend').map(({ requests }) => requests.length)).toEqual([2, 1])
    expect(only(entries, 'resume')).toHaveLength(2)
  })

  test('twelve client tools answered one by one: each answer wakes the run once', async () => {
    const ids = Array.from({ length: 12 }, (_, i) => `c${i}`)
    const engine = openEngine({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking(...ids.map((id): [string, string, unknown] => [id, 'ask', { q: id }])) },
    })
    const run = await engine.runtime.start('a', { messages })
    await run.result
    for (const [i, id] of ids.entries()) {
      const { requestId } = await requestOf(engine, run.id, id)
      await run.answer(requestId, tool(id))
      const { outcome } = await (await engine.runtime.open(run.id))!.result
      expect(outcome).toBe(i < 11 ? 'suspended' : 'completed')
    }
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'resume')).toHaveLength(12)
  })

  test('twelve client tools answered at once, by as many clients', async () => {
    const ids = Array.from({ length: 12 }, (_, i) => `c${i}`)
    const engine = openEngine({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking(...ids.map((id): [string, string, unknown] => [id, 'ask', { q: id }])) },
    })
    const run = await engine.runtime.start('a', { messages })
    await run.result
    const requests = only(await entriesOf(engine.store, run.id), 'request')
    await Promise.all(requests.map(({ requestId, toolCallId }) => run.answer(requestId, tool(toolCallId))))
    await eventually(async () => (await engine.store.runs.get(run.id))?.status === 'completed')
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'response').map(({ outcome }) => outcome)).toEqual(ids.map(() => 'answered'))
  })

  test('an answer between the request and the suspension is kept', async () => {
    const gate = latch()
    const tools = { ask: here, work: { parameters: any, execute: async () => (await gate.opened, 'worked') } }
    const engine = openEngine({
      agents: { a: agent('tools: [ask, work]') },
      tools,
      scripts: { m: asking(['c', 'ask', { q: '' }], ['s', 'work']) },
    })
    const run = await engine.runtime.start('a', { messages })
    const { requestId } = await requestOf(engine, run.id)
    expect(await run.answer(requestId, tool('quick'))).toMatchObject({ duplicate: false })
    gate.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: expect.stringMatching(/quick.*worked/) })
    expect(only(await entriesOf(engine.store, run.id), 'suspend')).toEqual([])
  })

  test('an answer that is delivered at the very moment of the suspension wakes the run again', async () => {
    // The slowest inbox that is still right: a live reader is handed its messages when it is about to leave.
    const lazy = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        async *inbox(run, { after, signal } = {}) {
          if (signal) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
          yield* store.log.inbox(run, { after })
        },
      },
    })
    const gate = latch()
    const tools = { ask: here, work: { parameters: any, execute: async () => (await gate.opened, 'worked') } }
    const model = asking(['c', 'ask', { q: '' }], ['s', 'work'])
    const engine = openEngine({
      agents: { a: agent('tools: [ask, work]') },
      tools,
      scripts: { m: model },
      wrapStore: lazy,
    })
    const run = await engine.runtime.start('a', { messages })
    const { requestId } = await requestOf(engine, run.id)
    await run.answer(requestId, tool('quick'))
    gate.open()
    await until(engine.store, run.id, (entry) => entry.type === 'run-end')
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'suspend')).toHaveLength(1)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
  })

  test('races between an answer and the suspension: none is lost, none counts twice', async () => {
    const gates = new Map<string, ReturnType<typeof latch>>()
    const tools: Record<string, ToolImplementation> = {
      ask: here,
      work: { parameters: any, execute: async (_: unknown, { runId }) => (await gates.get(runId)!.opened, 'worked') },
    }
    const engine = openEngine({
      agents: { a: agent('tools: [ask, work]') },
      tools,
      scripts: { m: asking(['c', 'ask', { q: '' }], ['s', 'work']) },
    })
    let suspended = 0
    for (let i = 0; i < often(200); i++) {
      const runId = `race-${i}`
      const gate = latch()
      gates.set(runId, gate)
      const run = await engine.runtime.start('a', { messages }, { runId })
      const { requestId } = await requestOf(engine, runId)
      // The last branch comes to rest within a few turns of the loop of the answer's arrival, before it or behind it.
      const answered = run.answer(requestId, tool('quick'))
      for (let turns = i % 20; turns > 0; turns--) await (i % 40 < 20 ? Promise.resolve() : new Promise(setImmediate))
      gate.open()
      await answered
      await until(engine.store, runId, (entry) => entry.type === 'run-end')
      const entries = await entriesOf(engine.store, runId)
      expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
      expect(only(entries, 'response')).toMatchObject([{ outcome: 'answered' }])
      suspended += only(entries, 'suspend').length
    }
    // Both orders were met, or the loop shows nothing.
    expect(suspended).toBeGreaterThan(0)
    expect(suspended).toBeLessThan(often(200))
  })

  test('an unanswered request is closed at its deadline, in this life or in the next', async () => {
    const options: EngineOptions = {
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking(['c', 'ask', { q: '' }]) },
      requestDeadlineMs: 30,
      keep: true,
    }
    const first = openEngine(options)
    const run = await first.runtime.start('a', { messages })
    await until(first.store, run.id, (entry) => entry.type === 'run-end')
    const entries = await entriesOf(first.store, run.id)
    expect(only(entries, 'response')).toMatchObject([{ outcome: 'closed', reason: 'deadline' }])
    expect(only(entries, 'tool-result')).toMatchObject([{ outcome: 'unavailable', isError: true }])
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
    const late = await run.answer(only(entries, 'request')[0]!.requestId, tool('too late'))
    expect(late).toEqual({ duplicate: true, isSame: false, answer: { closed: 'deadline' } })

    const slow = await first.runtime.start('a', { messages })
    await until(first.store, slow.id, (entry) => entry.type === 'suspend')
    await first.close()
    const second = openEngine({ ...options, dir: first.dir, keep: false })
    await second.runtime.recover()
    await until(second.store, slow.id, (entry) => entry.type === 'run-end')
    expect(only(await entriesOf(second.store, slow.id), 'response')).toMatchObject([{ outcome: 'closed' }])
  })

  test.each([
    ['yes', { kind: 'approval' as const, approved: true }, undefined, 1],
    ['no, with a reason', { kind: 'approval' as const, approved: false, reason: 'too dear' }, 'denied', 0],
    ['never answered', undefined, 'unavailable', 0],
  ])('an approval: %s', async (_, answer, outcome, runs) => {
    let ran = 0
    const pay = { parameters: any, approval: true, execute: () => `paid ${++ran}` }
    const model = asking(['c', 'pay', { sum: 5 }])
    const engine = openEngine({
      agents: { a: agent('tools: [pay]') },
      tools: { pay },
      scripts: { m: model },
      ...(answer ? {} : { requestDeadlineMs: 20 }),
    })
    const run = await engine.runtime.start('a', { messages })
    const request = await requestOf(engine, run.id)
    expect(request).toMatchObject({ kind: 'approval', toolName: 'pay', input: { sum: 5 } })
    expect(ran).toBe(0)
    if (answer) await Promise.all([run.answer(request.requestId, answer), run.answer(request.requestId, answer)])
    await until(engine.store, run.id, (entry) => entry.type === 'run-end')
    const entries = await entriesOf(engine.store, run.id)
    const [result] = only(entries, 'tool-result')
    expect(result?.outcome).toBe(outcome)
    expect(ran).toBe(runs)
    if (outcome === 'denied') expect(JSON.stringify(model.prompts[1])).toContain('too dear')
  })

  test('stop while suspended: everything closed, one end, however often it is said; an answer then changes nothing', async () => {
    const engine = openEngine({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking(['c', 'ask', { q: '' }]) },
    })
    const run = await engine.runtime.start('a', { messages })
    await run.result
    const { requestId } = await requestOf(engine, run.id)
    await Promise.all(Array.from({ length: 20 }, () => run.stop('enough')))
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'aborted', error: { message: 'enough' } }])
    expect(only(entries, 'tool-result')).toMatchObject([{ outcome: 'aborted' }])
    expect(await run.answer(requestId, tool('x'))).toMatchObject({ duplicate: true, answer: { closed: 'aborted' } })
  })

  test('stop and answers at once: one end, truthful, whoever comes first', async () => {
    const engine = openEngine({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking(['c', 'ask', { q: '' }]) },
    })
    for (let i = 0; i < 30; i++) {
      const run = await engine.runtime.start('a', { messages })
      await run.result
      const { requestId } = await requestOf(engine, run.id)
      const acts = [
        () => run.stop(),
        () => run.answer(requestId, tool(1)),
        () => run.stop(),
        () => run.answer(requestId, tool(1)),
      ]
      await Promise.all(acts.map((_, n) => acts[(n + i) % 4]!()))
      await until(engine.store, run.id, (entry) => entry.type === 'run-end')
      const entries = await entriesOf(engine.store, run.id)
      expect(['aborted', 'completed']).toContain(only(entries, 'run-end')[0]!.outcome)
    }
  })

  test('a run that is active while a client is asked stops at once', async () => {
    const started = latch()
    const tools: Record<string, ToolImplementation> = {
      ask: here,
      work: {
        parameters: any,
        execute: (_: unknown, { signal }) =>
          new Promise((_resolve, reject) => {
            started.arrive()
            signal.addEventListener('abort', () => reject(signal.reason))
          }),
      },
    }
    const engine = openEngine({
      agents: { a: agent('tools: [ask, work]') },
      tools,
      scripts: { m: asking(['c', 'ask', { q: '' }], ['s', 'work']) },
    })
    const run = await engine.runtime.start('a', { messages })
    await started.reached
    await run.stop()
    expect(await run.result).toMatchObject({ outcome: 'aborted' })
    // Nothing had to be settled over a step's head.
    await entriesOf(engine.store, run.id)
  })

  const turn = (threadId: string, more: Partial<Turn>): Turn => ({
    agentId: 'a',
    threadId,
    messages,
    answers: [],
    input: {},
    protocol: 'ui',
    onBusy: 'interrupt',
    history: 'client',
    ...more,
  })

  test.each(['interrupt', 'queue', 'reject'] as const)(
    'a new message closes the suspended run of its thread (%s)',
    async (onBusy) => {
      const model = asking(['c', 'ask', { q: '' }])
      const engine = openEngine({ agents: { a: agent('tools: [ask]') }, tools: { ask: here }, scripts: { m: model } })
      const first = await continueOrStart(engine.runtime, turn('t', {}))
      await first.run.result
      const second = await continueOrStart(
        engine.runtime,
        turn('t', { onBusy, messages: [...messages, { role: 'user', content: 'never mind' }] }),
      )
      expect(second.how).toBe('started')
      expect((await second.run.result).outcome).toBe('suspended')
      const entries = await entriesOf(engine.store, first.run.id)
      expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'aborted' }])
      expect(only(entries, 'response')).toMatchObject([{ outcome: 'closed' }])
    },
  )

  test('a queued message is not held up by a run that suspends before it', async () => {
    const gate = latch()
    const tools = { ask: here, work: { parameters: any, execute: async () => (await gate.opened, 1) } }
    const engine = openEngine({
      agents: { a: agent('tools: [ask, work]') },
      tools,
      scripts: { m: asking(['c', 'ask', { q: '' }], ['s', 'work']) },
    })
    const first = await engine.runtime.start('a', { messages }, { threadId: 't', onBusy: 'queue' })
    await requestOf(engine, first.id)
    const second = await engine.runtime.start('a', { messages }, { threadId: 't', onBusy: 'queue' })
    gate.open()
    await until(engine.store, second.id, (entry) => entry.type === 'suspend')
    expect(only(await entriesOf(engine.store, first.id), 'run-end')).toMatchObject([{ outcome: 'aborted' }])
  })

  test('an answer wakes only a run of its own thread, and what came with it becomes input', async () => {
    const engine = openEngine({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking(['c', 'ask', { q: '' }]) },
    })
    const mine = await continueOrStart(engine.runtime, turn('mine', {}))
    await mine.run.result
    const answers = [{ toolCallId: 'c', answer: tool('out') }]
    const other = await continueOrStart(engine.runtime, turn('other', { answers }))
    expect(other.how).toBe('started')
    expect((await engine.store.runs.get(mine.run.id))?.status).toBe('suspended')
    const resumed = await continueOrStart(
      engine.runtime,
      turn('mine', { answers, input: { page: 7 }, labels: { messageId: 'm9' } }),
    )
    expect(resumed).toMatchObject({ how: 'resumed', run: { id: mine.run.id } })
    expect(await resumed.run.result).toMatchObject({ outcome: 'completed' })
    const resume = only(await entriesOf(engine.store, mine.run.id), 'resume')
    expect(resume).toMatchObject([{ protocol: 'ui', input: { page: 7 }, labels: { messageId: 'm9' } }])
    expect(resumed.from).toBe(resume[0]!.seq)
  })

  test('the same answer 50 times through the chat, some of them late: one run, nothing interrupted', async () => {
    const gate = latch()
    let ran = 0
    const pay = { parameters: any, approval: true, execute: async () => (await gate.opened, `paid ${++ran}`) }
    const engine = openEngine({
      agents: { a: agent('tools: [pay]') },
      tools: { pay },
      scripts: { m: asking(['c', 'pay', { sum: 5 }]) },
    })
    const first = await continueOrStart(engine.runtime, turn('t', {}))
    await first.run.result
    const yes = { kind: 'approval' as const, approved: true }
    const answers = [{ toolCallId: 'c', answer: yes }]
    const send = () => continueOrStart(engine.runtime, turn('t', { answers }))
    const all = await Promise.all(Array.from({ length: 25 }, send))
    await until(engine.store, first.run.id, ({ type }) => type === 'resume')
    for (let i = 0; i < 25; i++) all.push(await send())
    const no = [{ toolCallId: 'c', answer: { ...yes, approved: false } }]
    await expect(continueOrStart(engine.runtime, turn('t', { answers: no }))).rejects.toMatchObject({ status: 409 })
    gate.open()
    await until(engine.store, first.run.id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(engine.store, first.run.id)
    const resume = only(entries, 'resume')
    expect(resume).toHaveLength(1)
    // Whoever sent it reads the part of the answer that it woke.
    expect(new Set(all.map(({ run, from }) => `${run.id} ${from}`))).toEqual(
      new Set([`${first.run.id} ${resume[0]!.seq}`]),
    )
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
    expect(ran).toBe(1)
    expect(await engine.store.runs.list({ threadId: 't' })).toHaveLength(1)
  })
})
