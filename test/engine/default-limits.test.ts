/** Time limits that hold where an agent sets none: what ends, what does not, and how each protocol says so. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, until, type Engine } from '../support/engine.ts'
import { loadModel } from '../../src/models/providers.ts'
import { startServer } from '../support/server.ts'

let engine: Engine
afterEach(() => engine.close())

const input = { messages: [{ role: 'user', content: 'Hi' }] }
const held = () => createScriptedModel([[latch()], [latch()]])

describe('what hangs ends', () => {
  test.each([
    ['firstToken', held, 'The model said nothing for 50 ms before its first token.'],
    [
      'idle',
      () => createScriptedModel([[text('Hel'), latch()]]),
      'The model said nothing for 50 ms in the middle of its answer.',
    ],
  ])('%s: the model is told to stop, nothing is tried again', async (key, model, message) => {
    const script = model()
    engine = createEngine({ agents: { a: agent() }, scripts: { m: script }, timeouts: { [key]: 50 } })
    const { id, result } = await engine.runtime.start('a', input)
    expect(await result).toMatchObject({
      outcome: 'timed-out',
      error: { code: 'timed-out', message: expect.stringContaining(message), step: 'main/answer' },
    })
    expect(script.calls).toHaveLength(1)
    expect(script.calls[0]!.aborted).toBe(true)
    expect(only(await entriesOf(engine.store, id), 'error')).toHaveLength(1)
  })

  test('a silent model is replaced by its fallback', async () => {
    engine = createEngine({
      agents: { a: agent().replace('"script:m"', '["script:m", "script:other"]') },
      scripts: { m: held(), other: createScriptedModel([[text('Here.'), finish()]]) },
      timeouts: { firstToken: 50 },
    })
    const { result } = await engine.runtime.start('a', input)
    expect(await result).toMatchObject({ outcome: 'completed', text: 'Here.' })
  })

  test('run: also a step that ignores its signal', async () => {
    engine = createEngine({
      agents: { a: 'workflow: [{ id: it, type: deaf }]' },
      steps: { deaf: () => new Promise(() => undefined) },
      timeouts: { run: 50 },
    })
    const { result } = await engine.runtime.start('a', input)
    expect(await result).toMatchObject({ outcome: 'timed-out', error: { message: 'The run took longer than 50 ms.' } })
  })
})

test('a limit for steps that stands in the file holds for each of its steps, unless the step sets another', async () => {
  const deaf = () => new Promise(() => undefined)
  engine = createEngine({
    agents: {
      a: 'timeouts: { step: 50ms }\nworkflow: [{ id: it, type: deaf }]',
      b: 'timeouts: { step: 10ms }\nworkflow: [{ id: it, type: slow, timeouts: { step: 10s } }]',
    },
    steps: { deaf, slow: () => new Promise((resolve) => setTimeout(resolve, 30, 'done')) },
    timeouts: { run: 1000 },
  })
  const [a, b] = [await engine.runtime.start('a', input), await engine.runtime.start('b', input)]
  expect(await a.result).toMatchObject({
    outcome: 'timed-out',
    error: { message: 'Step "it" (deaf) took longer than 50 ms.' },
  })
  expect(await b.result).toMatchObject({ outcome: 'completed', output: 'done' })
})

test('what an agent sets counts, and none is no limit', async () => {
  const gate = latch()
  engine = createEngine({
    agents: {
      a: agent('', 'timeouts: { firstToken: none, run: none }'),
      b: agent('timeouts: { firstToken: none }', 'timeouts: { run: none }'),
      short: agent(),
    },
    scripts: { m: createScriptedModel(Array.from({ length: 3 }, () => [gate, text('Late.'), finish()])) },
    timeouts: { firstToken: 30, run: 30 },
  })
  const runs = [await engine.runtime.start('a', input), await engine.runtime.start('b', input)]
  // It began behind them and has ended: their time would be over as well.
  const short = await engine.runtime.start('short', input)
  expect((await short.result).outcome).toBe('timed-out')
  gate.open()
  for (const { result } of runs) expect(await result).toMatchObject({ outcome: 'completed', text: 'Late.' })
})

test('neither the wait for a client nor for a turn in a thread counts', async () => {
  const gate = latch()
  engine = createEngine({
    agents: {
      asks: agent('tools: [ask]'),
      first: agent('', 'timeouts: { run: none, firstToken: none }'),
      next: agent('', 'onBusy: queue').replace('script:m', 'script:next'),
      short: agent().replace('script:m', 'script:held'),
    },
    tools: { ask: { parameters: z.looseObject({}) } },
    scripts: {
      m: createScriptedModel([
        [toolCall('c', 'ask'), finish('tool-calls')],
        [gate, text('First.'), finish()],
        [text('Thanks.'), finish()],
      ]),
      next: createScriptedModel([[text('Next.'), finish()]]),
      held: held(),
    },
    timeouts: { run: 200 },
  })
  const { runtime, store } = engine
  const asks = await runtime.start('asks', input)
  await until(store, asks.id, ({ type }) => type === 'suspend')
  const first = await runtime.start('first', input, { threadId: 't' })
  await until(store, first.id, ({ type }) => type === 'prompt')
  const next = await runtime.start('next', input, { threadId: 't' })
  // It began behind them and has ended: their time would be over as well.
  const short = await runtime.start('short', input)
  expect((await short.result).outcome).toBe('timed-out')
  gate.open()
  expect(await first.result).toMatchObject({ outcome: 'completed', text: 'First.' })
  expect(await next.result).toMatchObject({ outcome: 'completed', text: 'Next.' })
  const [request] = only(await entriesOf(store, asks.id), 'request')
  await asks.answer(request!.requestId, { kind: 'tool', output: 1 })
  expect(await (await runtime.open(asks.id))!.result).toMatchObject({ outcome: 'completed', text: 'Thanks.' })
})

describe('a provider that accepts a request and never answers', () => {
  const body = { messages: input.messages }
  const said = 'The model said nothing for 200 ms before its first token.'
  // Loaded before, since that counts as silence, too.
  beforeAll(async () => {
    await loadModel({
      provider: 'far',
      modelId: 'm',
      protocol: 'openai-chat',
      apiKey: undefined,
      baseURL: 'http://127.0.0.1:9',
    })
  })
  test.each([
    ['plain text', '/api/beddel/chat', { ...body, agentId: 'a' }, 504, said],
    ['UI stream', '/api/chat', { ...body, agentId: 'a' }, 504, said],
    ['OpenAI', '/v1/chat/completions', { ...body, model: 'a', stream: true }, 504, said],
    ['OpenAI, not streamed', '/v1/chat/completions', { ...body, model: 'a' }, 504, said],
  ])('%s: %s', async (_, path, sent, status, message) => {
    let closed: () => void
    const left = new Promise<void>((resolve) => (closed = resolve))
    const provider = createServer((request) => request.socket.on('close', () => closed()))
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
    const baseURL = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
    const server = await startServer({
      agents: { a: agent().replace('script:m', 'far:m') },
      models: { endpoints: [{ name: 'far', baseURL }] },
      timeouts: { firstToken: 200 },
    })
    engine = server
    const response = await server.post(path, sent)
    const answer = await response.text()
    expect([response.status, answer]).toEqual([status, expect.stringContaining(message)])
    // The connection to the provider is closed with the call.
    await left
    provider.close()
    expect(answer).not.toContain('timeouts.firstToken')
    const [run] = await server.store.runs.list()
    expect(run).toMatchObject({
      status: 'timed-out',
      error: { code: 'timed-out', detail: expect.stringContaining('timeouts.firstToken') },
    })
  })
})
