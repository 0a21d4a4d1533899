import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createRuntime } from '../project/create-runtime.ts'
import {
  createScriptedModel,
  delay,
  drop,
  errorPart,
  finish,
  latch,
  reasoning,
  refuse,
  text,
  throws,
  toolCall,
  type Script,
  type ScriptedOptions,
} from '../testing.ts'

const options: LanguageModelV4CallOptions = { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] }

async function played(script: Script, given: ScriptedOptions = {}): Promise<LanguageModelV4StreamPart[]> {
  const { stream } = await createScriptedModel(script, given).doStream(options)
  const parts: LanguageModelV4StreamPart[] = []
  for await (const part of stream) parts.push(part)
  return parts
}

/** Runs one step with this model in the engine. */
async function run(script: Script, config = '') {
  const model = createScriptedModel(script)
  const runtime = createRuntime({
    agents: {
      a: `workflow: [{ id: s, type: llm, config: { model: "x:y", stream: true, tools: [calculator]${config} } }]`,
    },
    models: { providers: { x: () => model } },
  })
  onTestFinished(() => runtime.close())
  const started = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
  return { model, started, result: () => started.result }
}

describe('scripted model', () => {
  test('words, reasoning and calls come as parts with ids of their own, and an end that fits', async () => {
    const parts = await played([
      [reasoning('hm'), text('a', 'b'), text('c'), toolCall('t', { x: 1 }), toolCall('t', 'broken{')],
    ])
    expect(parts.flatMap((part) => (part.type.endsWith('-start') && 'id' in part ? [part.id] : []))).toEqual([
      'block-1',
      'block-2',
      'block-3',
      'call_1_1',
      'call_1_2',
    ])
    expect(parts.filter((part) => part.type === 'tool-call')).toMatchObject([
      { toolCallId: 'call_1_1', toolName: 't', input: '{"x":1}' },
      { toolCallId: 'call_1_2', input: 'broken{' },
    ])
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'tool-calls' } })
    expect((await played([[text('a')]])).at(-1)).toMatchObject({ finishReason: { unified: 'stop' } })
    expect((await played([[text('a'), finish('length', { in: 3 })]])).at(-1)).toMatchObject({
      finishReason: { unified: 'length' },
      usage: { inputTokens: { total: 3 }, outputTokens: { total: 5 } },
    })
    expect((await played([[text('a')]], { autoFinish: false })).at(-1)?.type).toBe('text-end')
  })

  test('through the engine: a tool is called, its result comes back, and the script ends with an error', async () => {
    const { model, result } = await run([[toolCall('calculator', { expression: '12*7' })], [text('It is 84.')]])
    expect(await result()).toMatchObject({ outcome: 'completed', text: 'It is 84.' })
    expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('"result":84')
    const short = await run([[toolCall('calculator', { expression: '1' })]])
    expect(await short.result()).toMatchObject({
      outcome: 'failed',
      error: { detail: expect.stringContaining('this is call 2, but the script has only 1 call(s)') },
    })
  })

  test.each([
    ['a status', [refuse(401, 'no such key')], { code: 'model-refused', status: 401 }],
    [
      'a status behind a delay',
      [delay(1), refuse(429, 'slow down', { retryAfter: 7 })],
      { code: 'rate-limited', retryAfter: 7 },
    ],
    ['an error', [throws(new Error('what'))], { code: 'model-failed' }],
    ['an error in the stream', [text('a'), errorPart(new Error('overloaded'))], { code: 'model-failed' }],
    ['a broken connection', [text('a'), drop()], { code: 'connection-lost' }],
  ])('%s is what the run fails with', async (_, steps, error) => {
    const { result } = await run([steps], ', retries: 0')
    expect(await result()).toMatchObject({ outcome: 'failed', error })
  })

  test('a latch holds the model, and a stop goes through it and through a delay', async () => {
    const gate = latch()
    const held = await run([[text('early '), gate, text('late')]])
    await gate.reached
    gate.open()
    expect(await held.result()).toMatchObject({ outcome: 'completed', text: 'early late' })

    const reached = latch()
    reached.open()
    const slow = await run([[text('early'), reached, delay(2 ** 31 - 1), text('late')]])
    await reached.reached
    await slow.started.stop()
    expect(await slow.result()).toMatchObject({ outcome: 'aborted', text: 'early' })
    expect(slow.model.calls[0]!.aborted).toBe(true)
  })

  test('a function answers each call by what it is asked, and doGenerate gives the whole answer', async () => {
    const model = createScriptedModel((call, n) => [text(`${n}: ${call.options.prompt.length}`)])
    await model.doStream(options)
    expect(await model.doGenerate(options)).toMatchObject({ content: [{ type: 'text', text: '2: 1' }] })
  })
})
