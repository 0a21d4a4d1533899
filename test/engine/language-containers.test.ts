/** `condition`, `loop` and `parallel`: what runs, in which order, and what it comes to. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { PrimitiveHandler } from '../../src/engine/registry.ts'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { eventually } from '../support/going-on.ts'

let engine: Engine
afterEach(() => engine.close())

async function run(workflow: string, input: Record<string, unknown> = {}, options: Partial<EngineOptions> = {}) {
  engine = createEngine({ agents: { a: `workflow:${workflow}\n` }, ...options })
  const { id, result } = await engine.runtime.start('a', input)
  return { ...(await result), entries: await entriesOf(engine.store, id) }
}
/** What a step at its place can see. */
const see: PrimitiveHandler = (_, { variables }) => Object.fromEntries(variables)
const steps = (entries: readonly Entry[]) => only(entries, 'step-start').map(({ step }) => step)
const out = (id: string, template: string) => `{ id: ${id}, type: output-generator, config: { template: ${template} } }`

describe('condition', () => {
  const nested = `
  - id: outer
    type: condition
    config:
      if: $input.n > 1
      then:
        - id: inner
          type: condition
          result: said
          config: { if: $input.n > 2, then: [${out('big', 'big')}], else: [${out('middle', 'middle')}] }
        - ${out('last', '"it is $said"')}
      else: [${out('small', 'small')}]`

  test.each([
    [3, 'it is big', ['main/outer', 'main/outer/then', 'main/outer/then/inner', 'main/outer/then/inner/then']],
    [2, 'it is middle', ['main/outer', 'main/outer/then', 'main/outer/then/inner', 'main/outer/then/inner/else']],
    [1, 'small', ['main/outer', 'main/outer/else', 'main/outer/else/small']],
  ])('%j takes its branch, nested as deep as it stands; nothing of the other runs', async (n, output, begun) => {
    const result = await run(nested, { n })
    expect(result).toMatchObject({ outcome: 'completed', output })
    expect(steps(result.entries).slice(0, begun.length)).toEqual(begun)
  })

  test('without else its value is null; what is set inside is gone behind it', async () => {
    const workflow = `
  - id: maybe
    type: condition
    result: chosen
    config: { if: $input.yes, then: [{ id: inside, type: output-generator, result: inside, config: { template: 7 } }] }
  - { id: end, type: see }`
    expect((await run(workflow, { yes: false }, { steps: { see } })).output).toEqual({ chosen: null })
    await engine.close()
    expect((await run(workflow, { yes: true }, { steps: { see } })).output).toEqual({ chosen: 7 })
  })

  test('an expression that is no condition fails the step, which is named', async () => {
    const { outcome, error } = await run(
      `\n  - { id: odd, type: condition, config: { if: $input.n, then: [${out('x', '1')}] } }`,
      { n: 3 },
    )
    expect(outcome).toBe('failed')
    expect(error).toMatchObject({
      code: 'bad-expression',
      message: expect.stringMatching(/^Step "odd" \(condition\): /u),
    })
  })
})

describe('loop', () => {
  test('over a list: as, $index, the value of every round; the step after sees them', async () => {
    const { output, entries } = await run(
      `
  - id: each
    type: loop
    result: all
    config: { over: $input.words, as: word, max: 5, steps: [${out('say', '"$index $word"')}] }
  - ${out('end', '{ all: $all }')}`,
      { words: ['a', 'b', 'c'] },
    )
    expect(output).toEqual({ all: ['0 a', '1 b', '2 c'] })
    expect(steps(entries).filter((path) => /\d$/u.test(path))).toEqual(['main/each/0', 'main/each/1', 'main/each/2'])
  })

  test('while: a round sees what the one before has set; max ends it, true or not', async () => {
    const loop = (condition: string) => `
  - id: grow
    type: loop
    config:
      while: ${condition}
      max: 4
      steps: [{ id: more, type: add, result: sum, config: { to: "$sum?" } }]`
    const add: PrimitiveHandler = ({ to }: { to?: number }) => (to ?? 0) + 1
    expect((await run(loop('$sum? != 2'), {}, { steps: { add } })).output).toEqual([1, 2])
    await engine.close()
    expect((await run(loop('true'), {}, { steps: { add } })).output).toEqual([1, 2, 3, 4])
    await engine.close()
    expect((await run(loop('false'), {}, { steps: { add } })).output).toEqual([])
  })

  test('items that JSON cannot hold are recorded as far as it can', async () => {
    const cycle: unknown[] = []
    cycle.push(cycle)
    const { outcome, output, entries } = await run(
      `
  - { id: make, type: make, result: made }
  - id: each
    type: loop
    config: { over: $made, steps: [{ id: seen, type: seen, config: $item }] }`,
      {},
      { steps: { make: () => [1n, cycle], seen: (item: unknown) => typeof item } },
    )
    expect([outcome, output]).toEqual(['completed', ['bigint', 'object']])
    expect(only(entries, 'step-start').find(({ step }) => step === 'main/each')!.items).toEqual(['1', ['[circular]']])
  })

  test.each([
    [['a', 'b', 'c'], 'loop-too-long', 'Step "each" (loop): the list has 3 items, but "max" is 2'],
    ['abc', 'bad-value', 'Step "each" (loop): "over" must be a list'],
  ])('%j is refused before the first round', async (words, code, message) => {
    let ran = 0
    const { outcome, error } = await run(
      `\n  - { id: each, type: loop, config: { over: $input.words, max: 2, steps: [{ id: count, type: count }] } }`,
      { words },
      { steps: { count: () => ++ran } },
    )
    expect([outcome, ran]).toEqual(['failed', 0])
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) })
  })
})

