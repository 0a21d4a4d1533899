/** What happens when somebody sets the clock: nothing. Order, durations and time limits do not follow it. */
import { rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, until, type EngineOptions, openEngine } from '../support/engine.ts'

const hour = 3_600_000
const realNow = Date.now.bind(Date)
let offset = 0
beforeEach(() => {
  offset = 0
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + offset)
})

afterEach(() => {
  vi.restoreAllMocks()
})

const messages = [{ role: 'user' as const, content: 'Hi' }]
const here: ToolImplementation = { description: 'runs in the client', parameters: z.object({}) }

function expectNoStepBack(entries: readonly Entry[]): void {
  const times = entries.map(({ timestamp }) => timestamp)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  for (const { duration } of only(entries, 'step-finish')) expect(duration).toBeGreaterThanOrEqual(0)
}

describe.each([
  ['back', -24 * hour],
  ['forward', 24 * hour],
])('a clock that is set %s by a day', (_, jump) => {
  test('while a step runs: entries stay in order, and the step takes as long as it took', async () => {
    const [working, go] = [latch(), latch()]
    const work: ToolImplementation = {
      parameters: z.object({}),
      execute: async () => {
        working.open()
        await go.opened
        return 'done'
      },
    }
    const script = [
      [toolCall('c', 'work'), finish('tool-calls')],
      [text('Done.'), finish()],
    ]
    const engine = openEngine({
      agents: { a: agent('tools: [work]') },
      tools: { work },
      scripts: { m: createScriptedModel(script) },
    })
    const run = await engine.runtime.start('a', { messages })
    await working.opened
    offset = jump
    const enough = performance.now() + 20
    while (performance.now() < enough) await new Promise(setImmediate)
    go.open()
    await run.result
    const entries = await entriesOf(engine.store, run.id)
    expectNoStepBack(entries)
    expect(Math.max(...only(entries, 'step-finish').map(({ duration }) => duration))).toBeGreaterThanOrEqual(19)
    for (const { duration } of only(entries, 'step-finish')) expect(duration).toBeLessThan(hour)
    const { startedAt, endedAt } = (await engine.store.runs.get(run.id))!
    expect(endedAt! - startedAt).toBeGreaterThanOrEqual(0)
    expect(endedAt! - startedAt).toBeLessThan(hour)
  })

  test('a run that waits for its client: the client keeps its time, and the run its limits', async () => {
    const script = [
      [toolCall('w', 'work'), finish('tool-calls')],
      [toolCall('c', 'ask'), toolCall('d', 'ask'), finish('tool-calls')],
      [text('Done.'), finish()],
    ]
    const work: ToolImplementation = { parameters: z.object({}), execute: () => (offset = jump) }
    const engine = openEngine({
      agents: { a: agent('tools: [work, ask]', 'budget: { seconds: 3600 }\ntimeouts: { run: 2h }') },
      tools: { work, ask: here },
      scripts: { m: createScriptedModel(script) },
      requestDeadlineMs: 2 * hour,
    })
    const run = await engine.runtime.start('a', { messages })
    expect((await run.result).outcome).toBe('suspended')
    const [first, second] = only(await entriesOf(engine.store, run.id), 'request')
    offset += jump
    await run.answer(first!.requestId, { kind: 'tool', output: 1 })
    const between = (await engine.runtime.open(run.id))!
    expect((await between.result).outcome).toBe('suspended')
    await between.answer(second!.requestId, { kind: 'tool', output: 2 })
    expect(await (await engine.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    const entries = await entriesOf(engine.store, run.id)
    expectNoStepBack(entries)
    expect(only(entries, 'response').map(({ outcome }) => outcome)).toEqual(['answered', 'answered'])
  })

  test('a conversation: the newest run stays the newest', async () => {
    const script = ['one', 'two'].map((word) => [text(word), finish()])
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: createScriptedModel(script) } })
    const first = await engine.runtime.start('a', { messages }, { threadId: 't' })
    await first.result
    offset = jump
    const second = await engine.runtime.start('a', { messages }, { threadId: 't' })
    await second.result
    const ids = (await engine.store.runs.list({ threadId: 't' })).map(({ id }) => id)
    expect(ids).toEqual([second.id, first.id])
  })
})

test('a clock that is set back while the server is down does not give a client more time than it had', async () => {
  const script = [
    [toolCall('c', 'ask'), finish('tool-calls')],
    [text('Done.'), finish()],
  ]
  const options: EngineOptions = {
    agents: { a: agent('tools: [ask]') },
    tools: { ask: here },
    scripts: { m: createScriptedModel(script) },
    requestDeadlineMs: 200,
    keep: true,
  }
  const first = openEngine(options)
  const run = await first.runtime.start('a', { messages })
  await until(first.store, run.id, ({ type }) => type === 'suspend')
  await first.close()
  offset = -1000 * hour
  const second = openEngine({ ...options, dir: first.dir })
  await second.runtime.recover()
  await until(second.store, run.id, ({ type }) => type === 'run-end')
  const entries = await entriesOf(second.store, run.id)
  expect(only(entries, 'response')).toMatchObject([{ outcome: 'closed', reason: 'deadline' }])
  expectNoStepBack(entries)
  rmSync(first.dir, { recursive: true, force: true })
})

test('a deadline passes also while another branch of the run goes on behind its own answer', async () => {
  const gate = latch()
  const asks = [toolCall('c', 'ask'), finish('tool-calls')]
  const branch = (model: string) => `[{ id: ${model}, type: llm, config: { model: "script:${model}", tools: [ask] } }]`
  const engine = openEngine({
    agents: {
      a: `workflow: [{ id: all, type: parallel, config: { branches: { one: ${branch('one')}, two: ${branch('two')} } } }]`,
    },
    tools: { ask: here },
    scripts: {
      one: createScriptedModel([asks, [gate, text('one'), finish()]]),
      two: createScriptedModel([asks, [text('two'), finish()]]),
    },
    requestDeadlineMs: 1500,
  })
  const run = await engine.runtime.start('a', { messages })
  expect((await run.result).outcome).toBe('suspended')
  const asked = only(await entriesOf(engine.store, run.id), 'request')
  const ofOne = asked.find(({ step }) => step.includes('one'))!
  await run.answer(ofOne.requestId, { kind: 'tool', output: 1 })
  await gate.reached
  await until(engine.store, run.id, (entry) => entry.type === 'response' && entry.reason === 'deadline')
  gate.open()
  await until(engine.store, run.id, ({ type }) => type === 'run-end')
  const entries = await entriesOf(engine.store, run.id)
  expect(only(entries, 'response').map(({ outcome }) => outcome)).toEqual(['answered', 'closed'])
  expect(only(entries, 'suspend')).toHaveLength(1)
  expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
})
