/** Budgets and timeouts: what stops, when, what is kept and who is told. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import { startStub } from '../../src/tools/mcp/testing/http-stub.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { textWire } from '../../src/wire/text/text.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import type { Wire } from '../../src/wire/wire.ts'
import { agent, createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold, cutAfter, resultsIn } from '../support/going-on.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]
const any = z.looseObject({})

async function run(options: EngineOptions) {
  engine = createEngine(options)
  const { id, result } = await engine.runtime.start('a', { messages })
  return { ...(await result), entries: await entriesOf(engine.store, id) }
}
/** 100,000 tokens, 400 characters a delta. */
const endless = () => [text(...Array.from({ length: 1000 }, () => 'word '.repeat(80))), finish()]
const sent = (wire: Wire, entries: readonly Entry[]) => {
  const encoder = wire.createEncoder()
  return { body: entries.map((entry) => encoder.encode(entry)).join(''), state: encoder.state }
}
const callbacks = (told: unknown[]) => ({
  aborted: (event: { text: string; reason: string }) => void told.push(['aborted', event.text.length, event.reason]),
  failed: ({ error }: { error: { code: string } }) => void told.push(['failed', error.code]),
  finished: () => void told.push(['finished']),
})
const hooks = 'onAbort: aborted\nonError: failed\nonFinish: finished'

