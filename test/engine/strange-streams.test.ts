/** Models that send their parts in the wrong order: the log obeys the grammar all the same. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, type Engine } from '../support/engine.ts'

let engine: Engine
describe('strange streams', () => {
  afterEach(() => engine.close())

  test('text after the end of an answer is kept, in a block that ends', async () => {
    const late = { type: 'text-delta' as const, id: 'late', delta: ' there' }
    engine = createEngine({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[text('Hi'), finish(), late]]) },
    })
    const run = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'x' }] })
    const { outcome } = await run.result
    const entries = await entriesOf(engine.store, run.id)
    expect([outcome, only(entries, 'text-delta').map(({ delta }) => delta)]).toEqual(['completed', ['Hi', ' there']])
    expect(only(entries, 'text-end')).toHaveLength(2)
  })
})
