/** An agent's `input`: checked before anything runs, wherever the run is started; and what else `$` may stand for. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { folder, ran } from '../support/cli.ts'
import { entriesOf, only } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const messages = [{ role: 'user', content: 'Hi' }]
const shape =
  'input: { topic: string, n: { type: integer, default: 3, minimum: 1 }, tone?: { type: string, enum: [dry, warm] } }'
const yaml = `
${shape}
workflow:
  - { id: out, type: output-generator, config: { template: { topic: "$input.topic", n: "$input.n", more: "$input.more?" } } }
`
/** Everything that is wrong, at once. */
const faults = /topic must be a string, not 7.*n must be at least 1, not 0.*tone must be one of dry, warm, not "drie"/u
const wrong = { topic: 7, n: 0, tone: 'drie' }

async function start(agents: Record<string, string> = { a: yaml }, options = {}) {
  server = await startServer({ agents, ...options })
  return server
}

test('the library: `start` throws bad-input, and nothing is recorded', async () => {
  const { runtime, store } = await start()
  await expect(runtime.start('a', wrong)).rejects.toMatchObject({
    code: 'bad-input',
    status: 400,
    message: expect.stringMatching(faults),
  })
  expect(await store.runs.list({})).toEqual([])
})

test('defaults are filled in; messages and further keys are allowed', async () => {
  const { runtime, store } = await start()
  const run = await runtime.start('a', { topic: 'x', more: 1, messages, tools: [] })
  expect((await run.result).output).toEqual({ topic: 'x', n: 3, more: 1 })
  expect(only(await entriesOf(store, run.id), 'run-start')[0]!.input).toEqual({
    topic: 'x',
    n: 3,
    more: 1,
    messages,
    tools: [],
  })
})

test('an input that takes nothing else still takes the conversation', async () => {
  const strict = yaml.replace(
    shape,
    'input: { type: object, properties: { topic: string, n: { type: integer, default: 3 } }, required: [topic], additionalProperties: false }',
  )
  const { runtime } = await start({ a: strict })
  expect((await (await runtime.start('a', { topic: 'x', messages })).result).output).toEqual({ topic: 'x', n: 3 })
  await expect(runtime.start('a', { topic: 'x', topik: 'y' })).rejects.toMatchObject({
    message: expect.stringMatching(/topik is unknown \(did you mean "topic"\?\)/u),
  })
})

test.each(['/api/chat', '/api/beddel/chat'])('%s: a 400 with all faults, before anything runs', async (path) => {
  const { post, store } = await start()
  const response = await post(path, { agentId: 'a', messages, ...wrong })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { code: 'bad-input', message: expect.stringMatching(faults) } })
  expect(await store.runs.list({})).toEqual([])
  const fine = await post('/api/chat', { agentId: 'a', messages, topic: 'x' })
  expect(await fine.json()).toEqual({ topic: 'x', n: 3 })
})

test('/api/runs: a 400 with all faults', async () => {
  const { post, runtime } = await start()
  const response = await post('/api/runs', { agentId: 'a', input: wrong })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { code: 'bad-input', message: expect.stringMatching(faults) } })
  const { id } = (await (await post('/api/runs', { agentId: 'a', input: { topic: 'x' } })).json()) as { id: string }
  expect(await (await runtime.open(id))!.result).toMatchObject({ outcome: 'completed', output: { n: 3 } })
})

test('what comes with a tool’s answer has to fit as well', async () => {
  const asking = `
${shape}
onBusy: queue
workflow: [{ id: say, type: llm, config: { model: "script:m", stream: true, tools: [ask] } }]
`
  const { post, store } = await start(
    { a: asking },
    {
      tools: { ask: { parameters: z.looseObject({}) } },
      scripts: {
        m: createScriptedModel([
          [toolCall('c', 'ask'), finish('tool-calls')],
          [text('Thanks.'), finish()],
        ]),
      },
    },
  )
  const asked = {
    agentId: 'a',
    id: 'chat',
    topic: 'x',
    messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
  }
  const first = await post('/api/chat', asked)
  await first.text()
  const answered = {
    ...asked,
    messages: [
      ...asked.messages,
      {
        id: '2',
        role: 'assistant',
        parts: [{ type: 'tool-ask', toolCallId: 'c', state: 'output-available', input: {}, output: 1 }],
      },
    ],
  }
  expect((await post('/api/chat', { ...answered, topic: 7 })).status).toBe(400)
  const [row] = await store.runs.list({})
  expect(row).toMatchObject({ status: 'suspended' })
  expect(await (await post('/api/chat', answered)).text()).toContain('Thanks.')
})

test('`millrace run`: exit 2, with all faults on stderr', async () => {
  const cwd = folder({ 'agents/a.yaml': yaml, 'in.json': JSON.stringify(wrong), 'fine.json': '{"topic": "x"}' })
  const { code, out, err } = await ran(['run', 'a', '--input', 'in.json'], { cwd })
  expect([code, out]).toEqual([2, ''])
  expect(err).toMatch(faults)
  const fine = await ran(['run', 'a', '--input', 'fine.json'], { cwd })
  expect([fine.code, JSON.parse(fine.out)]).toEqual([0, { topic: 'x', n: 3 }])
})

describe('what `$` stands for', () => {
  const out = (template: string) =>
    `workflow:\n  - { id: first, type: output-generator, result: first, config: { template: { a: 1 } } }\n  - { id: out, type: output-generator, config: { template: ${template} } }`

  test('$env sees what the config allows, and nothing of a prototype', async () => {
    const { runtime } = await start(
      {
        a: out(
          '{ home: "$env.HOME_PAGE", secret: "$env.OTHER?", odd: "$env.constructor?", deep: "$input.__proto__?" }',
        ),
      },
      { env: ['HOME_PAGE'], environment: { HOME_PAGE: 'https://example.org', OTHER: 'no' } },
    )
    expect((await (await runtime.start('a', {})).result).output).toEqual({ home: 'https://example.org' })
  })

  test('$stepResult holds the results so far; a name in user input is text', async () => {
    const { runtime } = await start({ a: out('{ a: "$stepResult.first.a", said: "$input.said" }') })
    const { output } = await (await runtime.start('a', { said: '$env.HOME $first.a' })).result
    expect(output).toEqual({ a: 1, said: '$env.HOME $first.a' })
  })

  test.each(['input', 'env', 'stepResult'])('a result cannot be named %s', async (name) => {
    await expect(
      start({ a: `workflow: [{ id: x, type: output-generator, result: ${name}, config: { template: 1 } }]` }),
    ).rejects.toMatchObject({ message: expect.stringMatching(new RegExp(`reserved.*${name}`, 'u')) })
  })

  test.each(['__proto__', 'constructor', 'toString'])('a result named %s is a name like any other', async (name) => {
    const { runtime } = await start({
      a: `
workflow:
  - { id: x, type: output-generator, result: ${name}, config: { template: { polluted: 1 } } }
  - { id: y, type: output-generator, config: { template: { got: "$${name}.polluted", whole: "$stepResult.${name}" } } }`,
    })
    expect((await (await runtime.start('a', {})).result).output).toEqual({ got: 1, whole: { polluted: 1 } })
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})
