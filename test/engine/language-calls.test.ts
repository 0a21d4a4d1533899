/** `call-agent`: another agent's pipeline as a step. */
import { afterEach, describe, expect, test } from 'vitest'
import type { PrimitiveHandler } from '../../src/engine/registry.ts'
import { createScriptedModel, finish, latch, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'

let engine: Engine
afterEach(() => engine.close())

async function run(
  agents: Record<string, string>,
  input: Record<string, unknown> = {},
  options: Partial<EngineOptions> = {},
) {
  engine = createEngine({ agents, ...options })
  const { id, result } = await engine.runtime.start('a', input)
  return { ...(await result), entries: await entriesOf(engine.store, id) }
}
const call = (more = '') => `workflow: [{ id: call, type: call-agent, config: { agent: child${more} } }]`
/** What a step at its place can see. */
const see: PrimitiveHandler = (_, { variables, input }) => ({ variables: Object.fromEntries(variables), input })
/** A model that says what its user said. */
const echo = () =>
  createTold((prompt): ScriptStep[] => {
    const [last] = prompt.findLast(({ role }) => role === 'user')!.content as { text: string }[]
    return [text('You said ', last!.text), finish()]
  })
const says = (more = '') => `
workflow:
  - { id: say, type: llm, config: { model: "script:m", stream: true, messages: [{ role: user, content: "$input.word" }]${more} } }
`

describe('calls in the language', () => {
  test('variables are the child’s own; its input is the template, else ours', async () => {
    const agents = {
      child: 'workflow: [{ id: look, type: see }]',
      a: `
workflow:
  - { id: mine, type: output-generator, result: mine, config: { template: 7 } }
  - { id: one, type: call-agent, result: one, config: { agent: child, input: { word: "about $mine", whole: "$mine" } } }
  - { id: two, type: call-agent, result: two, config: { agent: child } }
`,
    }
    const { output } = await run(agents, { topic: 'x' }, { steps: { see } })
    expect(output).toEqual({
      mine: 7,
      one: { variables: {}, input: { word: 'about 7', whole: 7 } },
      two: { variables: {}, input: { topic: 'x' } },
    })
  })

  test('the input of the called agent is checked, its defaults filled in', async () => {
    const agents = {
      child: 'input: { word: string, n: { type: integer, default: 3 } }\nworkflow: [{ id: look, type: see }]',
      a: call(', input: { word: "$input.word" }'),
    }
    expect((await run(agents, { word: 'w' }, { steps: { see } })).output).toMatchObject({ input: { word: 'w', n: 3 } })
    await engine.close()
    const { outcome, error, entries } = await run(agents, { word: 4 }, { steps: { see } })
    expect(outcome).toBe('failed')
    expect(error).toMatchObject({
      code: 'bad-input',
      message: expect.stringMatching(/^Step "call" \(call-agent\): .*\$input\.word/u),
    })
    expect(only(entries, 'step-start').map(({ step }) => step)).toEqual(['main/call'])
  })

  test('`return` shapes what it gives', async () => {
    const agents = {
      child: `workflow: [{ id: x, type: output-generator, result: x, config: { template: 2 } }]\nreturn: { twice: "$x$x" }`,
      a: `workflow: [{ id: call, type: call-agent, result: got, config: { agent: child } }, { id: end, type: output-generator, config: { template: "$got.twice" } }]`,
    }
    expect((await run(agents)).output).toBe('22')
  })

  test.each([
    ['the last step', call(', input: { word: hey }')],
    ['`stream: true`', `${call(', stream: true, input: { word: hey }').slice(0, -1)}, { id: never, type: never }]`],
  ])('%s: it streams as the answer, under parent/child', async (_, a) => {
    let ran = false
    const { text: said, entries } = await run(
      { child: says(), a },
      {},
      { scripts: { m: echo() }, steps: { never: () => void (ran = true) } },
    )
    expect([said, ran]).toEqual(['You said hey', false])
    expect(only(entries, 'step-start')).toMatchObject([
      { step: 'main/call', stepType: 'call-agent', agent: 'child' },
      { step: 'main/call/say', answer: true },
      { step: 'main/call/say/1' },
    ])
    expect(only(entries, 'answer-end')).toHaveLength(1)
  })

  test.each([
    [
      'in the middle',
      `workflow: [{ id: call, type: call-agent, result: got, config: { agent: child, input: { word: hey } } }, { id: end, type: output-generator, config: { template: "$got.text" } }]`,
    ],
    ['`stream: false`', call(', stream: false, input: { word: hey }')],
  ])('%s: its stream is drained: no word of it in the answer, its steps in the log', async (_, a) => {
    const { text: said, output, entries } = await run({ child: says(), a }, {}, { scripts: { m: echo() } })
    expect(said).toBe('')
    expect(JSON.stringify(output)).toContain('You said hey')
    expect(only(entries, 'text-delta').map(({ step }) => step)).toEqual(['main/call/say/1', 'main/call/say/1'])
    expect(only(entries, 'step-start').some(({ answer }) => answer)).toBe(false)
    expect(only(entries, 'answer-end')).toEqual([])
  })

  test('the child’s `after` runs behind the answer and before the parent’s, also out of a branch', async () => {
    const order: string[] = []
    const note: PrimitiveHandler = (config: string) => void order.push(config)
    const after = (who: string) => `after: [{ id: note, type: note, config: "${who} $said.text" }]`
    const child = `${says().trimEnd().replace('config:', 'result: said, config:')}\n${after('child')}`
    const agents = {
      child,
      a: `
workflow:
  - id: all
    type: parallel
    config:
      branches:
        one: [{ id: call, type: call-agent, config: { agent: child, input: { word: hey } } }]
after: [{ id: note, type: note, config: parent }]
`,
    }
    const { text: said, entries } = await run(agents, {}, { scripts: { m: echo() }, steps: { note } })
    expect([said, order]).toEqual(['You said hey', ['child You said hey', 'parent']])
    const ended = entries.findIndex(({ type }) => type === 'answer-end')
    expect(only(entries.slice(ended), 'step-start').map(({ step }) => step)).toEqual([
      'after/main.all.one.call',
      'after/main.all.one.call/note',
      'after/note',
    ])
  })

  test('a circle that a variable hides ends, and says where', async () => {
    const { outcome, error } = await run(
      { a: 'workflow: [{ id: again, type: call-agent, config: { agent: "$input.who" } }]' },
      { who: 'a' },
    )
    expect(outcome).toBe('failed')
    expect(error).toMatchObject({
      code: 'too-deep',
      message: expect.stringMatching(/^Step "(?:again\/)+again" \(call-agent\): agent calls are nested/u),
    })
  })

  test.each(['nobody', '../a', 'x/../../a', '/etc/passwd', 'a\0b', '..', 'C:\\a', ''])(
    'a variable that names %j is no agent: the step fails and says so',
    async (who) => {
      const { outcome, error, entries } = await run(
        { a: 'workflow: [{ id: who, type: call-agent, config: { agent: "$input.who" } }]' },
        { who },
      )
      expect(outcome).toBe('failed')
      expect(error).toMatchObject({
        code: 'unknown-agent',
        message: expect.stringMatching(/^Step "who" \(call-agent\): /u),
      })
      expect(only(entries, 'error')).toMatchObject([{ step: 'main/who' }])
    },
  )

  test('an alias is called like the agent; what was called stands in the log', async () => {
    const child = 'metadata: { aliases: [kid] }\nworkflow: [{ id: x, type: output-generator, config: { template: 1 } }]'
    const { output, entries } = await run({ child, a: call().replace('child', 'kid') })
    expect(output).toBe(1)
    expect(only(entries, 'step-start')[0]).toMatchObject({ agent: 'kid', pipeline: child })
  })

  test('a stop reaches the child’s model; `onAbort` is the child’s own', async () => {
    const told: unknown[] = []
    const model = createScriptedModel([[text('Half '), latch(), finish()]])
    engine = createEngine({
      agents: { child: says(', onAbort: aborted'), a: call(', input: { word: hey }') },
      scripts: { m: model },
      callbacks: { aborted: (event) => void told.push(event) },
    })
    const started = await engine.runtime.start('a', {})
    await until(engine.store, started.id, ({ type }) => type === 'text-end')
    await started.stop('enough')
    expect(await started.result).toMatchObject({ outcome: 'aborted', text: 'Half ' })
    expect(model.calls[0]!.aborted).toBe(true)
    expect(told).toEqual([{ text: 'Half ', reason: 'enough' }])
    await entriesOf(engine.store, started.id)
  })

  test('a failure of the child is the parent’s, told once', async () => {
    const { outcome, error, entries } = await run(
      { child: 'workflow: [{ id: break, type: break }]', a: call() },
      {},
      { steps: { break: () => Promise.reject(new Error('broken')) } },
    )
    expect(outcome).toBe('failed')
    expect(error).toMatchObject({ message: 'Step "call/break" (break) failed.', detail: 'broken' })
    expect(only(entries, 'error')).toMatchObject([{ step: 'main/call/break' }])
  })
})
