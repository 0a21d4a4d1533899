/** A client of the OpenAI routes that leaves: whatever worked for it stops at once, and what was said is kept. */
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, until, type EngineOptions } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const hanging = (): ScriptStep[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'half' },
  latch(),
]

/** Asks, leaves once the log holds what is waited for, and gives the log of the run that has ended. */
async function leaving(options: EngineOptions, stream: boolean, when: (entry: Entry) => boolean) {
  server = await startServer(options)
  const leave = new AbortController()
  const body = { model: 'a', messages, stream }
  const answer = server
    .post('/v1/chat/completions', body, { signal: leave.signal })
    .then((response) => response.text())
    .catch((error: Error) => error.name)
  await expect.poll(async () => (await server.store.runs.list()).length, { interval: 5 }).toBeGreaterThan(0)
  const { id } = (await server.store.runs.list()).at(-1)!
  await until(server.store, id, when)
  leave.abort()
  await until(server.store, id, ({ type }) => type === 'run-end')
  expect(await answer).toBe('AbortError')
  return { id, entries: await entriesOf(server.store, id) }
}

describe.each([
  ['stream', true],
  ['one JSON', false],
])('%s', (_, stream) => {
  test('the model is stopped within a second; the run is aborted and keeps what was said', async () => {
    const model = createScriptedModel([hanging()])
    const after = 'after: [{ id: later, type: output-generator, config: { template: { a: 1 } } }]'
    const { entries, id } = await leaving(
      { agents: { a: agent('', after) }, scripts: { m: model } },
      stream,
      ({ type }) => type === 'text-delta',
    )
    expect(model.calls[0]!.aborted).toBe(true)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'aborted' }])
    expect((await server.store.runs.get(id))!.status).toBe('aborted')
    expect(only(entries, 'text-delta').map(({ delta }) => delta)).toEqual(['half'])
    expect(only(entries, 'step-start').map(({ step }) => step)).not.toContain('after/later')
  })

  test('a router’s tool is stopped; the step that would have answered never starts', async () => {
    const [router, answers] = [
      createScriptedModel([[toolCall('c1', 'slow'), finish('tool-calls')]]),
      createScriptedModel([]),
    ]
    const yaml = `
workflow:
  - { id: route, type: router, config: { model: "script:r", tools: [slow] }, result: found }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, messages: "$found.messages" } }
`
    const stopped = latch()
    const execute = async (_input: unknown, { signal }: { signal: AbortSignal }) => {
      signal.addEventListener('abort', stopped.open)
      await new Promise(() => undefined)
    }
    const { entries } = await leaving(
      {
        agents: { a: yaml },
        scripts: { r: router, m: answers },
        tools: { slow: { description: 'Slow.', parameters: z.object({}), execute } },
      },
      stream,
      ({ type, step }) => type === 'step-start' && step === 'main/route/2',
    )
    await stopped.opened
    expect(answers.calls).toEqual([])
    expect(only(entries, 'step-start').map(({ step }) => step)).not.toContain('main/answer')
    expect(only(entries, 'tool-result')).toMatchObject([{ toolCallId: 'c1', outcome: 'aborted' }])
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'aborted' }])
  })

  test('a sub-agent is stopped with it, and branches beside it', async () => {
    const [child, beside] = [createScriptedModel([hanging()]), createScriptedModel([hanging()])]
    const yaml = `
workflow:
  - id: both
    type: parallel
    config:
      branches:
        one: [{ id: call, type: call-agent, config: { agent: child } }]
        two: [{ id: say, type: llm, config: { model: "script:beside", messages: "$input.messages" } }]
  - { id: answer, type: llm, config: { model: "script:never", stream: true } }
`
    const heard = new Set<string>()
    const { entries } = await leaving(
      {
        agents: { a: yaml, child: agent().replace('script:m', 'script:child') },
        scripts: { child, beside, never: createScriptedModel([[text('No.'), finish()]]) },
      },
      stream,
      ({ type, step }) => type === 'text-delta' && heard.add(step).size === 2,
    )
    expect([child.calls[0]!.aborted, beside.calls[0]!.aborted]).toEqual([true, true])
    expect(only(entries, 'step-start').map(({ step }) => step)).not.toContain('main/answer')
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'aborted' }])
  })
})

test('leaving the loop of OpenAI’s own client is leaving, and so is its abort', async () => {
  const model = createScriptedModel([hanging(), hanging()])
  server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const stream = await client.chat.completions.create({ model: 'a', messages, stream: true })
  for await (const { choices } of stream) if (choices[0]!.delta.content === 'half') break
  const helper = client.chat.completions.stream({ model: 'a', messages })
  helper.on('content', () => helper.abort())
  await expect(helper.done()).rejects.toThrow(OpenAI.APIUserAbortError)
  for (const { id } of await server.store.runs.list()) {
    await until(server.store, id, (entry) => entry.type === 'run-end' && entry.outcome === 'aborted')
  }
  expect(model.calls.map(({ aborted }) => aborted)).toEqual([true, true])
})

test('an agent that says so outlives its client', async () => {
  const gate = latch()
  const model = createScriptedModel([[text('half'), gate, text('whole'), finish()]])
  server = await startServer({ agents: { a: agent('', 'onDisconnect: detach') }, scripts: { m: model } })
  const leave = new AbortController()
  const asked = server.post('/v1/chat/completions', { model: 'a', messages }, { signal: leave.signal })
  await gate.reached
  await expect.poll(async () => (await server.store.runs.list()).length, { interval: 5 }).toBe(1)
  leave.abort()
  await expect(asked).rejects.toThrow('aborted')
  gate.open()
  const [run] = await server.store.runs.list()
  expect(await until(server.store, run!.id, ({ type }) => type === 'run-end')).toMatchObject({ outcome: 'completed' })
})
