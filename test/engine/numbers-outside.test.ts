/** Numbers beyond what a number can hold: `1e999` is neither `Infinity` nor `null`. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, type Engine } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const call = (toolName: string, input: string): ScriptStep => [
  { type: 'tool-call', toolCallId: 'c', toolName, input },
  finish('tool-calls'),
]

describe('numbers of outside data', () => {
  test('arguments of a tool: the model is told, and the tool is not run', async () => {
    let ran = 0
    const tool = { parameters: z.object({ n: z.any() }), execute: () => ++ran }
    engine = createEngine({
      agents: { a: agent('tools: [count]') },
      tools: { count: tool },
      scripts: { m: createScriptedModel([[call('count', '{"n":1e999}')], [text('ok'), finish()]]) },
    })
    const { id, result } = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    expect((await result).outcome).toBe('completed')
    expect(ran).toBe(0)
    expect((await entriesOf(engine.store, id)).find(({ type }) => type === 'tool-result')).toMatchObject({
      isError: true,
      result: 'The arguments are not valid JSON: a number is out of range',
    })
  })

  test('a result of a tool keeps what it is', async () => {
    const tool = { parameters: z.object({}), execute: () => ({ ratio: 1 / 0 }) }
    engine = createEngine({
      agents: { a: agent('tools: [divide]') },
      tools: { divide: tool },
      scripts: { m: createScriptedModel([[call('divide', '{}')], [text('ok'), finish()]]) },
    })
    const { id, result } = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    await result
    expect((await entriesOf(engine.store, id)).find(({ type }) => type === 'tool-result')).toMatchObject({
      result: { ratio: 'Infinity' },
    })
  })

  test('structured output does not fit', async () => {
    engine = createEngine({
      agents: { a: agent('output: { schema: { n: number } }') },
      scripts: {
        m: createScriptedModel([
          [text('{"n": 1e999}'), finish()],
          [text('{"n": 1e999}'), finish()],
          [text('{"n": 1e999}'), finish()],
        ]),
      },
    })
    const { result } = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    expect(await result).toMatchObject({ outcome: 'failed', error: { code: 'bad-output' } })
  })

  test('a request body is refused', async () => {
    engine = createEngine({ agents: { a: agent() }, scripts: { m: createScriptedModel([]) } })
    const handler = createHandler({ runtime: engine.runtime })
    const response = await handler(
      new Request('http://localhost/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"agentId":"a","messages":[],"n":1e999}',
      }),
    )
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { code: 'bad-json', message: expect.stringContaining('out of range') },
    })
  })
})
