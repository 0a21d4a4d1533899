/** Whatever a client sends: an answer with the right status and the shape of an error, and a server that goes on. */
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    agents: { a: agent() },
    scripts: { m: createScriptedModel(Array.from({ length: 200 }, () => [text('ok'), finish()])) },
  })
})
afterAll(() => server.close())
afterEach(async () => {
  expect(server.reported).toEqual([])
  const health = await fetch(`${server.url}/health`)
  expect(await health.json()).toMatchObject({ status: 'ok' })
  const { url } = server
  const body = JSON.stringify({ agentId: 'a', messages: [{ role: 'user', content: 'Hi' }] })
  const headers = { 'content-type': 'application/json' }
  expect(await (await fetch(`${url}/api/beddel/chat`, { method: 'POST', body, headers })).text()).toBe('ok')
})

const json = { 'content-type': 'application/json' }
const user = (content: unknown) => ({ role: 'user', content })
const chat = (fields: Record<string, unknown>) => JSON.stringify({ agentId: 'a', messages: [user('Hi')], ...fields })

/** Every error has this shape. */
async function refused(response: Response, status: number, code: string): Promise<string> {
  const body = (await response.json()) as { error: { message: string } }
  expect([response.status, body]).toEqual([
    status,
    { error: { message: expect.any(String), code, type: status < 500 ? 'invalid_request_error' : 'server_error' } },
  ])
  expect(response.headers.get('content-type')).toMatch(/^application\/json/)
  expect(body.error.message).not.toMatch(/\n\s+at |node_modules|\.ts:/)
  return body.error.message
}

const posting = ['/api/chat', '/api/beddel/chat', '/api/runs']

const bodies: [string, string | Uint8Array, Record<string, string>, number, string][] = [
  ['broken JSON', '{"agentId": "a", ', json, 400, 'bad-json'],
  ['no body', '', json, 400, 'bad-json'],
  ['white space', '  \n ', json, 400, 'bad-json'],
  ['a list', '[]', json, 400, 'bad-json'],
  ['null', 'null', json, 400, 'bad-json'],
  ['a string', '"a"', json, 400, 'bad-json'],
  ['text', chat({}), { 'content-type': 'text/plain' }, 415, 'unsupported-type'],
  ['JSON without a type', new TextEncoder().encode(chat({})), {}, 415, 'unsupported-type'],
  ['a form', 'agentId=a', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'unsupported-type'],
  ['JSON by another name', chat({}), { 'content-type': 'application/jsonx' }, 415, 'unsupported-type'],
  ['many JSON texts', chat({}), { 'content-type': 'application/json-seq' }, 415, 'unsupported-type'],
  ['two types', chat({}), { 'content-type': 'application/json, text/plain' }, 415, 'unsupported-type'],
  ...['gzip', 'br', 'GZIP', 'deflate, gzip', 'aes128gcm'].map((coding): (typeof bodies)[number] => [
    `a body with content-encoding ${coding}`,
    new Uint8Array(gzipSync(chat({}))),
    { ...json, 'content-encoding': coding },
    415,
    'unsupported-type',
  ]),
  [
    'UTF-16',
    Buffer.from(chat({}), 'utf16le'),
    { 'content-type': 'application/json; charset=utf-16' },
    415,
    'unsupported-type',
  ],
  ['Latin-1', chat({}), { 'content-type': 'application/json;charset="ISO-8859-1"' }, 415, 'unsupported-type'],
  ['invalid UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d), json, 400, 'bad-json'],
  ['UTF-8 cut at the end', Uint8Array.of(0x22, 0xf0, 0x9f, 0x98), json, 400, 'bad-json'],
  ['10,000 levels of lists', `{"agentId":"a","x":${'['.repeat(10_000)}${']'.repeat(10_000)}}`, json, 400, 'bad-json'],
  ['10,000 levels of objects', `${'{"x":'.repeat(10_000)}1${'}'.repeat(10_000)}`, json, 400, 'bad-json'],
  ['5 MB', chat({ x: 'y'.repeat(5_000_000) }), json, 413, 'too-large'],
  ['no agent', '{"messages": []}', json, 400, 'bad-input'],
  ['an agent that is no text', chat({ agentId: 7 }), json, 400, 'bad-input'],
  ['an empty agent', chat({ agentId: '' }), json, 400, 'bad-input'],
  ['a long agent', chat({ agentId: 'a'.repeat(257) }), json, 400, 'bad-input'],
  ['a NUL in the agent', chat({ agentId: 'a\0' }), json, 400, 'bad-input'],
  ['half a character in the agent', '{"agentId":"a\\ud800"}', json, 400, 'bad-input'],
  ['an unknown agent', chat({ agentId: 'nobody' }), json, 404, 'unknown-agent'],
  ['an agent elsewhere', chat({ agentId: '../x' }), json, 404, 'unknown-agent'],
  ['a file as agent', chat({ agentId: '/etc/passwd' }), json, 404, 'unknown-agent'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'].map((agentId): (typeof bodies)[number] => [
    `agent ${agentId}`,
    chat({ agentId }),
    json,
    404,
    'unknown-agent',
  ]),
]

