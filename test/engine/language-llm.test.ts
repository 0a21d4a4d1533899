/** What a workflow and its `llm` steps promise (PIPELINE 4–10), where no other file shows it. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ToolContext } from '../../src/tools/tool.ts'
import {
  createScriptedModel,
  drop,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { textWire } from '../../src/wire/text/text.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import { agent, createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]
const work = {
  description: 'of the registry',
  parameters: z.object({ n: z.number() }),
  execute: ({ n }: { n: number }) => n * n,
}

async function run(options: EngineOptions, input: Record<string, unknown> = { messages }) {
  engine = createEngine(options)
  const { id, result } = await engine.runtime.start('a', input)
  return { ...(await result), entries: await entriesOf(engine.store, id) }
}

describe('a workflow', () => {
  test('fifty runs at once share nothing', async () => {
    const a = `
workflow:
  - { id: one, type: llm, result: said, config: { model: "script:m", messages: [{ role: user, content: "$input.word" }] } }
  - { id: rounds, type: loop, result: rounds, config: { over: [1, 2], max: 2, steps: [{ id: x, type: output-generator, config: { template: "$said.text $item" } }] } }
  - { id: end, type: output-generator, config: { template: { said: "$said.text", rounds: "$rounds" } } }`
    const echo = createTold((prompt) => [text((prompt[0]!.content as { text: string }[])[0]!.text), finish()])
    engine = createEngine({ agents: { a }, scripts: { m: echo } })
    const all = await Promise.all(
      Array.from({ length: 50 }, async (_, i) => (await engine.runtime.start('a', { word: `w${i}` })).result),
    )
    expect(all.map(({ output }) => output)).toEqual(
      all.map((_, i) => ({ said: `w${i}`, rounds: [`w${i} 1`, `w${i} 2`] })),
    )
  })

  test('a failure stands in the log at its step, with its type; nothing later runs', async () => {
    const { outcome, entries } = await run({
      agents: { a: 'workflow: [{ id: breaks, type: breaking }, { id: later, type: later }]' },
      steps: { breaking: () => Promise.reject(new Error('broken')), later: () => 1 },
    })
    expect(outcome).toBe('failed')
    expect(only(entries, 'step-start')).toMatchObject([{ step: 'main/breaks', stepType: 'breaking' }])
    const error = {
      code: 'step-failed',
      message: 'Step "breaks" (breaking) failed.',
      step: 'main/breaks',
      detail: 'broken',
    }
    expect(only(entries, 'error')).toMatchObject([{ step: 'main/breaks', error }])
    expect(only(entries, 'step-finish')).toMatchObject([{ step: 'main/breaks', error }])
  })

  test('blocking steps before the answer are steps and traces, never words of it', async () => {
    const a = `
workflow:
  - { id: plan, type: llm, result: plan, config: { model: "script:m", tools: [work] } }
  - { id: say, type: llm, config: { model: "script:m", stream: true, messages: [{ role: user, content: "$plan.text" }] } }`
    const { text: said, entries } = await run({
      agents: { a },
      tools: { work },
      scripts: {
        m: createScriptedModel([
          [reasoning('secret thought'), toolCall('c', 'work', { n: 2 }), finish('tool-calls')],
          [text('a secret plan'), finish()],
          [text('Done.'), finish()],
        ]),
      },
    })
    expect(said).toBe('Done.')
    for (const wire of [textWire, uiWire]) {
      const encoder = wire.createEncoder()
      const body = entries.map((entry) => encoder.encode(entry)).join('')
      expect(body).toContain('Done.')
      expect(body).not.toContain('secret')
    }
    expect(only(entries, 'prompt').map(({ step }) => step)).toEqual(['main/plan/1', 'main/plan/3', 'main/say/1'])
    expect(only(entries, 'tool-result')).toMatchObject([{ step: 'main/plan/2', result: 4 }])
  })
})

describe('llm', () => {
  test('every key of its config reaches the provider, as the type it is', async () => {
    const model = createScriptedModel([[text('x'), finish()]])
    const { entries } = await run(
      {
        agents: {
          a: agent(`system: "Be $input.tone."
stage: planning
tools: [{ name: work, description: "of the file" }]
toolChoice: { tool: work }
temperature: "0.5"
maxOutputTokens: 100
topP: 0.9
stopSequences: [END]
seed: 7
reasoning: low
providerOptions: { script: { deep: { n: 1, flag: true, text: "1" }, from: "$input.tone" } }
headers: { x-tone: "$input.tone" }`),
        },
        tools: { work },
        scripts: { m: model },
      },
      { messages, tone: 'brief' },
    )
    expect(model.calls[0]!.options).toMatchObject({
      prompt: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }],
      tools: [{ type: 'function', name: 'work', description: 'of the file' }],
      toolChoice: { type: 'tool', toolName: 'work' },
      temperature: 0.5,
      maxOutputTokens: 100,
      topP: 0.9,
      stopSequences: ['END'],
      seed: 7,
      reasoning: 'low',
      providerOptions: { script: { deep: { n: 1, flag: true, text: '1' }, from: 'brief' } },
      headers: { 'x-tone': 'brief' },
    })
    expect(only(entries, 'prompt')).toMatchObject([{ stage: 'planning', system: 'Be brief.' }])
  })

  test('without a model it is that of the config', async () => {
    const model = createScriptedModel([[text('x'), finish()]])
    const { entries } = await run({
      agents: { a: agent().replace('model: "script:m"', 'stage: x') },
      models: { default: 'script:m' },
      scripts: { m: model },
    })
    expect(only(entries, 'prompt')).toMatchObject([{ model: 'script:m' }])
  })

  const calls = () =>
    createScriptedModel([
      [
        reasoning('hm'),
        text('Let me see. '),
        toolCall('c', 'work', { n: 3 }),
        finish('tool-calls', { in: 10, out: 5 }),
      ],
      [text('It is 9.'), finish('stop', { in: 20, out: 7 })],
    ])
  const whole = {
    text: 'It is 9.',
    reasoning: 'hm',
    finishReason: 'stop',
    usage: { inputTokens: 30, outputTokens: 12, totalTokens: 42, source: 'reported' },
    totalUsage: { inputTokens: 30, outputTokens: 12, totalTokens: 42, source: 'reported' },
    toolCalls: [{ toolCallId: 'c', toolName: 'work', input: { n: 3 } }],
    toolResults: [{ toolCallId: 'c', toolName: 'work', input: { n: 3 }, output: 9, isError: false }],
    steps: [
      {
        text: 'Let me see. ',
        finishReason: 'tool-calls',
        toolCalls: [{ toolCallId: 'c' }],
        usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15, source: 'reported' },
      },
      {
        text: 'It is 9.',
        finishReason: 'stop',
        toolCalls: [],
        usage: { inputTokens: 20, outputTokens: 7, totalTokens: 27, source: 'reported' },
      },
    ],
  }

  test('both modes run the same loop: the same prompts, the same log but for what is the answer', async () => {
    const logs: unknown[] = []
    for (const stream of ['true', 'false']) {
      const model = calls()
      const a = agent('tools: [work]').replace('stream: true', `stream: ${stream}`)
      const { entries } = await run({ agents: { a }, tools: { work }, scripts: { m: model } })
      const same = entries.filter(({ type }) => !['run-start', 'run-end', 'answer-end'].includes(type))
      logs.push([
        model.calls.map(({ options }) => options.prompt),
        same.map((entry) => ({ ...entry, seq: 0, timestamp: 0, duration: 0, answer: undefined })),
      ])
      await engine.close()
    }
    expect(logs[0]).toEqual(logs[1])
    engine = createEngine({ agents: {} })
  })

  test('`stream: false`: its result is the whole of what happened', async () => {
    const a = `${agent('tools: [work]').replace('stream: true', 'stream: false').trimEnd()}\n    result: out\n`
    const { output } = await run({ agents: { a }, tools: { work }, scripts: { m: calls() } })
    expect(output).toMatchObject({ out: whole })
  })

  test.each(['true', 'false'])(
    'stream: %s: onFinish once, with all of it; onStepFinish for each call; onChunk for each piece',
    async (stream) => {
      const told: Record<string, unknown[]> = { finish: [], step: [], chunk: [], error: [], abort: [] }
      const hooks = Object.keys(told).map(
        (name) => `on${name === 'step' ? 'StepFinish' : name[0]!.toUpperCase() + name.slice(1)}: ${name}`,
      )
      const { entries } = await run({
        agents: { a: agent(['tools: [work]', ...hooks].join('\n')).replace('stream: true', `stream: ${stream}`) },
        tools: { work },
        scripts: { m: calls() },
        callbacks: Object.fromEntries(
          Object.entries(told).map(([name, list]) => [name, (event: unknown) => void list.push(event)]),
        ),
      })
      expect(told['finish']).toHaveLength(1)
      expect(told['finish']![0]).toMatchObject({
        ...whole,
        response: { messages: [{ role: 'assistant' }, { role: 'tool' }, { role: 'assistant' }] },
      })
      expect(told['step']).toMatchObject(whole.steps)
      const deltas = told['chunk']!.map((event) => (event as { chunk: { type: string } }).chunk.type)
      expect(deltas.filter((type) => type === 'text-delta')).toHaveLength(only(entries, 'text-delta').length)
      expect([told['error'], told['abort']]).toEqual([[], []])
    },
  )

  test.each(['true', 'false'])('stream: %s: onError once with the error, and no onFinish', async (stream) => {
    const told: unknown[] = []
    const { outcome } = await run({
      agents: {
        a: agent('retries: 0\nonError: failed\nonFinish: finished\nonAbort: aborted').replace(
          'stream: true',
          `stream: ${stream}`,
        ),
      },
      scripts: { m: createScriptedModel([[text('Hel'), drop(new Error('reset'))]]) },
      callbacks: {
        failed: (event) => void told.push(event),
        finished: () => void told.push('finished'),
        aborted: () => void told.push('aborted'),
      },
    })
    expect(outcome).toBe('failed')
    expect(told).toEqual([
      { error: expect.objectContaining({ message: expect.any(String), code: expect.any(String) }) },
    ])
  })

  test('onAbort once with the partial text; no onError, no onFinish', async () => {
    const told: unknown[] = []
    engine = createEngine({
      agents: { a: agent('onError: failed\nonFinish: finished\nonAbort: aborted') },
      scripts: { m: createScriptedModel([[text('Half '), latch(), finish()]]) },
      callbacks: {
        failed: () => void told.push('failed'),
        finished: () => void told.push('finished'),
        aborted: (event) => void told.push(event),
      },
    })
    const started = await engine.runtime.start('a', { messages })
    await until(engine.store, started.id, ({ type }) => type === 'text-end')
    await started.stop('enough')
    await started.stop('enough')
    await started.result
    expect(told).toEqual([{ text: 'Half ', reason: 'enough' }])
  })

  test('a tool is given its call, its run, the conversation and a signal', async () => {
    let given: ToolContext | undefined
    const { id } = await run({
      agents: { a: agent('tools: [work]') },
      tools: { work: { ...work, execute: (_: unknown, context: ToolContext) => void (given = context) } },
      scripts: { m: calls() },
    })
    expect(given).toMatchObject({ toolCallId: 'c', runId: id, messages: [...messages, { role: 'assistant' }] })
    expect(given!.signal).toBeInstanceOf(AbortSignal)
  })

  test('`approval: true` inside containers is a durable request, answered by whoever comes', async () => {
    const ran: number[] = []
    const a = `
workflow:
  - id: all
    type: parallel
    config:
      branches:
        one:
          - id: rounds
            type: loop
            config:
              over: [1, 2]
              max: 2
              steps: [{ id: pay, type: llm, config: { model: "script:m", messages: [{ role: user, content: "pay $item" }], tools: [{ name: pay, approval: true }] } }]
        two: [{ id: fine, type: output-generator, config: { template: fine } }]`
    const pays = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool'
        ? [text(JSON.stringify(prompt.at(-1)!.content[0]).includes('denied') ? 'No.' : 'Paid.'), finish()]
        : [toolCall(`c${JSON.stringify(prompt[0]).includes('pay 1') ? 1 : 2}`, 'pay', { n: 1 }), finish('tool-calls')],
    )
    const options: EngineOptions = {
      agents: { a },
      tools: { pay: { parameters: z.object({ n: z.number() }), execute: ({ n }) => ran.push(n) } },
      scripts: { m: pays },
      keep: true,
    }
    const first = createEngine(options)
    const started = await first.runtime.start('a', { messages })
    expect((await started.result).outcome).toBe('suspended')
    expect(ran).toEqual([])
    await first.close()
    engine = createEngine({ ...options, dir: first.dir, keep: false })
    await engine.runtime.recover()
    for (const approved of [true, false]) {
      const entries = await entriesOf(engine.store, started.id)
      const { requestId } = only(entries, 'request').at(-1)!
      await engine.runtime.answer(started.id, requestId, { kind: 'approval', approved })
      await (await engine.runtime.open(started.id))!.result
    }
    const result = await (await engine.runtime.open(started.id))!.result
    expect(result).toMatchObject({
      outcome: 'completed',
      output: { one: [{ text: 'Paid.' }, { text: 'No.' }], two: 'fine' },
    })
    expect(ran).toEqual([1])
    await entriesOf(engine.store, started.id)
  })
})
