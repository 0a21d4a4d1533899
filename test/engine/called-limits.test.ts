/** Limits of agents that are called: their own apply to the call, in addition to those of the caller. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold, cutAfter, resultsIn } from '../support/going-on.ts'

let engine: Engine
afterEach(() => engine.close())

const input = { messages: [{ role: 'user', content: 'Hi' }] }
async function run(options: EngineOptions) {
  engine = createEngine(options)
  const { id, result } = await engine.runtime.start('a', input)
  return { ...(await result), entries: await entriesOf(engine.store, id) }
}
const caller = (top = '') => `${top}\nworkflow: [{ id: call, type: call-agent, config: { agent: child } }]`
const steps = { deaf: () => new Promise(() => undefined) }
const endless = () => createScriptedModel([[text(...Array.from({ length: 100 }, () => 'word '.repeat(80))), finish()]])
const held = () => createScriptedModel([[latch()]])
const stuck = () => createScriptedModel([[text('Hel'), latch()]])
const called = 'Step "call" (call-agent): the called agent'

describe('budget of the called agent', () => {
  test('tokens: the call ends within a chunk; what was said is kept', async () => {
    const {
      outcome,
      error,
      text: said,
      entries,
    } = await run({
      agents: { child: agent('', 'budget: { tokens: 1000 }'), a: caller('budget: { tokens: 100000 }') },
      scripts: { m: endless() },
    })
    expect([outcome, error?.message]).toEqual(['budget-exceeded', `${called} has used up its budget: 1000 tokens.`])
    expect(said.length / 4).toBeLessThanOrEqual(1100)
    expect(only(entries, 'error')).toMatchObject([{ step: 'main/call' }])
  })

  test('the caller’s applies as well', async () => {
    const { error } = await run({
      agents: { child: agent('', 'budget: { tokens: 100000 }'), a: caller('budget: { tokens: 1000 }') },
      scripts: { m: endless() },
    })
    expect(error?.message).toBe('The run has used up its budget: 1000 tokens.')
  })

  test('each call has the whole budget', async () => {
    const two =
      'workflow: [{ id: x, type: call-agent, config: { agent: child } }, { id: y, type: call-agent, config: { agent: child } }]'
    const { outcome } = await run({
      agents: { child: agent('', 'budget: { steps: 2 }').replace('stream: true', 'stream: false'), a: two },
      scripts: {
        m: createScriptedModel([
          [text('One'), finish()],
          [text('Two'), finish()],
        ]),
      },
    })
    expect(outcome).toBe('completed')
  })

  test('a model without a price is not asked when the called agent limits money', async () => {
    const model = endless()
    const { error } = await run({
      agents: { child: agent('', 'budget: { usd: 1 }'), a: caller() },
      scripts: { m: model },
    })
    expect(error?.code).toBe('unknown-price')
    expect(model.calls).toHaveLength(0)
  })

  test('`onError: continue` makes it the value of the branch', async () => {
    const branches = '{ x: [{ id: call, type: call-agent, config: { agent: child } }] }'
    const { outcome, output } = await run({
      agents: {
        child: agent('', 'budget: { tokens: 100 }'),
        a: `workflow: [{ id: all, type: parallel, config: { onError: continue, branches: ${branches} } }]`,
      },
      scripts: { m: endless() },
    })
    expect(outcome).toBe('completed')
    expect(output).toMatchObject({ x: { error: { code: 'budget-exceeded' } } })
  })
})

describe('timeouts of the called agent', () => {
  test('run: the call ends, also a step that ignores its signal', async () => {
    const { outcome, error } = await run({
      agents: {
        child: 'timeouts: { run: 50ms }\nworkflow: [{ id: it, type: deaf }]',
        a: caller('timeouts: { run: 10s }'),
      },
      steps,
    })
    expect([outcome, error?.message]).toEqual(['timed-out', `${called} took longer than 50 ms.`])
  })

  test('step: holds for the steps of the called agent, and that of the caller does not', async () => {
    const slow = (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise((resolve) => setTimeout(resolve, 30, signal.aborted ? 'stopped' : 'done'))
    const call = '{ id: call, type: call-agent, timeouts: { step: 10s }, config: { agent: child } }'
    const first = await run({
      agents: {
        child: 'timeouts: { step: 50ms }\nworkflow: [{ id: it, type: deaf }]',
        a: caller('timeouts: { run: 5s }'),
      },
      steps,
    })
    expect(first.error?.message).toBe('Step "call/it" (deaf) took longer than 50 ms.')
    await engine.close()
    const second = await run({
      agents: { child: 'workflow: [{ id: it, type: slow }]', a: `timeouts: { step: 10ms }\nworkflow: [${call}]` },
      steps: { slow },
    })
    expect(second).toMatchObject({ outcome: 'completed', output: 'done' })
  })

  test.each([
    ['firstToken', 'its own', held, '50ms', '10s'],
    ['idle', 'its own', stuck, '50ms', '10s'],
    ['firstToken', 'its own, where the caller has none', held, '50ms', 'none'],
    ['firstToken', 'the caller’s', held, '10s', '50ms'],
    ['idle', 'the caller’s', stuck, '10s', '50ms'],
    ['idle', 'the caller’s, where it has none', stuck, 'none', '50ms'],
  ])('%s: %s', async (key, _, model, own, callers) => {
    const { outcome, error } = await run({
      agents: {
        child: agent('', `timeouts: { ${key}: ${own} }`),
        a: caller(`timeouts: { ${key}: ${callers}, run: 5s }`),
      },
      scripts: { m: model() },
    })
    expect([outcome, error?.message]).toEqual(['timed-out', expect.stringContaining('said nothing for 50 ms')])
  })

  test('they hold for its `after` steps', async () => {
    const { outcome, entries } = await run({
      agents: {
        child: `timeouts: { step: 50ms }\n${agent()}after: [{ id: it, type: deaf }]`,
        a: caller('timeouts: { run: 5s }'),
      },
      scripts: { m: createScriptedModel([[text('Hi'), finish()]]) },
      steps,
    })
    expect(outcome).toBe('completed')
    expect(JSON.stringify(only(entries, 'error'))).toContain('took longer than 50 ms')
  })
})

test('while the run is suspended the time of the call stands still', async () => {
  const model = (prompt: Parameters<Parameters<typeof createTold>[0]>[0]) =>
    resultsIn(prompt).size === 0 ? [toolCall('ask', 'ask'), finish('tool-calls')] : [text('Thanks.'), finish()]
  const options = {
    agents: { child: agent('tools: [ask]', 'timeouts: { run: 10s }\nbudget: { seconds: 10 }'), a: caller() },
    tools: { ask: { parameters: z.looseObject({}) } },
    scripts: { m: createTold(model) },
  }
  const first = createEngine(options)
  const started = await first.runtime.start('a', input)
  expect((await started.result).outcome).toBe('suspended')
  const entries = await entriesOf(first.store, started.id)
  await first.close()
  // It was asked an hour ago.
  const old = entries.map((entry) => ({ ...entry, timestamp: entry.timestamp - 3600_000 }))
  engine = await cutAfter(old, old.length, options)
  const { requestId } = only(entries, 'request')[0]!
  await engine.runtime.answer(started.id, requestId, { kind: 'tool', output: 1 })
  await until(engine.store, started.id, ({ type }) => type === 'run-end')
  expect(only(await entriesOf(engine.store, started.id), 'run-end')).toMatchObject([{ outcome: 'completed' }])
})
