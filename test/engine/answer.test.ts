import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  throws,
  toolCall,
  drop,
  errorPart,
} from '../../src/models/testing/scripted-model.ts'
import type { ToolContext } from '../../src/tools/tool.ts'
import { agent, createEngine, entriesOf, only, until, type Engine } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]

describe('streamed answers', () => {
  test('a streamed answer: one order, one end, the text as it came', async () => {
    const model = createScriptedModel([[reasoning('hm'), text('Hel', 'lo'), finish()]])
    engine = createEngine({ agents: { a: agent() }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    const result = await run.result
    expect(result).toMatchObject({
      outcome: 'completed',
      text: 'Hello',
      usage: { inputTokens: 10, outputTokens: 5, source: 'reported' },
    })
    const entries = await entriesOf(engine.store, run.id)
    expect(entries.map(({ type, step }) => `${type} ${step}`.trim())).toEqual([
      'run-start',
      'step-start main/answer',
      'step-start main/answer/1',
      'prompt main/answer/1',
      'reasoning-start main/answer/1',
      'reasoning-delta main/answer/1',
      'reasoning-end main/answer/1',
      'text-start main/answer/1',
      'text-delta main/answer/1',
      'text-delta main/answer/1',
      'text-end main/answer/1',
      'finish main/answer/1',
      'usage main/answer/1',
      'step-finish main/answer/1',
      'step-finish main/answer',
      'answer-end',
      'run-end',
    ])
    // The form that the log is documented in: whoever reads its lines finds the envelope first.
    const lines = entries.map((entry) => JSON.stringify(entry))
    expect(lines.filter((line) => !/^\{"seq":\d+,"timestamp":\d+,"step":"[^"]*","type":/u.test(line))).toEqual([])
    expect(only(entries, 'prompt')[0]!.messages).toEqual(messages)
  })

  test('the first token is in the log while the model is held before the second', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'one' },
        gate,
        { type: 'text-delta', id: 't', delta: 'two' },
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    engine = createEngine({ agents: { a: agent() }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    const first = await until(engine.store, run.id, (entry) => entry.type === 'text-delta')
    expect(first).toMatchObject({ delta: 'one' })
    gate.open()
    expect(await run.result).toMatchObject({ text: 'onetwo' })
  })

  const add = {
    description: 'adds',
    parameters: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }: { a: number; b: number }) => ({ sum: a + b }),
  }

  test('a tool loop: the call is recorded before it runs, its result goes back to the model', async () => {
    const model = createScriptedModel([
      [text('Let me see. '), toolCall('c1', 'add', { a: 1, b: 2 }), finish('tool-calls')],
      [text('It is 3.'), finish()],
    ])
    engine = createEngine({ agents: { a: agent('tools: [add]') }, tools: { add }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({
      outcome: 'completed',
      text: 'Let me see. It is 3.',
      usage: { inputTokens: 20 },
    })
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'tool-result')).toMatchObject([
      { toolCallId: 'c1', result: { sum: 3 }, isError: false, step: 'main/answer/2' },
    ])
    expect(only(entries, 'prompt').map((prompt) => prompt.messages.length)).toEqual([1, 0])
    expect(model.calls[1]!.options.prompt.slice(1)).toMatchObject([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me see. ' },
          { type: 'tool-call', toolCallId: 'c1', input: { a: 1, b: 2 } },
        ],
      },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'c1', output: { type: 'json', value: { sum: 3 } } }],
      },
    ])
  })

  test('a tool never fails a run: unknown names, bad input, throws, timeouts are results', async () => {
    const model = createScriptedModel([
      [
        toolCall('c1', 'nothing', {}),
        toolCall('c2', 'add', { a: 'x' }),
        toolCall('c3', 'add', '{"a": 1,'),
        toolCall('c4', 'bad', {}),
        toolCall('c5', 'slow', {}),
        finish('tool-calls'),
      ],
      [text('ok'), finish()],
    ])
    let slowSignal: AbortSignal | undefined
    const tools = {
      add,
      bad: { parameters: z.object({}), execute: () => Promise.reject(new Error('no luck')) },
      slow: {
        parameters: z.object({}),
        timeout: 20,
        execute: (_: unknown, { signal }: { signal: AbortSignal }) => {
          slowSignal = signal
          return new Promise(() => undefined)
        },
      },
    }
    engine = createEngine({ agents: { a: agent('tools: [add, bad, slow]') }, tools, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'ok' })
    const results = only(await entriesOf(engine.store, run.id), 'tool-result')
    const text5 = Object.fromEntries(
      results.map(({ toolCallId, result, isError }) => [toolCallId, `${isError} ${result as string}`]),
    )
    expect(text5['c1']).toContain('true There is no tool "nothing". Known tools: add, bad, slow.')
    expect(text5['c2']).toMatch(/^true /)
    expect(text5['c3']).toMatch(/^true .*JSON/)
    expect(text5['c4']).toBe('true no luck')
    expect(text5['c5']).toContain('true The tool slow did not answer within 20 ms.')
    expect(slowSignal?.aborted).toBe(true)
  })

  test('calls of one message run at once and their results come in completion order', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [toolCall('c1', 'wait', {}), toolCall('c2', 'quick', {}), finish('tool-calls')],
      [text('done'), finish()],
    ])
    const tools = {
      wait: { parameters: z.object({}), execute: async () => (await gate.opened, 'late') },
      quick: { parameters: z.object({}), execute: () => 'early' },
    }
    engine = createEngine({ agents: { a: agent('tools: [wait, quick]') }, tools, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    const first = await until(engine.store, run.id, (entry) => entry.type === 'tool-result')
    expect(first).toMatchObject({ toolCallId: 'c2', result: 'early' })
    gate.open()
    await run.result
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'tool-result').map(({ toolCallId }) => toolCallId)).toEqual(['c2', 'c1'])
  })

  test('a thousand calls of one message are a second’s work, and each is told the same conversation', async () => {
    const calls = Array.from({ length: 1000 }, (_, i) => toolCall(`c${i}`, 'look', { i }))
    const model = createScriptedModel([
      [text('So many.'), ...calls, finish('tool-calls')],
      [text('done'), finish()],
    ])
    const told = new Set<unknown>()
    const look = {
      parameters: z.object({ i: z.number() }),
      execute: (_: unknown, context: ToolContext) => void told.add(context.messages),
    }
    engine = createEngine({ agents: { a: agent('tools: [look]') }, tools: { look }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    expect(told.size).toBe(1)
    const [results] = model.calls[1]!.options.prompt.flatMap(({ role, content }) => (role === 'tool' ? [content] : []))
    expect(results).toHaveLength(1000)
  })

  test('the loop stops at maxSteps and says so', async () => {
    const model = createScriptedModel(
      Array.from({ length: 9 }, (_, i) => [toolCall(`c${i}`, 'add', { a: 1, b: 1 }), finish('tool-calls')]),
    )
    engine = createEngine({ agents: { a: agent('tools: [add]\nmaxSteps: 3') }, tools: { add }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    expect(model.calls).toHaveLength(3)
    expect(only(await entriesOf(engine.store, run.id), 'answer-end')).toMatchObject([{ finishReason: 'tool-calls' }])
  })

  test('what a provider sends wrong still obeys the grammar', async () => {
    const model = createScriptedModel([
      [
        { type: 'text-delta', id: 'x', delta: 'no start' },
        { type: 'text-start', id: 'y' },
        { type: 'text-delta', id: 'y', delta: ' no end' },
        { type: 'tool-input-delta', id: 'z', delta: '{}' },
        { type: 'tool-call', toolCallId: 'p1', toolName: 'web', input: '{}', providerExecuted: true },
        finish(),
      ],
    ])
    engine = createEngine({ agents: { a: agent() }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'no start no end' })
    expect(only(await entriesOf(engine.store, run.id), 'tool-result')).toMatchObject([
      { toolCallId: 'p1', outcome: 'unavailable' },
    ])
  })

  test.each([
    ['refused before the first part', [throws(new Error('no'))]],
    ['an error part', [text('a'), errorPart(new Error('no'))]],
    ['a broken connection', [text('a'), drop()]],
    ['an end without finish', [text('a')]],
  ])('%s: one error, one run-end failed, never a success', async (_, script) => {
    const onError: unknown[] = []
    const callbacks = { note: (event: unknown) => onError.push(event), never: () => onError.push('finished') }
    engine = createEngine({
      agents: { a: agent('onError: note\nonFinish: never') },
      callbacks,
      scripts: { m: createScriptedModel([script]) },
    })
    const run = await engine.runtime.start('a', { messages })
    const result = await run.result
    expect(result.outcome).toBe('failed')
    expect(result.error?.message).toBeTruthy()
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'error')).toHaveLength(1)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'failed', usage: { source: 'estimated' } }])
    expect(only(entries, 'answer-end')).toEqual([])
    expect(onError).toHaveLength(1)
    expect(onError[0]).toHaveProperty('error')
  })

  test('retries before the first content only, visible in the log', async () => {
    const busy = () => Object.assign(new Error('overloaded'), { status: 503 })
    const model = createScriptedModel([[throws(busy())], [text('at last'), finish()]])
    engine = createEngine({ agents: { a: agent('retries: 1') }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'at last' })
    expect(only(await entriesOf(engine.store, run.id), 'retry')).toMatchObject([{ attempt: 2 }])
  })

  test('no retry once something was said', async () => {
    const model = createScriptedModel([
      [text('half'), drop()],
      [text('whole'), finish()],
    ])
    engine = createEngine({ agents: { a: agent('retries: 3') }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'failed', text: 'half' })
    expect(model.calls).toHaveLength(1)
  })

  test('callbacks: onFinish once, after the answer has ended; a throwing one is a warning', async () => {
    const seen: unknown[] = []
    const callbacks = {
      finish: (event: unknown) => {
        seen.push(event)
        throw new Error('disk full')
      },
      step: (event: unknown) => seen.push(event),
    }
    const model = createScriptedModel([[text('Hi'), finish()]])
    engine = createEngine({
      agents: { a: agent('onFinish: finish\nonStepFinish: step') },
      callbacks,
      scripts: { m: model },
    })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    expect(seen).toMatchObject([
      { text: 'Hi', finishReason: 'stop' },
      {
        text: 'Hi',
        finishReason: 'stop',
        usage: { totalTokens: 15 },
        totalUsage: { totalTokens: 15 },
        steps: [{ text: 'Hi' }],
        response: { messages: [{ role: 'assistant' }] },
      },
    ])
    const entries = await entriesOf(engine.store, run.id)
    const types = entries.map(({ type }) => type)
    expect(only(entries, 'warning')).toMatchObject([
      { code: 'callback-failed', message: 'Callback finish threw: disk full' },
    ])
    expect(types.indexOf('warning')).toBeGreaterThan(types.indexOf('answer-end'))
  })

  test('a secret is neither recorded nor told, also when deltas split it', async () => {
    const secret = 'sk-canary-1234567890'
    const model = createScriptedModel([
      [text('key: sk-can', 'ary-12345', '67890.'), toolCall('c', 'leak', {}), finish('tool-calls')],
      [throws(new Error(`401 for ${secret}`))],
    ])
    const tools = { leak: { parameters: z.object({}), execute: () => ({ secret }) } }
    const environment = { OPENAI_API_KEY: secret }
    engine = createEngine({
      agents: { a: agent('tools: [leak]\nretries: 0') },
      tools,
      environment,
      scripts: { m: model },
    })
    const run = await engine.runtime.start('a', { messages: [{ role: 'user', content: `is ${secret} mine?` }] })
    const result = await run.result
    expect(result.text).toBe('key: [redacted].')
    expect(
      JSON.stringify([result, await entriesOf(engine.store, run.id), await engine.store.runs.list()]),
    ).not.toContain('canary')
  })
})
