/** Runs of the engine as an OpenAI client is told of them: whose a tool is, what is handed over, what extensions show when. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, drop, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { OpenAiOptions } from '../../src/wire/openai/openai-output.ts'
import { openaiWire } from '../../src/wire/openai/openai.ts'
import { readSdkParts, readStream } from '../openai-client.ts'
import { complete } from '../openai-items.ts'
import { agent, createEngine, entriesOf, only, type Engine, type EngineOptions } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]
const own = { type: 'function', function: { name: 'own', parameters: { type: 'object' } } }
const tools = {
  square: { description: 'n*n', parameters: z.object({ n: z.number() }), execute: ({ n }: { n: number }) => n * n },
  /** Nobody here can run it. */
  ask: { description: 'Asks.', parameters: z.object({}) },
}

async function run(options: EngineOptions, openai: OpenAiOptions = {}) {
  engine = createEngine({ tools, ...options })
  const { id, result } = await engine.runtime.start('a', { messages, tools: [own] }, { handOver: true })
  await result
  const entries = await entriesOf(engine.store, id)
  const encoder = openaiWire.createEncoder({}, openai)
  return { entries, body: entries.map((entry) => encoder.encode(entry)).join(''), result: complete(entries, openai) }
}

describe('OpenAI models in a run', () => {
  test('the log says which tools are the client’s, the model is not told', async () => {
    const model = createScriptedModel([[text('Hi'), finish()]])
    const { entries } = await run({ agents: { a: agent('tools: [square, ask]') }, scripts: { m: model } })
    const whose = only(entries, 'prompt')[0]!.tools!.map(({ name, client }) => [name, client])
    expect(whose).toEqual([
      ['own', true],
      ['square', undefined],
      ['ask', true],
    ])
    expect(model.calls[0]!.options.tools!.map((tool) => Object.keys(tool).toSorted())).toEqual(
      [1, 2, 3].map(() => expect.not.arrayContaining(['client'])),
    )
  })

  test('the client’s calls are handed over whatever their arguments, the server’s are run and hidden', async () => {
    const calls = [
      toolCall('call_1', 'own', '{"a":'),
      toolCall('call_2', 'square', { n: 3 }),
      toolCall('call_3', 'ask'),
    ]
    const model = createScriptedModel([[text('I ask.'), calls, finish('tool-calls')]])
    const { entries, body, result } = await run({ agents: { a: agent('tools: [square, ask]') }, scripts: { m: model } })
    const outcomes = only(entries, 'tool-result').map(({ toolCallId, outcome }) => [toolCallId, outcome])
    expect(Object.fromEntries(outcomes)).toEqual({ call_1: 'handed-over', call_2: undefined, call_3: 'handed-over' })
    expect(result).toMatchObject({
      body: { choices: [{ finish_reason: 'tool_calls', message: { content: 'I ask.' } }] },
    })
    const parts = await readSdkParts(body)
    const told = parts.flatMap((part) =>
      part.type === 'tool-call' ? [[part.toolCallId, part.toolName, part.input]] : [],
    )
    expect(told).toEqual([
      ['call_1', 'own', '{"a":'],
      ['call_3', 'ask', '{}'],
    ])
    expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'tool-calls' } })
  })

  test('a branch that breaks off after a call was shown leaves no answer that looks complete', async () => {
    const gate = latch()
    const [a, b] = ['a', 'b'].map(
      (name) => `{ id: say-${name}, type: llm, config: { model: "script:${name}", stream: true } }`,
    )
    const yaml = `
workflow:
  - id: all
    type: parallel
    config: { onError: continue, branches: { a: [${a}], b: [${b}] } }
`
    const breaks = createScriptedModel([[toolCall('call_1', 'own').slice(0, 2), drop()]])
    const speaks = createScriptedModel([[gate, text('All is well.'), finish()]])
    void gate.reached.then(gate.open)
    const { entries, body, result } = await run({ agents: { a: yaml }, scripts: { a: breaks, b: speaks } })
    expect(entries.at(-1)).toMatchObject({ type: 'run-end', outcome: 'completed' })
    expect(result).toMatchObject({ error: { code: 'tool-call-lost' } })
    expect((await readStream(body)).error?.message).toContain('own')
  })

  test('extension tools: each call before it runs, each output as soon as its tool ends, and none of the respond of a router', async () => {
    const slow = latch()
    const wait = {
      parameters: z.object({}),
      execute: async () => {
        await slow.opened
        return 'slow'
      },
    }
    const quick = {
      parameters: z.object({}),
      execute: () => {
        setImmediate(slow.open)
        return 'quick'
      },
    }
    const m = createScriptedModel([
      [toolCall('call_1', 'wait'), toolCall('call_2', 'quick'), finish('tool-calls')],
      [toolCall('call_3', 'respond'), toolCall('call_4', 'quick', { again: 1 }), finish('tool-calls')],
      [text('Done.'), finish()],
    ])
    const yaml = `
workflow:
  - { id: look, type: router, result: route, config: { model: "script:m", messages: "$input.messages", tools: [wait, quick] } }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, messages: "$route.messages" } }
`
    const options = { agents: { a: yaml }, scripts: { m }, tools: { wait, quick } }
    const { body, result } = await run(options, { extensions: ['tools', 'trace'] })
    const frames = body.split('\n\n').slice(0, -2)
    const order = frames.flatMap((frame) => {
      const { choices, bernard } = JSON.parse(frame.slice('data: '.length))
      if (bernard !== undefined) return [`prompt ${bernard.stage}`]
      const { tool_calls: [call] = [], tool_outputs: [output] = [], content } = choices[0].delta
      if (call !== undefined) return [`call ${call.id}`]
      return output === undefined ? (content ? [content] : []) : [`output ${output.id} ${output.content}`]
    })
    expect(order).toEqual([
      'prompt router',
      'call call_1',
      'call call_2',
      'output call_2 quick',
      'output call_1 slow',
      'prompt router',
      'call call_4',
      'output call_4 quick',
      'prompt response',
      'Done.',
    ])
    expect(body).not.toContain('respond"')
    expect(result).toMatchObject({ body: { bernard: { length: 3 }, choices: [{ finish_reason: 'stop' }] } })
  })

  test('the steps that ran out are length, not an end', async () => {
    const again = (n: number) => [toolCall(`call_${n}`, 'square', { n }), finish('tool-calls')]
    const model = createScriptedModel([again(1), again(2)])
    const { result } = await run({ agents: { a: agent('tools: [square]\nmaxSteps: 2') }, scripts: { m: model } })
    expect(result).toMatchObject({ body: { choices: [{ finish_reason: 'length' }] } })
  })
})