describe('budget', () => {
  test('tokens: 100,000 said with a budget of 10,000 stop within a chunk; what was said is kept, and the wires say so', async () => {
    const told: unknown[] = []
    const model = createScriptedModel([endless()])
    const result = await run({
      agents: { a: agent(hooks, 'budget: { tokens: 10000 }') },
      scripts: { m: model },
      callbacks: callbacks(told),
    })
    const { entries, outcome, error, text: said, usage } = result
    expect(outcome).toBe('budget-exceeded')
    expect(error).toMatchObject({ code: 'budget-exceeded', message: 'The run has used up its budget: 10000 tokens.' })
    // 4 characters a token; a delta is 100 tokens.
    expect(said.length / 4).toBeGreaterThan(9_800)
    expect(said.length / 4).toBeLessThanOrEqual(10_100)
    expect(usage.totalTokens).toBeLessThanOrEqual(10_200)
    expect(model.calls[0]!.cancelled || model.calls[0]!.aborted).toBe(true)
    expect(told).toEqual([['aborted', said.length, error!.message]])
    expect(sent(textWire, entries)).toEqual({ body: said, state: 'broken' })
    const ui = sent(uiWire, entries)
    expect(ui.state).toBe('complete')
    expect(ui.body).toContain(JSON.stringify({ type: 'error', errorText: error!.message }))
    expect(ui.body.trimEnd().endsWith('data: [DONE]')).toBe(true)
  })

  test('tokens: the arguments of a tool count while they are written', async () => {
    const args = Array.from({ length: 100 }, () => ({
      type: 'tool-input-delta' as const,
      id: 'c',
      delta: 'x'.repeat(40),
    }))
    const model = createScriptedModel([[{ type: 'tool-input-start', id: 'c', toolName: 'work' }, ...args, finish()]])
    const { outcome, entries } = await run({
      agents: { a: agent('tools: [work]', 'budget: { tokens: 500 }') },
      tools: { work: { parameters: any, execute: () => 1 } },
      scripts: { m: model },
    })
    expect(outcome).toBe('budget-exceeded')
    expect(only(entries, 'tool-input-delta').length).toBeLessThan(60)
  })

  test('tokens: branches that speak at once share one budget', async () => {
    const say = (id: string) =>
      `[{ id: ${id}, type: llm, config: { model: "script:${id}", stream: true, messages: [{ role: user, content: Hi }] } }]`
    const { outcome, text: said } = await run({
      agents: {
        a: `budget: { tokens: 1000 }
workflow: [{ id: all, type: parallel, config: { branches: { a: ${say('a')}, b: ${say('b')}, c: ${say('c')} } } }]`,
      },
      scripts: Object.fromEntries(['a', 'b', 'c'].map((id) => [id, createScriptedModel([endless()])])),
    })
    expect(outcome).toBe('budget-exceeded')
    expect(said.length / 4).toBeLessThanOrEqual(1_300)
  })

  test('tokens: what calls before have reported counts, also those of called agents', async () => {
    const child = agent('', '').replace('stream: true', 'stream: false')
    const { outcome, entries } = await run({
      agents: {
        child,
        a: `budget: { tokens: 1000 }
workflow:
  - { id: one, type: call-agent, config: { agent: child } }
  - { id: two, type: call-agent, config: { agent: child } }`,
      },
      scripts: {
        m: createScriptedModel([
          [text('short'), finish('stop', { in: 900, out: 200 })],
          [text('never'), finish()],
        ]),
      },
    })
    expect(outcome).toBe('budget-exceeded')
    expect(JSON.stringify(entries)).not.toContain('never')
  })

  test('of a step: it is closed with its own words; of an llm in a called agent as well', async () => {
    const told: unknown[] = []
    const child = agent(`budget: { tokens: 100 }\n${hooks}`)
    const { outcome, error, entries } = await run({
      agents: { child, a: 'workflow: [{ id: call, type: call-agent, config: { agent: child } }]' },
      scripts: { m: createScriptedModel([endless()]) },
      callbacks: callbacks(told),
    })
    expect(outcome).toBe('budget-exceeded')
    expect(error?.message).toBe('Step "call/answer" (llm) has used up its budget: 100 tokens.')
    expect(only(entries, 'error')).toMatchObject([{ step: 'main/call/answer' }])
    expect(told).toEqual([['aborted', 400, error!.message]])
  })

  test('of a branch: `onError: continue` makes it the branch’s value', async () => {
    const told: unknown[] = []
    const { outcome, output } = await run({
      agents: {
        a: `
workflow:
  - id: all
    type: parallel
    config:
      onError: continue
      branches:
        long: [{ id: say, type: llm, budget: { tokens: 100 }, config: { model: "script:m", messages: [{ role: user, content: Hi }], onAbort: aborted, onError: failed, onFinish: finished } }]
        short: [{ id: fine, type: output-generator, config: { template: fine } }]`,
      },
      scripts: { m: createScriptedModel([endless()]) },
      callbacks: callbacks(told),
    })
    expect(outcome).toBe('completed')
    expect(output).toMatchObject({ long: { error: { code: 'budget-exceeded' } }, short: 'fine' })
    expect(told).toMatchObject([['aborted', 400, expect.any(String)]])
  })

  describe('usd', () => {
    const a = agent('', 'budget: { usd: 0.01 }')
    test('by the price of the config, while the model speaks', async () => {
      const {
        outcome,
        text: said,
        entries,
      } = await run({
        agents: { a },
        scripts: { m: createScriptedModel([endless()]) },
        pricing: { 'script:m': { input: 1, output: 10 } },
      })
      expect(outcome).toBe('budget-exceeded')
      // 0.01 USD buys 1,000 tokens of output.
      expect(said.length / 4).toBeGreaterThan(900)
      expect(said.length / 4).toBeLessThanOrEqual(1_100)
      expect(only(entries, 'run-end')[0]!.cost).toBeCloseTo(0.01, 2)
    })

    test('a model without a known price is not free: it is not asked', async () => {
      const model = createScriptedModel([endless()])
      const { outcome, error } = await run({ agents: { a }, scripts: { m: model } })
      expect(outcome).toBe('failed')
      expect(error).toMatchObject({ code: 'unknown-price', message: expect.stringMatching(/"script:m".*pricing/u) })
      expect(model.calls).toHaveLength(0)
    })

    test('without such a budget an unknown price is no cost, not 0', async () => {
      const model = createScriptedModel([[text('Hi'), finish()]])
      const { outcome, entries } = await run({ agents: { a: agent() }, scripts: { m: model } })
      expect(outcome).toBe('completed')
      expect(only(entries, 'run-end')[0]).not.toHaveProperty('cost')
      expect(only(entries, 'usage')[0]).not.toHaveProperty('cost')
    })
  })

  test('seconds', async () => {
    const {
      outcome,
      error,
      text: said,
    } = await run({
      agents: { a: agent('', 'budget: { seconds: 0.2 }') },
      scripts: { m: createScriptedModel([[text('Hi'), latch(), finish()]]) },
    })
    expect([outcome, said]).toEqual(['budget-exceeded', 'Hi'])
    expect(error?.message).toContain('0.2 seconds')
  })

  test.each([
    [1, 1, 0],
    [2, 1, 0],
    [3, 1, 2],
    [4, 2, 2],
    [5, 2, 3],
  ])(
    'steps: %i allow %i model calls and %i tool calls, also of those that come at once',
    async (steps, calls, tools) => {
      let ran = 0
      const model = createScriptedModel([
        [toolCall('c1', 'work'), toolCall('c2', 'work'), finish('tool-calls')],
        [toolCall('c3', 'work'), finish('tool-calls')],
        [text('never'), finish()],
      ])
      const { outcome } = await run({
        agents: { a: agent('tools: [work]', `budget: { steps: ${steps} }`) },
        tools: { work: { parameters: any, execute: () => ++ran } },
        scripts: { m: model },
      })
      expect([outcome, model.calls.length, ran]).toEqual(['budget-exceeded', calls, tools])
    },
  )
})

