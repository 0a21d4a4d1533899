/** Several models in turn, and answers with a shape. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  drop,
  finish,
  latch,
  text,
  throws,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { cutAfter } from '../support/going-on.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]

async function run(options: EngineOptions) {
  engine = createEngine(options)
  const { id, result } = await engine.runtime.start('a', { messages })
  return { ...(await result), entries: await entriesOf(engine.store, id) }
}

describe('model: [a, b]', () => {
  const a = agent('retries: 0').replace('"script:m"', '["script:a", "script:b"]')
  const pricing = { 'script:a': { input: 1, output: 1 }, 'script:b': { input: 100, output: 100 } }
  const busy = throws(new Error('busy'))

  test('the next one is asked when the first refuses: visible as a retry; usage and cost are the one’s that answered', async () => {
    const scripts = {
      a: createScriptedModel([[busy]]),
      b: createScriptedModel([[text('From b.'), finish()]]),
    }
    const { outcome, text: said, entries } = await run({ agents: { a }, scripts, pricing })
    expect([outcome, said]).toEqual(['completed', 'From b.'])
    expect(only(entries, 'prompt')).toMatchObject([{ model: 'script:a' }])
    expect(only(entries, 'retry')).toMatchObject([
      { model: 'script:b', error: { detail: expect.stringContaining('busy') } },
    ])
    expect(only(entries, 'usage')).toMatchObject([{ model: 'script:b', cost: (15 * 100) / 1e6 }])
    expect(only(entries, 'error')).toEqual([])
  })

  test('behind the first content there is no other model: no text twice', async () => {
    const b = createScriptedModel([[text('From b.'), finish()]])
    const { outcome, text: said } = await run({
      agents: { a },
      scripts: { a: createScriptedModel([[text('From '), drop()]]), b },
    })
    expect([outcome, said, b.calls.length]).toEqual(['failed', 'From ', 0])
  })

  test('a model that says nothing for too long is passed over', async () => {
    const { outcome, text: said } = await run({
      agents: { a: a.replace('workflow', 'timeouts: { firstToken: 50ms }\nworkflow') },
      scripts: {
        a: createScriptedModel([[latch(), text('late'), finish()]]),
        b: createScriptedModel([[text('From b.'), finish()]]),
      },
    })
    expect([outcome, said]).toEqual(['completed', 'From b.'])
  })

  test('a crash while the second one speaks: what it had said is its usage', async () => {
    const options = {
      agents: { a },
      scripts: { a: createScriptedModel([[busy]]), b: createScriptedModel([[text('From b.'), finish()]]) },
    }
    const { entries } = await run(options)
    await engine.close()
    const k = entries.findIndex(({ type }) => type === 'text-delta') + 1
    engine = await cutAfter(entries, k, options)
    expect(await engine.runtime.recover()).toEqual({ resumed: 0, interrupted: 1 })
    const { runId } = only(entries, 'run-start')[0]!
    expect(only(await entriesOf(engine.store, runId), 'usage')).toMatchObject([{ model: 'script:b' }])
  })

  test('when none answers, the last one’s reason is the run’s', async () => {
    const { outcome, error, entries } = await run({
      agents: { a },
      scripts: { a: createScriptedModel([[busy]]), b: createScriptedModel([[throws(new Error('gone'))]]) },
    })
    expect(outcome).toBe('failed')
    expect(error?.detail).toContain('gone')
    expect(only(entries, 'error')).toHaveLength(1)
  })

  test('a key that is missing is an error at once, whichever model it is for', async () => {
    const model = createScriptedModel([[text('never'), finish()]])
    const { outcome, error } = await run({
      agents: { a: a.replace('script:b', 'google:gemini-2.0-flash') },
      scripts: { a: model },
    })
    expect(outcome).toBe('failed')
    expect(error).toMatchObject({
      code: 'missing-key',
      message: expect.stringContaining('GOOGLE_GENERATIVE_AI_API_KEY'),
    })
    expect(model.calls).toHaveLength(0)
  })
})

describe('output: {schema}', () => {
  const a = agent(
    'output: { schema: { title: string, tags: { type: array, items: string }, n: { type: integer, default: 3 } } }',
  )
  const json = '{"title": "A tale of the sea", "tags": ["sea", "ships", "storms"]}'

  test('the provider is told the shape; the object is checked, with defaults, in $x.object', async () => {
    const model = createScriptedModel([[text(json), finish()]])
    const workflow = a.replace('stream: true', 'stream: false').trimEnd()
    const { output } = await run({
      agents: {
        a: `${workflow}\n    result: x\n  - { id: end, type: output-generator, config: { template: "$x.object" } }`,
      },
      scripts: { m: model },
    })
    expect(output).toEqual({ title: 'A tale of the sea', tags: ['sea', 'ships', 'storms'], n: 3 })
    expect(model.calls[0]!.options.responseFormat).toMatchObject({
      type: 'json',
      schema: { type: 'object', properties: { title: { type: 'string' } }, required: ['title', 'tags'] },
    })
  })

  test('it is streamed: partial objects while the model speaks, the whole one at the end, under one id', async () => {
    const gate = latch()
    engine = createEngine({
      agents: { a },
      scripts: { m: createScriptedModel([[text(...json.slice(0, 40)), gate, text(...json.slice(40)), finish()]]) },
    })
    const started = await engine.runtime.start('a', { messages })
    const first = await until(engine.store, started.id, ({ type }) => type === 'data')
    expect(first).toMatchObject({ step: 'main/answer', name: 'output', id: 'main/answer' })
    gate.open()
    expect((await started.result).outcome).toBe('completed')
    const data = only(await entriesOf(engine.store, started.id), 'data')
    expect(new Set(data.map(({ id }) => id)).size).toBe(1)
    expect(data.length).toBeGreaterThan(2)
    expect(data[0]!.data).toEqual({ title: expect.stringMatching(/^A/u) })
    expect(data.at(-1)!.data).toEqual({ title: 'A tale of the sea', tags: ['sea', 'ships', 'storms'], n: 3 })
  })

  test('a long answer in single characters costs few objects', async () => {
    const tags = Array.from({ length: 4000 }, (_, i) => `t${i}`)
    const long = JSON.stringify({ title: 'x', tags })
    const { outcome, entries } = await run({
      agents: { a },
      scripts: { m: createScriptedModel([[text(...long), finish()]]) },
    })
    expect(outcome).toBe('completed')
    const data = only(entries, 'data')
    expect(data.length).toBeGreaterThan(10)
    expect(data.length).toBeLessThan(80)
    expect(JSON.stringify(data).length).toBeLessThan(20 * long.length)
  })

  test.each([
    ['{"title": 4}', /output\.title must be a string, not 4; output\.tags is missing/u],
    ['I would rather not.', /contains no valid JSON/u],
    ['', /contains no valid JSON/u],
  ])('%j does not fit: bad-output, with all that is wrong', async (said, message) => {
    const told: unknown[] = []
    const { outcome, error, entries } = await run({
      agents: { a: a.replace('stream: true', 'stream: true\n      onError: failed\n      onFinish: finished') },
      scripts: {
        m: createScriptedModel([
          [text(said), finish()],
          [text(said), finish()],
        ]),
      },
      callbacks: { failed: ({ error: e }) => void told.push(e.code), finished: () => void told.push('finished') },
    })
    expect(outcome).toBe('failed')
    expect(error).toMatchObject({ code: 'bad-output', message: expect.stringMatching(message) })
    expect(only(entries, 'error')).toHaveLength(1)
    expect(told).toEqual(['bad-output'])
  })

  test('a step that is no answer shows its object to nobody', async () => {
    const hidden = a.replace('stream: true', 'stream: false')
    const { entries } = await run({
      agents: { a: hidden },
      scripts: { m: createScriptedModel([[text(json), finish()]]) },
    })
    expect(only(entries, 'data')).toEqual([])
  })

  test('a call that is handed over to the client is no bad output', async () => {
    engine = createEngine({
      agents: { a: a.replace('stream: true', 'stream: true\n      tools: [ask]') },
      tools: { ask: { parameters: z.looseObject({}) } },
      scripts: { m: createScriptedModel([[toolCall('c', 'ask'), finish('tool-calls')]]) },
    })
    const { result } = await engine.runtime.start('a', { messages }, { handOver: true })
    expect((await result).outcome).toBe('completed')
  })
})
