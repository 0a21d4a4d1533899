/** Step types of a program may have the names that the engine gives to its own steps. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, type Engine } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const names = ['model-call', 'tool-call', 'client-tool', 'approval', 'branch', 'round', 'stream', 'handler']

describe('names like those of Millrace', () => {
  test('they are counted as no call, and have an output of their own', async () => {
    engine = createEngine({
      agents: {
        a: `
budget: { steps: 1 }
workflow:
${names.map((name) => `  - { id: s-${name}, type: ${name}, config: {}, result: ${name.replace('-', '_')} }`).join('\n')}
  - { id: answer, type: llm, config: { model: "script:m", stream: true } }
`,
      },
      steps: Object.fromEntries(names.map((name) => [name, async () => `from ${name}`])),
      scripts: { m: createScriptedModel([[text('Hi'), finish()]]) },
    })
    const run = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'x' }] })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Hi' })
    const entries = await entriesOf(engine.store, run.id)
    const kinds = only(entries, 'step-start').map(({ step, stepType, kind }) => [step, stepType, kind])
    expect(kinds).toEqual([
      ...names.map((name) => [`main/s-${name}`, name, 'custom']),
      ['main/answer', 'llm', 'tool-loop'],
      ['main/answer/1', 'model-call', 'model-call'],
    ])
    expect(only(entries, 'step-finish').slice(0, 2)).toMatchObject([
      { result: 'from model-call' },
      { result: 'from tool-call' },
    ])
  })
})
