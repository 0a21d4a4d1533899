/** Failures as OpenAI's clients are told them: a status before the first byte, a frame behind it, never an end that looks whole. */
import OpenAI from 'openai'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/part/log.ts'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'

let server: TestServer
let upstream: Upstream
afterEach(() => server.close())

const chat = '/v1/chat/completions'
const body = { model: 'a', messages }
const paths: [string, object][] = [
  [chat, body],
  [chat, { ...body, stream: true }],
  ['/api/v1/chat/completions', { ...body, stream: true }],
  ['/v1/completions', { model: 'a', prompt: 'Hi' }],
  ['/v1/completions', { model: 'a', prompt: 'Hi', stream: true }],
]

async function startLocal(answer: (reply: UpstreamReply) => unknown, options: Partial<EngineOptions> = {}) {
  upstream = await startUpstream(answer)
  onTestFinished(() => upstream.close())
  const endpoints = [{ name: 'local', baseURL: upstream.baseURL }]
  server = await startServer({
    agents: { a: agent().replace('script:m', 'local:m') },
    models: { endpoints },
    ...options,
  })
}

/** The error, which has exactly the four fields that OpenAI's has. */
async function errorOf(response: Response) {
  expect(response.headers.get('content-type')).toContain('application/json')
  const { error, ...rest } = (await response.json()) as { error: Record<string, unknown> }
  expect([Object.keys(error).toSorted(), rest]).toEqual([['code', 'message', 'param', 'type'], {}])
  return { status: response.status, ...error }
}