describe('bad input', () => {
  test.each(bodies)('%s', async (_, body, headers, status, code) => {
    for (const path of posting) {
      await refused(await fetch(server.url + path, { method: 'POST', body: body as BodyInit, headers }), status, code)
    }
  })

  test.each(['/v1/chat/completions', '/v1/completions', '/api/v1/chat/completions'])(
    '%s: a compressed body is a 415 in the words of OpenAI, never a JSON error of its bytes',
    async (path) => {
      const body = gzipSync(JSON.stringify({ model: 'a', messages: [user('Hi')] }))
      const headers = { ...json, 'content-encoding': 'gzip' }
      const response = await fetch(server.url + path, { method: 'POST', body: new Uint8Array(body), headers })
      expect([response.status, await response.json()]).toEqual([
        415,
        {
          error: {
            message: 'The body is compressed (gzip). Send it uncompressed, without a content-encoding header.',
            type: 'invalid_request_error',
            code: 'unsupported-type',
            param: null,
          },
        },
      ])
    },
  )

  test.each([
    { 'content-encoding': 'identity' },
    { 'content-type': 'application/json; charset=UTF-8' },
    { 'content-type': 'application/json;charset="utf8"' },
  ])('%j is taken', async (headers) => {
    const body = `\ufeff${chat({})}`
    const response = await fetch(`${server.url}/api/beddel/chat`, {
      method: 'POST',
      body,
      headers: { ...json, ...headers } as Record<string, string>,
    })
    expect([response.status, await response.text()]).toEqual([200, 'ok'])
  })

  test.each([
    ['100-continue', /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /u],
    ['a miracle', /^HTTP\/1\.1 417 /u],
  ])('Expect: %s is answered', async (expectation, answer) => {
    const { port } = new URL(server.url)
    const body = chat({})
    const socket = connect(Number(port), '127.0.0.1')
    let text = ''
    socket.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    const head = `POST /api/beddel/chat HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json`
    socket.write(`${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nExpect: ${expectation}\r\n\r\n`)
    await expect.poll(() => text).toMatch(/^HTTP/u)
    if (expectation === '100-continue') socket.write(body)
    await expect.poll(() => text).toMatch(answer)
    socket.destroy()
  })

  const conversations: [string, unknown, string][] = [
    ['no list', 'Hi', 'messages must be'],
    ['an object', { role: 'user' }, 'messages must be'],
    ['null inside', [null], 'messages[0]'],
    ['a string inside', ['Hi'], 'messages[0]'],
    ['no role', [{ content: 'Hi' }], 'messages[0].role'],
    ['an unknown role', [user('a'), { role: 'wizard', content: 'Hi' }], 'messages[1].role'],
    ['a prototype as role', [{ role: 'constructor', content: 'Hi' }], 'messages[0].role'],
    ['no content', [{ role: 'user' }], 'messages[0]'],
    ['a number as content', [user(7)], 'messages[0]'],
    ['null as content', [user(null)], 'messages[0]'],
    ['10,001 of them', Array.from({ length: 10_001 }, () => user('')), '10001'],
  ]

  test.each(conversations)('messages: %s', async (_, messages, message) => {
    for (const path of ['/api/chat', '/api/beddel/chat']) {
      expect(await refused(await server.post(path, { agentId: 'a', messages }), 400, 'bad-input')).toContain(message)
    }
    const response = await server.post('/api/runs', { agentId: 'a', input: { messages } })
    expect(await refused(response, 400, 'bad-input')).toContain(message)
  })

  test('input, threadId and Idempotency-Key are checked', async () => {
    for (const input of ['x', 7, [], null]) {
      await refused(await server.post('/api/runs', { agentId: 'a', input }), 400, 'bad-input')
    }
    for (const threadId of [7, {}, '', 'x'.repeat(257), 'a\0b', '\ud800', 'a\nb']) {
      await refused(await server.post('/api/runs', { agentId: 'a', threadId }), 400, 'bad-input')
      await refused(await server.post('/api/chat', { ...JSON.parse(chat({})), id: threadId }), 400, 'bad-input')
    }
    for (const key of ['', '  ', 'k'.repeat(257)]) {
      const headers = { 'idempotency-key': key }
      await refused(await server.post('/api/runs', { agentId: 'a' }, { headers }), 400, 'bad-input')
    }
  })

  test('a chat key beside input is refused and told where it belongs', async () => {
    for (const key of ['messages', 'tools', 'id']) {
      const response = await server.post('/api/runs', { agentId: 'a', input: {}, [key]: [] })
      expect(await refused(response, 400, 'bad-input')).toContain(`unknown key "${key}"; put it under "input"`)
    }
  })

  test('ids that are names of every object are ordinary ids', async () => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      await refused(await fetch(`${server.url}/api/agents/${name}`), 404, 'unknown-agent')
      for (const path of ['', '/events', '/requests']) {
        await refused(await fetch(`${server.url}/api/runs/${name}${path}`), 404, 'unknown-run')
      }
      await refused(await server.post(`/api/runs/${name}/stop`, {}), 404, 'unknown-run')
      expect((await fetch(`${server.url}/api/chat/${name}/stream`)).status).toBe(204)
      const body = { agentId: 'a', threadId: name, input: { messages: [user('Hi')] } }
      const started = await server.post('/api/runs', body, { headers: { 'idempotency-key': name } })
      expect(started.status).toBe(202)
      const { id } = (await started.json()) as { id: string }
      await refused(await server.post(`/api/runs/${id}/requests/${name}`, { output: 1 }), 404, 'unknown-request')
      const { runs } = (await (await fetch(`${server.url}/api/runs?thread=${name}`)).json()) as {
        runs: { id: string }[]
      }
      expect(runs.map((run) => run.id)).toEqual([id])
      // As names of input values, too; they pollute nothing.
      const input = JSON.parse(`{"agentId": "a", "messages": [{"role": "user", "content": "Hi"}], "${name}": {"x": 1}}`)
      expect((await server.post('/api/beddel/chat', input)).status).toBe(200)
      expect(({} as { x?: number }).x).toBeUndefined()
    }
  })

  test('texts with NUL, half characters and every other odd sign arrive as they are', async () => {
    const content = 'a\0b \ud800 c \u2028 \ufeff \u{1f600} "\\'
    // As text and not as the name of anything: this is legal JSON.
    const started = await server.post('/api/runs', { agentId: 'a', input: { messages: [user(content)] } })
    expect(started.status).toBe(202)
    const { id } = (await started.json()) as { id: string }
    const first = await (await fetch(`${server.url}/api/runs/${id}/events`)).text()
    expect(JSON.parse(first.split('\n')[0]!).input.messages).toEqual([user(content)])
    expect((await fetch(`${server.url}/api/runs?q=${encodeURIComponent('\ud800'.toWellFormed())}`)).status).toBe(200)
    expect((await fetch(`${server.url}/api/runs?q=%00`)).status).toBe(200)
  })

  const elsewhere = [
    '../health',
    '..%2fhealth',
    '%2e%2e%2f%2e%2e%2fhealth',
    '%2e%2e%5c',
    '%00',
    '%ff',
    '%',
    '%zz',
    ' ',
    '*',
  ]

  test('run ids that lead elsewhere lead nowhere', async () => {
    for (const id of elsewhere) {
      const answer = await raw(`GET /api/runs/${id.replaceAll(' ', '%20')} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1\.1 404 [^]*"code":"(?:unknown-run|not-found)"/)
    }
    for (const path of ['/nothing', '/api', '/api/runs/', '/api/runs/x/y', '//health', '/health/', '/HEALTH']) {
      expect(await raw(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).toMatch(
        /^HTTP\/1\.1 404 [^]*"code":"not-found"/,
      )
    }
  })

  test('another method is 405 and names the right one', async () => {
    const routes: [string, string, string][] = [
      ['/api/chat', 'GET', 'POST'],
      ['/api/beddel/chat', 'DELETE', 'POST'],
      ['/api/chat/x/stream', 'POST', 'GET'],
      ['/api/runs', 'PUT', 'GET, POST'],
      ['/api/runs/x', 'POST', 'GET, DELETE'],
      ['/api/runs/x/events', 'PATCH', 'GET'],
      ['/api/runs/x/stop', 'GET', 'POST'],
      ['/api/runs/x/requests', 'POST', 'GET'],
      ['/api/threads/x', 'POST', 'GET, DELETE'],
      ['/api/runs/x/requests/y', 'GET', 'POST'],
      ['/api/agents', 'POST', 'GET'],
      ['/health', 'POST', 'GET'],
    ]
    for (const [path, method, allow] of routes) {
      const response = await fetch(server.url + path, { method })
      expect([path, response.headers.get('allow')]).toEqual([path, allow])
      await refused(response, 405, 'method-not-allowed')
    }
  })

  test('HEAD is GET without its body', async () => {
    const response = await fetch(`${server.url}/api/agents`, { method: 'HEAD' })
    expect([response.status, await response.text()]).toEqual([200, ''])
  })

  test('a body that is too large is refused, whatever length it announced', async () => {
    const announced = await raw(
      'POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5000000\r\n\r\n{',
    )
    expect(announced).toMatch(/^HTTP\/1\.1 413 [^]*"code":"too-large"/)
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
    const head =
      'POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    expect(await raw(head + chunk.repeat(80))).toMatch(/^HTTP\/1\.1 413 [^]*"code":"too-large"/)
    // An honest 5 MB by a client that wants to send all of it before it reads.
    const body = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 80; i++) controller.enqueue(new Uint8Array(65_536).fill(32))
        controller.close()
      },
    })
    const init = { method: 'POST', body, headers: json, duplex: 'half' }
    await refused(await fetch(`${server.url}/api/chat`, init as RequestInit), 413, 'too-large')
  })

  test('the largest body that is allowed is taken', async () => {
    const body = chat({ x: '' })
    const padded = chat({ x: 'y'.repeat(4 * 1024 * 1024 - body.length) })
    expect(padded).toHaveLength(4 * 1024 * 1024)
    const response = await fetch(`${server.url}/api/beddel/chat`, { method: 'POST', body: padded, headers: json })
    expect([response.status, await response.text()]).toEqual([200, 'ok'])
  })

  test('what is no HTTP is told so and cut off', async () => {
    for (const [request, status] of [
      ['HELO world\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\n\r\n', 400],
      ['GET /health HTTP/1.1\r\nHost: a b\r\n\r\n', 400],
      [`GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      ['POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n', 400],
    ] as const) {
      expect(await raw(request)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `, 'u'))
    }
  })

  test('a client that goes in the middle of its body leaves nothing behind', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
      socket.on('close', () => resolve())
      const head =
        'POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"a'
      socket.write(head, () => socket.resetAndDestroy())
    })
  })

  test('requests on one connection: a refused body does not block the next request', async () => {
    const body = chat({})
    const refusedOne = `POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const answer = await raw(`${refusedOne}GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`, {
      toEnd: true,
    })
    expect(answer).toMatch(/^HTTP\/1\.1 415 [^]*HTTP\/1\.1 200 [^]*"status":"ok"/)
  })
})

/** What the server says to these bytes: its first answer, or all that it says until it closes. */
function raw(request: string, { toEnd = false } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(request))
    let answer = ''
    const done = () => {
      socket.destroy()
      resolve(answer)
    }
    socket.setEncoding('utf8')
    socket.on('data', (data) => {
      answer += String(data)
      const [head = '', body] = answer.split('\r\n\r\n', 2)
      const length = Number(/content-length: (\d+)/iu.exec(head)?.[1] ?? 0)
      if (!toEnd && body !== undefined && body.length >= length) done()
    })
    socket.on('end', done)
    socket.on('error', (error) => (answer === '' ? reject(error) : done()))
  })
}