test('steps: a second attempt after a crash is the same step', async () => {
  const options = {
    agents: { a: agent('', 'recover: true\nbudget: { steps: 1 }') },
    scripts: { m: createTold(() => [text('Hello'), finish()]) },
  }
  const { entries, id } = await run(options)
  await engine.close()
  const k = entries.findIndex(({ type }) => type === 'text-delta') + 1
  engine = await cutAfter(entries, k, options)
  await engine.runtime.recover()
  expect(await (await engine.runtime.open(id))!.result).toMatchObject({ outcome: 'completed', text: 'Hello' })
})

describe('timeouts', () => {
  const held = () => createScriptedModel([[latch(), text('late'), finish()]])
  const stuck = () => createScriptedModel([[text('Hel'), latch(), text('lo'), finish()]])

  test.each([
    ['firstToken', 'timeouts: { firstToken: 100ms }', held, '', 'failed'],
    ['idle', 'timeouts: { idle: 100ms }', stuck, 'Hel', 'failed'],
    ['run', 'timeouts: { run: 150ms }', stuck, 'Hel', 'aborted'],
  ])('%s of a file: its own outcome, what was said is kept, one callback', async (_, top, model, said, callback) => {
    const told: [string][] = []
    const result = await run({ agents: { a: agent(hooks, top) }, scripts: { m: model() }, callbacks: callbacks(told) })
    expect(result).toMatchObject({ outcome: 'timed-out', text: said, error: { code: 'timed-out' } })
    expect(told.map(([name]) => name)).toEqual([callback])
    expect(only(result.entries, 'error').length).toBeLessThanOrEqual(1)
  })

  test.each([
    [
      'llm',
      '{ id: it, type: llm, timeouts: { step: 100ms }, config: { model: "script:m", messages: [{ role: user, content: Hi }] } }',
    ],
    ['a step of one’s own that ignores its signal', '{ id: it, type: deaf, timeouts: { step: 100ms } }'],
    [
      'parallel',
      '{ id: it, type: parallel, timeouts: { step: 100ms }, config: { branches: { a: [{ id: x, type: deaf }], b: [{ id: y, type: deaf }] } } }',
    ],
    [
      'loop',
      '{ id: it, type: loop, timeouts: { step: 100ms }, config: { over: [1], max: 1, steps: [{ id: x, type: deaf }] } }',
    ],
    ['call-agent', '{ id: it, type: call-agent, timeouts: { step: 100ms }, config: { agent: child } }'],
  ])('step: %s', async (_, step) => {
    let emit: (() => void) | undefined
    const { outcome, error, entries, id } = await run({
      agents: { child: 'workflow: [{ id: x, type: deaf }]', a: `workflow: [${step}, { id: later, type: later }]` },
      scripts: { m: stuck() },
      steps: {
        deaf: (_config, context) => {
          emit = () => context.emit({ type: 'data', name: 'late', data: 1 })
          return new Promise(() => undefined)
        },
        later: () => Promise.reject(new Error('never')),
      },
    })
    expect([outcome, error?.message]).toEqual([
      'timed-out',
      expect.stringMatching(/^Step "it" \([a-z-]+\) took longer than 100 ms\.$/u),
    ])
    expect(only(entries, 'error')).toHaveLength(1)
    emit?.()
    expect(await entriesOf(engine.store, id)).toHaveLength(entries.length)
  })

  test.each([
    ['timeouts of the step', 'timeouts: { step: 100ms }', '', 'timed-out'],
    ['its own timeout', '', ', timeout: 100ms', 'timed-out'],
  ])('mcp-tool: %s', async (_, step, config, outcome) => {
    const stub = await startStub()
    try {
      const yaml = `workflow: [{ id: it, type: mcp-tool, ${step && `${step}, `}config: { server: far, tool: hold${config} } }]`
      const result = await run({ agents: { a: yaml }, mcpServers: { far: { url: stub.url } } })
      expect(result).toMatchObject({ outcome, error: { message: expect.stringContaining('100 ms') } })
    } finally {
      await engine.close()
      await stub.close()
    }
  })

  test('a step that is given up says nothing more, and the run goes on', async () => {
    const speak = latch()
    const end = latch()
    engine = createEngine({
      agents: {
        a: `
workflow:
  - id: all
    type: parallel
    result: all
    config:
      onError: continue
      branches:
        slow: [{ id: slow, type: slow, timeouts: { step: 50ms } }]
        other: [{ id: wait, type: wait }]
  - { id: end, type: output-generator, config: { template: "$all.slow.error.code" } }`,
      },
      steps: {
        slow: async (_, { emit }) => {
          await speak.opened
          emit({ type: 'data', name: 'late', data: 1 })
          end.open()
          return 'late'
        },
        wait: () => end.opened,
      },
    })
    const started = await engine.runtime.start('a', { messages })
    await until(engine.store, started.id, ({ type, step }) => type === 'step-finish' && step === 'main/all/slow')
    speak.open()
    expect(await started.result).toMatchObject({ outcome: 'completed', output: 'timed-out' })
    expect(only(await entriesOf(engine.store, started.id), 'data')).toEqual([])
  })

  test('a tool’s own timeout is a result, and the run goes on', async () => {
    const {
      outcome,
      text: said,
      entries,
    } = await run({
      agents: { a: agent('tools: [{ name: slow, timeout: 50ms }]', 'timeouts: { step: 5s, run: 5s }') },
      tools: { slow: { parameters: any, execute: () => new Promise(() => undefined) } },
      scripts: {
        m: createScriptedModel([
          [toolCall('c', 'slow'), finish('tool-calls')],
          [text('Well.'), finish()],
        ]),
      },
    })
    expect([outcome, said]).toEqual(['completed', 'Well.'])
    expect(only(entries, 'tool-result')).toMatchObject([{ isError: true, result: expect.stringContaining('50 ms') }])
  })

  test('while a run is suspended its time stands still', async () => {
    const told: unknown[] = []
    const answer = (prompt: LanguageModelV4Prompt) => {
      const tool = ['ask', 'pause'][resultsIn(prompt).size]
      return tool === undefined ? [text('Thanks.'), finish()] : [toolCall(tool, tool), finish('tool-calls')]
    }
    // A timer that is due fires meanwhile.
    const pause = () => new Promise((resolve) => setTimeout(resolve, 20))
    const options = {
      agents: {
        a: agent(
          'tools: [ask, pause]\nonAbort: aborted\ntimeouts: { step: 10s }\nbudget: { seconds: 10 }',
          'timeouts: { run: 10s }\nbudget: { seconds: 10 }',
        ),
      },
      tools: { ask: { parameters: any }, pause: { parameters: any, execute: pause } },
      scripts: { m: createTold(answer) },
      callbacks: { aborted: () => void told.push(1) },
    }
    const first = createEngine(options)
    const started = await first.runtime.start('a', { messages })
    expect((await started.result).outcome).toBe('suspended')
    const entries = await entriesOf(first.store, started.id)
    await first.close()
    // It was asked an hour ago.
    const hour = 3600_000
    const before = entries.map((entry) => ({ ...entry, timestamp: entry.timestamp - hour }))
    engine = await cutAfter(before, before.length, options)
    const { requestId } = only(entries, 'request')[0]!
    await engine.runtime.answer(started.id, requestId, { kind: 'tool', output: 1 })
    await until(engine.store, started.id, ({ type }) => type === 'run-end')
    expect(only(await entriesOf(engine.store, started.id), 'run-end')).toMatchObject([{ outcome: 'completed' }])
    expect(told).toEqual([])
  })
})
