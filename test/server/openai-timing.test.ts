/** What leaves the OpenAI routes when: every wait is a latch that the test opens. */
import { afterEach, expect, onTestFinished, test } from 'vitest'
import {
  createScriptedModel,
  finish,
  latch,
  type Latch,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'

let server: TestServer
afterEach(() => server.close())

const chat = '/v1/chat/completions'
const role = '"delta":{"role":"assistant","content":""}'
const heldAfterOne = (gate: Latch): ScriptStep[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'one' },
  gate,
  { type: 'text-delta', id: 't', delta: 'two' },
  { type: 'text-end', id: 't' },
  finish(),
]

test('a model that has accepted and says nothing: status and role frame are there, and each token before the next', async () => {
  const gates = [latch(), latch()]
  const upstream = await startUpstream(async (reply) => {
    reply.accept()
    await gates[0]!.opened
    reply.say('one')
    await gates[1]!.opened
    reply.say('two')
    reply.finish()
  })
  onTestFinished(() => upstream.close())
  server = await startServer({
    agents: { a: agent().replace('script:m', 'up:m') },
    models: { endpoints: [{ name: 'up', baseURL: upstream.baseURL }] },
  })
  // What is loaded with the first call is not what is timed.
  gates.forEach((gate) => gate.open())
  await (await server.post(chat, { model: 'a', messages })).json()
  gates.splice(0, 2, latch(), latch())
  const response = await server.post(chat, { model: 'a', messages, stream: true })
  const body = readBody(response)
  await body.until(role)
  expect([response.status, body.text]).toEqual([200, expect.not.stringContaining('one')])
  gates[0]!.open()
  await body.until('"one"')
  expect(body.text).not.toContain('two')
  gates[1]!.open()
  expect(framesOf(await body.rest()).at(-1)).toBe('done')
})

test('the first token is there while the second is held, for Completions too', async () => {
  const gates = [latch(), latch()]
  server = await startServer({
    agents: { a: agent() },
    scripts: { m: createScriptedModel(gates.map(heldAfterOne)) },
  })
  for (const [i, [path, asked]] of [
    [chat, { messages }],
    ['/v1/completions', { prompt: 'Hi' }],
  ].entries()) {
    const body = readBody(await server.post(path as string, { model: 'a', ...(asked as object), stream: true }))
    await body.until('one')
    expect(body.text).not.toContain('two')
    gates[i]!.open()
    expect(await body.rest()).toContain('two')
  }
})
