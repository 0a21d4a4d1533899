import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, type Engine } from '../support/engine.ts'

let engine: Engine
describe('server history', () => {
  afterEach(() => engine.close())

  test('history: server — the third turn reaches the model with both turns before it', async () => {
    const model = createScriptedModel(['one', 'two', 'three'].map((answer) => [text(answer), finish()]))
    engine = createEngine({ agents: { a: agent('', 'history: server') }, scripts: { m: model } })
    for (const content of ['first', 'second', 'third']) {
      const run = await engine.runtime.start('a', { messages: [{ role: 'user', content }] }, { threadId: 't' })
      expect(await run.result).toMatchObject({ outcome: 'completed' })
    }
    const told = model.calls[2]!.options.prompt.map(({ content }) =>
      typeof content === 'string' ? content : content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    )
    expect(told).toEqual(['first', 'one', 'second', 'two', 'third'])
  })
})
