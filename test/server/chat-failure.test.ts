/** Failures before the first byte are a status with a cure; after it each wire has its own way to say that it is broken. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, drop, errorPart, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { createChat, lines } from '../support/chat.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'

let server: TestServer
let upstream: Upstream | undefined
afterEach(async () => {
  await server.close()
  await upstream?.close()
  upstream = undefined
})

const messages = [{ role: 'user', content: 'Hi' }]
const body = { agentId: 'a', messages }
const routes = ['/api/chat', '/api/beddel/chat']

async function startLocal(
  answer: (reply: UpstreamReply, n: number) => unknown,
  config = '',
  options: Partial<EngineOptions> = {},
) {
  upstream = await startUpstream(answer)
  const endpoints = [
    {
      name: 'local',
      baseURL: upstream.baseURL,
      protocol: options.models?.endpoints?.[0]?.protocol ?? ('openai-chat' as const),
    },
  ]
  server = await startServer({
    ...options,
    agents: { a: agent(config).replace('script:m', 'local:m') },
    models: { endpoints },
  })
}

async function failure(response: Response) {
  expect(response.headers.get('content-type')).toContain('application/json')
  expect(response.headers.get('x-millrace-run-id')).toMatch(/^run_/)
  const { error } = (await response.json()) as { error: { message: string; code: string; type: string } }
  return { status: response.status, ...error }
}

describe('chat: failures', () => {
  test.each(routes)('%s: a missing key is a 500 that names the variable', async (path) => {
    server = await startServer({ agents: { a: agent().replace('script:m', 'openai:gpt-5') } })
    expect(await failure(await server.post(path, body))).toEqual({
      status: 500,
      code: 'missing-key',
      type: 'server_error',
      message: expect.stringContaining('OPENAI_API_KEY'),
    })
  })

  test('an unknown provider is a 500 that lists the known ones', async () => {
    server = await startServer({ agents: { a: agent('', '').replace('"script:m"', '$input.model') } })
    const response = await server.post('/api/chat', { ...body, model: 'nobody:x' })
    expect(await failure(response)).toMatchObject({
      status: 500,
      code: 'unknown-model',
      message: expect.stringContaining('demo'),
    })
  })

  test.each([401, 403])('a provider’s %i is ours: a 500 that names the variable, never a 401', async (status) => {
    const error = { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }
    await startLocal((reply) => reply.refuse(status, error), '', { environment: { LOCAL_API_KEY: 'sk-wrong-key' } })
    const told = await failure(await server.post('/api/chat', body))
    expect(told).toMatchObject({ status: 500, code: 'model-refused' })
    expect(told.message).toContain('LOCAL_API_KEY')
    expect(JSON.stringify(told)).not.toContain('sk-wrong-key')
    expect(upstream!.requests).toHaveLength(1)
  })

  test.each([
    ['17', '17'],
    ['30.2', '31'],
  ])('a rate limit is a 429 with the provider’s Retry-After %s, in whole seconds', async (given, passed) => {
    await startLocal((reply) => reply.refuse(429, { error: { message: 'slow down' } }, { 'retry-after': given }))
    const response = await server.post('/api/chat', body)
    expect(response.headers.get('retry-after')).toBe(passed)
    expect(await failure(response)).toMatchObject({ status: 429, code: 'rate-limited' })
    expect(upstream!.requests).toHaveLength(1)
  })

  const recorded = new URL('../../../shared/fixtures/providers/google-429-retry-info.json', import.meta.url)
  test.runIf(existsSync(recorded))('Google’s RetryInfo, as recorded, becomes Retry-After', async () => {
    const models = { endpoints: [{ name: 'local', baseURL: '', protocol: 'google' as const }] }
    await startLocal((reply) => reply.refuse(429, readFileSync(recorded, 'utf8')), '', {
      models,
      environment: { LOCAL_API_KEY: 'key-of-a-test' },
    })
    const seconds = Number.parseFloat(/"retryDelay":\s*"([\d.]+)s"/u.exec(readFileSync(recorded, 'utf8'))![1]!)
    const response = await server.post('/api/chat', body)
    expect(response.status).toBe(429)
    expect(response.headers.get('retry-after')).toBe(String(Math.ceil(seconds)))
  })

  test('5xx is tried again; when it stays, it is a 502', async () => {
    await startLocal((reply) => reply.refuse(503, { error: { message: 'overloaded' } }), 'retries: 1')
    expect(await failure(await server.post('/api/chat', body))).toMatchObject({
      status: 502,
      code: 'model-unavailable',
    })
    expect(upstream!.requests).toHaveLength(2)
  })

  test('5xx that passes is not seen by the client at all', async () => {
    await startLocal((reply, n) => {
      if (n === 1) return reply.refuse(500, 'oops')
      reply.say('fine')
      reply.finish()
    })
    expect(await (await server.post('/api/beddel/chat', body)).text()).toBe('fine')
  })

  test('a model server that is not there is a 502 too', async () => {
    const models = { endpoints: [{ name: 'local', baseURL: 'http://127.0.0.1:1/v1' }] }
    server = await startServer({ agents: { a: agent('retries: 0').replace('script:m', 'local:m') }, models })
    expect(await failure(await server.post('/api/chat', body))).toMatchObject({
      status: 502,
      code: 'model-unavailable',
    })
  })

  test('a refusal that comes after the second is in-band: the client is not left with a success', async () => {
    const gate = latch()
    await startLocal(async (reply) => {
      await gate.opened
      reply.refuse(401, { error: { message: 'no' } })
    })
    const [ui, plain] = await Promise.all(routes.map((path) => server.post(path, body)))
    expect([ui!.status, plain!.status]).toEqual([200, 200])
    gate.open()
    const frames = framesOf(await ui!.text())
    expect(frames).toMatchObject([{ type: 'start' }, {}, {}, { type: 'error' }, 'done'])
    await expect(plain!.text()).rejects.toThrow('terminated')
  })

  test.each([
    ['the connection breaks', 'drop'],
    ['the answer ends without its final event', 'end'],
  ] as const)('after the first byte, %s: an error frame, a broken transfer, a failed run', async (_, fault) => {
    await startLocal((reply) => reply.say('half'))
    const answers = await Promise.all(routes.map((path) => server.post(path, body)))
    const [ui, plain] = answers.map((answer) => readBody(answer))
    await Promise.all([ui!.until('half'), plain!.until('half')])
    for (const reply of upstream!.requests) reply[fault]()
    const frames = framesOf(await ui!.rest())
    expect(frames.slice(-4)).toMatchObject([{ type: 'text-end' }, { type: 'finish-step' }, { type: 'error' }, 'done'])
    await expect(plain!.rest()).rejects.toThrow('terminated')
    expect(plain!.text).toBe('half')
    for (const { headers } of answers) {
      expect((await server.store.runs.get(headers.get('x-millrace-run-id')!))?.status).toBe('failed')
    }
  })

  test('a failure right behind the first words: they arrive, and the transfer is still seen to be broken', async () => {
    const fails = [text('all there is'), errorPart(new Error('the model gave up'))]
    server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel([fails, fails, fails]) } })
    const plain = readBody(await server.post('/api/beddel/chat', body))
    await expect(plain.rest()).rejects.toThrow('terminated')
    expect(plain.text).toBe('all there is')
    const { chat, errors } = createChat(server.url)
    await chat.sendMessage({ text: 'Hi' })
    expect(chat.status).toBe('error')
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('the model gave up')])
    expect(lines(chat.messages).at(-1)).toBe('assistant: all there is')
  })

  test('curl sees it: exit 18, with what had come', async ({ skip }) => {
    const curl = promisify(execFile)
    await curl('curl', ['--version']).catch(() => skip('curl is not installed'))
    const model = createScriptedModel([
      [text('half'), drop()],
      [text('whole'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const args = [
      '-sN',
      '-X',
      'POST',
      `${server.url}/api/beddel/chat`,
      '-H',
      'content-type: application/json',
      '-d',
      JSON.stringify(body),
    ]
    await expect(curl('curl', args)).rejects.toMatchObject({ code: 18, stdout: 'half' })
    expect((await curl('curl', args)).stdout).toBe('whole')
  })

  test('useChat is told a refusal’s reason', async () => {
    server = await startServer({ agents: { a: agent().replace('script:m', 'openai:gpt-5') } })
    const { chat, errors } = createChat(server.url)
    await chat.sendMessage({ text: 'Hi' })
    expect(chat.status).toBe('error')
    expect(errors[0]!.message).toContain('OPENAI_API_KEY')
  })

  test('an agent in which no step streams answers JSON: its value, or a status with the reason', async () => {
    const yaml = (model: string) => `
workflow:
  - { id: ask, type: llm, config: { model: "${model}" }, result: asked }
return: { answer: "$asked.text" }
`
    const model = createScriptedModel([[text('yes'), finish()]])
    server = await startServer({ agents: { a: yaml('script:m'), b: yaml('openai:gpt-5') }, scripts: { m: model } })
    const good = await server.post('/api/chat', body)
    expect(good.status).toBe(200)
    expect(good.headers.get('content-type')).toContain('application/json')
    expect(good.headers.get('x-millrace-run-id')).toMatch(/^run_/)
    expect(await good.json()).toEqual({ answer: 'yes' })
    expect(await failure(await server.post('/api/chat', { ...body, agentId: 'b' }))).toMatchObject({
      status: 500,
      code: 'missing-key',
    })
  })

  test.each([
    [{ messages }, 400, 'agentId'],
    [{ agentId: 'nobody', messages }, 404, 'nobody'],
    [{ agentId: 'a', messages: 'Hi' }, 400, 'messages'],
    [{ agentId: 'a', messages: [{ role: 'robot', content: 'x' }] }, 400, 'messages[0].role'],
    [{ agentId: 'a', messages, id: 7 }, 400, 'id'],
  ])('a bad request is told what is wrong with it: %j', async (bad, status, names) => {
    server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel([]) } })
    const response = await server.post('/api/chat', bad)
    expect(response.status).toBe(status)
    expect(await response.text()).toContain(names)
    expect(await server.store.runs.list()).toEqual([])
  })
})