const three = (more = '') => `
  - id: all
    type: parallel
    config:
      ${more}
      branches:
        a: [{ id: x, type: held, config: a }]
        b: [{ id: y, type: held, config: b }]
        c: [{ id: z, type: held, config: c }]`

describe('parallel', () => {
  test('really at once: all have begun before any has ended; the log is in the order of production', async () => {
    const gates = { a: latch(), b: latch(), c: latch() }
    const held: PrimitiveHandler = async (name: keyof typeof gates) => {
      gates[name].arrive()
      await gates[name].opened
      return name.toUpperCase()
    }
    engine = createEngine({ agents: { a: `workflow:${three()}\n` }, steps: { held } })
    const started = await engine.runtime.start('a', {})
    await Promise.all(Object.values(gates).map(({ reached }) => reached))
    for (const [name, step] of [
      ['c', 'main/all/c'],
      ['a', 'main/all/a'],
      ['b', 'main/all/b'],
    ] as const) {
      gates[name].open()
      await until(engine.store, started.id, (entry) => entry.type === 'step-finish' && entry.step === step)
    }
    expect((await started.result).output).toEqual({ a: 'A', b: 'B', c: 'C' })
    const entries = await entriesOf(engine.store, started.id)
    const ends = only(entries, 'step-finish').map(({ step }) => step)
    expect(ends.filter((path) => path.split('/').length === 3)).toEqual(['main/all/c', 'main/all/a', 'main/all/b'])
    expect(only(entries, 'step-start').find(({ step }) => step === 'main/all')!.order).toEqual(['a', 'b', 'c'])
  })

  test('branches do not see what another sets, and all see what came before', async () => {
    const { output } = await run(
      `
  - { id: before, type: output-generator, result: before, config: { template: 1 } }
  - id: all
    type: parallel
    config:
      branches:
        a: [{ id: x, type: output-generator, result: mine, config: { template: a } }, ${out('ax', '{ mine: $mine, before: $before }')}]
        b: [{ id: slow, type: slow }, { id: bx, type: see }]`,
      {},
      {
        steps: { see, slow: () => new Promise((resolve) => setImmediate(resolve)) },
      },
    )
    expect(output).toEqual({ a: { mine: 'a', before: 1 }, b: { before: 1 } })
  })

  test('fail: the others are stopped at once, what they had said stays, one error, one end', async () => {
    const spoke = latch()
    const told: unknown[] = []
    const model = createScriptedModel([[text('Once upon '), latch(), text('never'), finish()]])
    const workflow = `
  - id: all
    type: parallel
    config:
      branches:
        talks: [{ id: talk, type: llm, config: { model: "script:m", messages: "Hi", stream: true, onAbort: aborted, onError: failed, onFinish: finished } }]
        breaks: [{ id: break, type: break }]
  - { id: later, type: later }`.replace('messages: "Hi"', 'messages: [{ role: user, content: Hi }]')
    engine = createEngine({
      agents: { a: `workflow:${workflow}\n` },
      scripts: { m: model },
      steps: {
        break: async () => {
          await spoke.opened
          throw new Error('broken')
        },
        later: () => void told.push('later'),
      },
      callbacks: {
        aborted: (event) => void told.push(event),
        failed: () => void told.push('failed'),
        finished: () => void told.push('finished'),
      },
    })
    const started = await engine.runtime.start('a', {})
    await until(engine.store, started.id, (entry) => entry.type === 'text-end')
    spoke.open()
    expect(await started.result).toMatchObject({
      outcome: 'failed',
      text: 'Once upon ',
      error: { message: 'Step "break" (break) failed.', detail: 'broken' },
    })
    const entries = await entriesOf(engine.store, started.id)
    expect(only(entries, 'error')).toMatchObject([{ step: 'main/all/breaks/break', error: { detail: 'broken' } }])
    const reason = 'Stopped because the branch "breaks" failed: Step "break" (break) failed: broken'
    expect(only(entries, 'run-end')).toHaveLength(1)
    expect(only(entries, 'usage')).toMatchObject([{ usage: { source: 'estimated' } }])
    expect(model.calls[0]!.aborted).toBe(true)
    expect(told).toEqual([{ text: 'Once upon ', reason }])
    // What broke stands at the branch that broke, and at the step around both.
    const ends = Object.fromEntries(only(entries, 'step-finish').map(({ step, error }) => [step, error?.message]))
    const why = 'Stopped because the branch "breaks" failed.'
    expect(ends).toEqual({
      'main/all/breaks/break': 'Step "break" (break) failed.',
      'main/all/breaks': 'Step "break" (break) failed.',
      'main/all/talks/talk/1': why,
      'main/all/talks/talk': why,
      'main/all/talks': why,
      'main/all': 'Step "break" (break) failed.',
    })
  })

  test('continue: an error is the value of its branch, and the others run on', async () => {
    const { outcome, output, entries } = await run(
      `
  - id: all
    type: parallel
    result: all
    config:
      onError: continue
      branches:
        bad: [{ id: break, type: break }]
        good: [${out('fine', 'fine')}]
  - ${out('end', '{ all: $all, why: $all.bad.error.message }')}`,
      {},
      { steps: { break: () => Promise.reject(new Error('broken')) } },
    )
    expect(outcome).toBe('completed')
    expect(output).toEqual({
      all: { bad: { error: { code: 'step-failed', message: 'Step "break" (break) failed.' } }, good: 'fine' },
      why: 'Step "break" (break) failed.',
    })
    expect(only(entries, 'error')).toHaveLength(1)
  })

  test('a branch that ignores its signal is settled, and what it says later is said to nobody', async () => {
    let emit: (() => void) | undefined
    const begun = latch()
    engine = createEngine({
      agents: { a: `workflow:${three()}\n` },
      steps: {
        held: async (name: string, context) => {
          if (name === 'c') {
            await begun.opened
            throw new Error('broken')
          }
          emit = () => context.emit({ type: 'data', name: 'late', data: 1 })
          begun.open()
          return new Promise(() => undefined)
        },
      },
    })
    const started = await engine.runtime.start('a', {})
    expect(await started.result).toMatchObject({ outcome: 'failed', error: { detail: 'broken' } })
    emit!()
    const entries = await entriesOf(engine.store, started.id)
    expect(only(entries, 'data')).toEqual([])
  })

  test('behind a branch that was given up a client can still be waited for', async () => {
    const ask = { parameters: { type: 'object', properties: {} } }
    const workflow = `
  - id: tries
    type: parallel
    config:
      onError: continue
      branches:
        inner:
          - id: all
            type: parallel
            config: { branches: { deaf: [{ id: deaf, type: deaf }], deaf2: [{ id: deaf2, type: deaf }], bad: [{ id: bad, type: bad }] } }
  - id: answer
    type: llm
    config: { model: "script:m", stream: true, tools: [ask], messages: [{ role: user, content: Hi }] }`
    engine = createEngine({
      agents: { a: `workflow:${workflow}\n` },
      tools: { ask },
      scripts: {
        m: createScriptedModel([
          [{ type: 'tool-call', toolCallId: 'c', toolName: 'ask', input: '{}' }, finish('tool-calls')],
        ]),
      },
      steps: { deaf: () => new Promise(() => undefined), bad: () => Promise.reject(new Error('bad')) },
    })
    const started = await engine.runtime.start('a', {})
    await until(engine.store, started.id, (entry) => entry.type === 'request')
    await eventually(async () => (await engine.store.runs.get(started.id))!.status === 'suspended')
    await entriesOf(engine.store, started.id)
  })

  test('a stop reaches every branch', async () => {
    const model = createScriptedModel([0, 1].map(() => [text('I '), latch(), finish()]))
    const say = (id: string) =>
      `[{ id: ${id}, type: llm, config: { model: "script:m", stream: true, messages: [{ role: user, content: Hi }], onAbort: aborted } }]`
    const told: unknown[] = []
    engine = createEngine({
      agents: {
        a: `workflow: [{ id: all, type: parallel, config: { branches: { a: ${say('x')}, b: ${say('y')} } } }]`,
      },
      scripts: { m: model },
      callbacks: { aborted: ({ text: said }) => void told.push(said) },
    })
    const started = await engine.runtime.start('a', {})
    await eventually(() => model.calls.length === 2)
    await until(engine.store, started.id, ({ type, step }) => type === 'text-end' && step.startsWith('main/all/b'))
    await until(engine.store, started.id, ({ type, step }) => type === 'text-end' && step.startsWith('main/all/a'))
    await started.stop()
    expect(await started.result).toMatchObject({ outcome: 'aborted' })
    expect(model.calls.map(({ aborted }) => aborted)).toEqual([true, true])
    expect(told).toEqual(['I ', 'I '])
    await entriesOf(engine.store, started.id)
  })
})
