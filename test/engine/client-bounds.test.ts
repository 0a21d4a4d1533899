/** What a client must not be able to do with what it sends. */
import { afterEach, describe, expect, test } from 'vitest'
import { continueOrStart } from '../../src/runtime/continue.ts'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, until, type Engine } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())
const messages = [{ role: 'user' as const, content: 'Hi' }]

describe('client bounds', () => {
  test('a request cannot name a recording as its model', async () => {
    const yaml = agent().replace('script:m', '$input.model')
    engine = createEngine({
      agents: { a: agent(), b: yaml },
      scripts: { m: createScriptedModel([[text('told'), finish()]]) },
    })
    const one = await engine.runtime.start('a', { messages })
    await one.result
    for (const model of [`recording:${one.id}`, ` recording : ${one.id}`]) {
      const two = await engine.runtime.start('b', { messages, model })
      expect(await two.result).toMatchObject({ outcome: 'failed', text: '', error: { code: 'bad-input' } })
    }
  })

  test('of two contrary answers at the same moment one counts, and the other is refused', async () => {
    const model = createScriptedModel([
      [toolCall('c1', 'pick'), finish('tool-calls')],
      [text('ok'), finish()],
    ])
    engine = createEngine({ agents: { a: agent() }, scripts: { m: model } })
    const tools = [{ name: 'pick', description: 'Asks', parameters: { type: 'object', properties: {} } }]
    const run = await engine.runtime.start('a', { messages, tools }, { threadId: 't' })
    await until(engine.store, run.id, ({ type }) => type === 'suspend')
    const answer = (output: number) =>
      continueOrStart(engine.runtime, {
        agentId: 'a',
        threadId: 't',
        messages,
        answers: [{ toolCallId: 'c1', answer: { kind: 'tool', output } }],
        input: {},
        protocol: 'ui',
        onBusy: 'interrupt',
        history: 'client',
      })
    const settled = await Promise.allSettled([answer(1), answer(2)])
    expect(settled).toMatchObject([
      { status: 'fulfilled', value: { run: { id: run.id } } },
      { status: 'rejected', reason: { code: 'answer-conflict', status: 409 } },
    ])
  })
})
