/** OpenAI's routes as its own client uses them, over a real socket. */
import OpenAI from 'openai'
import { afterEach, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/run/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const messages = [{ role: 'user' as const, content: 'Hi' }]
const clientOf = () => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })

test('a chat, streamed: the role before the first token, each token before the next, one finish frame, [DONE]', async () => {
  const [before, between] = [latch(), latch()]
  const model = createScriptedModel([[text('Hel'), between, text('lo'), finish()]])
  const slow = {
    ...model,
    doStream: async (options: Parameters<typeof model.doStream>[0]) => (await before.opened, model.doStream(options)),
  }
  server = await startServer({ agents: { a: agent() }, scripts: { m: slow } })
  const response = await server.post('/v1/chat/completions', { model: 'a', messages, stream: true })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const body = readBody(response)
  await body.until('"role":"assistant"')
  expect(body.text).not.toContain('Hel')
  before.open()
  await body.until('Hel')
  expect(body.text).not.toContain('"lo"')
  between.open()
  const frames = framesOf(await body.rest())
  expect(frames.at(-1)).toBe('done')
  const choices = frames
    .slice(0, -1)
    .map((frame) => (frame as { choices: { delta: object; finish_reason: unknown }[] }).choices[0]!)
  expect(choices.map(({ delta, finish_reason: end }) => end ?? delta)).toEqual([
    { role: 'assistant', content: '' },
    { content: 'Hel' },
    { content: 'lo' },
    'stop',
  ])
})

test('client tools: the call is handed over, and its result comes back with a new run', async () => {
  const model = createScriptedModel([
    [toolCall('c1', 'pick', { of: 'two' }), finish('tool-calls')],
    [text('You picked 2.'), finish()],
  ])
  server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
  const client = clientOf()
  const tools = [
    { type: 'function' as const, function: { name: 'pick', parameters: { type: 'object', properties: {} } } },
  ]
  const first = await client.chat.completions.create({ model: 'a', messages, tools, temperature: 0.5 })
  const [choice] = first.choices
  expect(choice!.finish_reason).toBe('tool_calls')
  expect(choice!.message.tool_calls).toMatchObject([{ id: 'c1', type: 'function', function: { name: 'pick' } }])
  const second = await client.chat.completions.create({
    model: 'a',
    tools,
    messages: [...messages, choice!.message, { role: 'tool', tool_call_id: 'c1', content: '2' }],
  })
  expect(second.choices[0]!.message.content).toBe('You picked 2.')
  expect(model.calls[0]!.options).toMatchObject({ temperature: 0.5, tools: [{ name: 'pick' }] })
  expect(model.calls[1]!.options.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  expect((await server.store.runs.list()).map(({ status }) => status)).toEqual(['completed', 'completed'])
})

test('models: agents and their aliases; an unknown one is 404', async () => {
  server = await startServer({ agents: { a: `metadata: { aliases: [alpha] }\n${agent()}` } })
  const client = clientOf()
  const { data } = await client.models.list()
  expect(data.map(({ id }) => id)).toEqual(['a', 'alpha'])
  expect(await client.models.retrieve('alpha')).toEqual(data[1])
  await expect(client.models.retrieve('beta')).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
  await expect(client.chat.completions.create({ model: 'alpah', messages })).rejects.toThrow(/did you mean "alpha"/u)
})

test('what is not served is refused by name', async () => {
  server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel([]) } })
  const response = await server.post('/v1/chat/completions', { model: 'a', messages, n: 2 })
  expect([response.status, await response.json()]).toEqual([
    400,
    {
      error: {
        message: 'n is not served. Leave it out, or send 1.',
        type: 'invalid_request_error',
        code: 'bad-input',
        param: 'n',
      },
    },
  ])
})