describe('OpenAI: failures', () => {
  test.each(paths)(
    '%s %j: a provider’s 401 is ours: a 400, which no client repeats, that names the variable and not the key',
    async (path, asked) => {
      const refusal = { error: { message: 'Incorrect API key provided: sk-wrong-key', code: 'invalid_api_key' } }
      await startLocal((reply) => reply.refuse(401, refusal), { environment: { LOCAL_API_KEY: 'sk-wrong-key' } })
      const told = await errorOf(await server.post(path, asked))
      expect(told).toMatchObject({ status: 400, code: 'model-refused', type: 'server_error', param: null })
      expect(JSON.stringify(told)).toContain('LOCAL_API_KEY')
      expect(JSON.stringify(told)).not.toContain('sk-wrong-key')
    },
  )

  test.each(paths)('%s %j: a rate limit is 429 with Retry-After, and may be tried again', async (path, asked) => {
    await startLocal((reply) => reply.refuse(429, { error: { message: 'slow down' } }, { 'retry-after': '17' }))
    const response = await server.post(path, asked)
    expect([response.headers.get('retry-after'), response.headers.get('x-should-retry')]).toEqual(['17', null])
    expect(await errorOf(response)).toMatchObject({ status: 429, code: 'rate_limit_exceeded', param: null })
  })

  test('a missing key is a 400 that names the variable; an unknown model a 404', async () => {
    server = await startServer({ agents: { a: agent().replace('script:m', 'openai:gpt-5') } })
    expect(await errorOf(await server.post(chat, body))).toMatchObject({
      status: 400,
      code: 'missing-key',
      message: expect.stringContaining('OPENAI_API_KEY'),
    })
    expect(await errorOf(await server.post(chat, { ...body, model: 'gpt-4o' }))).toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
      type: 'invalid_request_error',
    })
  })

  test('OpenAI’s own client, as it comes, does not ask again for a run that failed or was stopped: its tools would run again', async () => {
    await startLocal((reply) => reply.refuse(400, { error: { message: 'no' } }))
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' })
    await expect(client.chat.completions.create(body)).rejects.toMatchObject({ status: 502 })
    expect((await server.store.runs.list()).length).toBe(1)
    await server.close()

    await startLocal((reply) => reply.say('half'))
    const patient = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' })
    const asked = patient.chat.completions.create(body).then(
      () => expect.fail('it was stopped'),
      (error: unknown) => error,
    )
    await expect.poll(async () => (await server.store.runs.list()).length).toBe(1)
    const [run] = await server.store.runs.list()
    await until(server.store, run!.id, ({ type }) => type === 'text-delta')
    await server.runtime.stop(run!.id)
    expect(await asked).toMatchObject({ status: 409, code: 'aborted' })
    expect((await server.store.runs.list()).length).toBe(1)
  })

  test.each([
    ['the connection breaks', 'drop', 'connection-lost'],
    ['the answer ends without its final event', 'end', 'model-incomplete'],
  ] as const)('after the first byte, %s: an error frame, [DONE], no end of an answer', async (_, fault, code) => {
    await startLocal((reply) => reply.say('half'))
    const streams = await Promise.all(
      paths.filter(([, asked]) => 'stream' in asked).map(([path, asked]) => server.post(path, asked)),
    )
    const bodies = streams.map((stream) => readBody(stream))
    await Promise.all(bodies.map((each) => each.until('half')))
    for (const reply of upstream.requests) reply[fault]()
    for (const each of bodies) {
      const sent = await each.rest()
      expect(framesOf(sent).slice(-2)).toEqual([
        { error: { message: expect.any(String), type: 'server_error', code, param: null } },
        'done',
      ])
      expect(sent).not.toMatch(/"finish_reason":"/u)
      expect(sent.match(/\[DONE\]/gu)).toHaveLength(1)
    }
  })

  test('a refusal that comes after the second is a frame: the code is that of the status it would have been', async () => {
    const gate = latch()
    await startLocal(async (reply) => {
      await gate.opened
      reply.refuse(429, { error: { message: 'slow down' } }, { 'retry-after': '17' })
    })
    const response = await server.post(chat, { ...body, stream: true })
    expect(response.status).toBe(200)
    gate.open()
    expect(framesOf(await response.text())).toMatchObject([
      { choices: [{ delta: { role: 'assistant' } }] },
      {
        error: {
          code: 'rate_limit_exceeded',
          retry_after: 17,
          message: expect.stringMatching(/slow down\. Try again in 17 seconds\.$/u),
        },
      },
      'done',
    ])
  })

  test('a store that fails is a 503 before the answer and a frame in it, without what the disk said', async () => {
    const gate = latch()
    const state = { broken: false }
    const held = createScriptedModel([
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'half' },
        gate,
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    const wrapStore = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        append: (run, epoch, entries) =>
          state.broken ? Promise.reject(new Error('SQLITE_IOERR: /var/secret')) : store.log.append(run, epoch, entries),
      },
    })
    server = await startServer({ agents: { a: agent() }, scripts: { m: held }, wrapStore })
    const stream = readBody(await server.post(chat, { ...body, stream: true }))
    await stream.until('half')
    state.broken = true
    gate.open()
    const sent = await stream.rest()
    expect(framesOf(sent).slice(-2)).toMatchObject([{ error: { code: 'store-failed', type: 'server_error' } }, 'done'])
    const refused = await errorOf(await server.post(chat, body))
    expect(refused).toMatchObject({ status: 503, code: 'store-failed', param: null })
    expect(sent + JSON.stringify(refused)).not.toMatch(/SQLITE|secret/u)
  })

  test('without the key, or from elsewhere, nothing is answered: in the words of OpenAI’s errors', async () => {
    const model = createScriptedModel([[text('ok'), finish()]])
    const from = async (options: Partial<HandlerOptions>, headers: Record<string, string>) => {
      server = await startServer(
        { agents: { a: agent() }, scripts: { m: model } },
        { authorize: undefined, ...options },
      )
      const answers = [server.post(chat, body, { headers }), fetch(`${server.url}/v1/models`, { headers })]
      const told = await Promise.all(answers.map(async (answer) => errorOf(await answer)))
      await server.close()
      return told
    }
    for (const told of await from({ apiKey: 'a-long-secret-key' }, { authorization: 'Bearer wrong' })) {
      expect(told).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'invalid_request_error', param: null })
    }
    for (const told of await from({ authorize: () => false }, {}))
      expect(told).toMatchObject({ status: 403, code: 'forbidden' })
    for (const told of await from({ localOnly: true }, { origin: 'https://evil.example' })) {
      expect(told).toMatchObject({ status: 403, code: 'forbidden', param: null })
    }
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } }, { apiKey: 'a-long-secret-key' })
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'a-long-secret-key' })
    expect((await client.chat.completions.create(body)).choices[0]!.message.content).toBe('ok')
  })
})
