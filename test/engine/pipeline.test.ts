import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, type Engine } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const messages = [{ role: 'user', content: 'Hi' }]
const blocking = `
workflow:
  - id: ask
    type: llm
    config: { model: "script:m", stream: false }
    result: out
`

describe('pipelines', () => {
  test('a blocking step gives its result to the next; the last step without a result is the value', async () => {
    const yaml = `${blocking}
  - id: shape
    type: output-generator
    config: { template: { status: done, tokens: "$out.usage.totalTokens", said: "It said: $out.text" } }
`
    const model = createScriptedModel([[text('yes'), finish()]])
    engine = createEngine({ agents: { a: yaml }, scripts: { m: model } })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({
      outcome: 'completed',
      output: { status: 'done', tokens: 15, said: 'It said: yes' },
      text: '',
    })
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'answer-end')).toEqual([])
    expect(only(entries, 'step-start').some(({ answer }) => answer)).toBe(false)
  })

  test('without an unnamed last step the value is all variables; `return` shapes it', async () => {
    const model = () => createScriptedModel([[text('yes'), finish()]])
    engine = createEngine({
      agents: { a: blocking, b: `${blocking}\nreturn: { answer: "$out.text" }` },
      scripts: {
        m: createScriptedModel([
          [text('yes'), finish()],
          [text('no'), finish()],
        ]),
      },
    })
    void model
    const all = await (await engine.runtime.start('a', { messages })).result
    expect(all.output).toMatchObject({ out: { text: 'yes', finishReason: 'stop' } })
    const shaped = await (await engine.runtime.start('b', { messages })).result
    expect(shaped.output).toEqual({ answer: 'no' })
  })

  test('a streaming step ends the pipeline; `after` runs behind it and changes nothing of the answer', async () => {
    const yaml = `
workflow:
  - id: say
    type: llm
    config: { model: "script:m", stream: true }
    result: said
  - id: never
    type: output-generator
    config: { template: never }
after:
  - id: note
    type: note
    config: { text: "$said.text" }
  - id: fails
    type: fails
`
    const notes: unknown[] = []
    const steps = {
      note: (config: unknown) => void notes.push(config),
      fails: () => Promise.reject(new Error('too late')),
    }
    engine = createEngine({
      agents: { a: yaml },
      steps,
      scripts: { m: createScriptedModel([[text('done'), finish()]]) },
    })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'done' })
    expect(notes).toEqual([{ text: 'done' }])
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'step-start').map(({ step }) => step)).toEqual([
      'main/say',
      'main/say/1',
      'after/note',
      'after/fails',
    ])
    expect(only(entries, 'error')).toMatchObject([{ error: { detail: 'too late' } }])
  })

  test('a failing step names itself, and nothing later runs', async () => {
    let ran = false
    const yaml = `
workflow:
  - id: first
    type: output-generator
    config: { template: "$input.missing.deep" }
  - id: second
    type: mark
`
    engine = createEngine({ agents: { a: yaml }, steps: { mark: () => void (ran = true) } })
    const run = await engine.runtime.start('a', { messages })
    const { outcome, error } = await run.result
    expect(outcome).toBe('failed')
    expect(error?.message).toContain('first')
    expect(error?.message).toContain('input.missing')
    expect(ran).toBe(false)
    await entriesOf(engine.store, run.id)
  })

  const custom = `
workflow:
  - id: mine
    type: mine
  - id: later
    type: later
`

  test.each([
    ['a Response', async () => new Response('streamed')],
    ['a ReadableStream', async () => new Response('streamed').body],
    [
      'an async iterable of strings',
      async () =>
        (async function* () {
          yield 'stre'
          yield 'amed'
        })(),
    ],
    [
      'a Response by shape',
      async () => ({
        status: 200,
        ok: true,
        headers: new Headers(),
        text: (): string => '',
        body: new Response('streamed').body,
      }),
    ],
  ])('%s returned by a custom step is the answer and ends the pipeline', async (_, mine) => {
    let later = false
    engine = createEngine({ agents: { a: custom }, steps: { mine, later: () => void (later = true) } })
    const run = await engine.runtime.start('a', {})
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'streamed' })
    expect(later).toBe(false)
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'step-start')[1]).toMatchObject({ step: 'main/mine/1', stepType: 'stream', answer: true })
  })

  test('a custom step may yield parts, return a value, and gets input, variables, signal, tools and models', async () => {
    let context: any
    const steps = {
      async *mine(_: unknown, given: unknown) {
        context = given
        yield { type: 'data', name: 'progress', data: 0.5 }
        return { value: 7 }
      },
      later: (_: unknown, { variables }: { variables: Map<string, any> }) => variables.get('seven').value + 1,
    }
    const yaml = custom.replace('type: mine', 'type: mine\n    result: seven')
    engine = createEngine({ agents: { a: yaml }, steps: steps as never })
    const run = await engine.runtime.start('a', { topic: 'x' })
    expect(await run.result).toMatchObject({ outcome: 'completed', output: 8 })
    expect(context.input).toEqual({ topic: 'x' })
    expect(context.signal.aborted).toBe(false)
    expect(context.tools.has('calculator')).toBe(true)
    expect(only(await entriesOf(engine.store, run.id), 'data')).toMatchObject([
      { name: 'progress', data: 0.5, step: 'main/mine' },
    ])
  })

  test('a custom step that ignores its signal is settled by the runner', async () => {
    const reached = latch()
    const steps = { mine: () => (reached.open(), new Promise(() => undefined)), later: () => undefined }
    engine = createEngine({ agents: { a: custom }, steps })
    const run = await engine.runtime.start('a', {})
    await reached.opened
    await run.stop('enough')
    expect(await run.result).toMatchObject({ outcome: 'aborted', error: { message: 'enough' } })
    await entriesOf(engine.store, run.id)
  })

  test('a missing key is one clear line before anything is sent', async () => {
    const yaml = `
workflow:
  - id: ask
    type: llm
    config: { model: "gemini-2.0-flash-exp", stream: true }
`
    engine = createEngine({ agents: { a: yaml } })
    const run = await engine.runtime.start('a', { messages })
    const { outcome, error } = await run.result
    expect(outcome).toBe('failed')
    expect(error?.code).toBe('missing-key')
    expect(error?.message).toMatch(/GOOGLE_GENERATIVE_AI_API_KEY/)
  })
})
