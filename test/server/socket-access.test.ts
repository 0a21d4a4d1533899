/** Who may connect over Socket.IO, and what happens to what is no message; beside the HTTP routes on the same port. */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { io } from 'socket.io-client'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, runInput, textOf, transports } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

const agents = { a: agent() }
const model = () => createScriptedModel([1, 2, 3].map((n) => [text(`Answer ${n}`), finish()]))

/** The status of a handshake, and its body. */
async function handshake(transport: string, headers: Record<string, string>): Promise<[number, string]> {
  const upgrade = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  const asked = request(`${server.url}/socket.io/?EIO=4&transport=${transport}`, {
    headers: { ...(transport === 'websocket' && upgrade), ...headers },
  })
  asked.end()
  const answer = await new Promise<IncomingMessage>((done, fail) => {
    asked.on('response', done).on('error', fail)
    asked.on('upgrade', (upgraded: IncomingMessage, socket) => {
      socket.destroy()
      done(upgraded)
    })
  })
  let body = ''
  if (answer.statusCode !== 101) for await (const chunk of answer) body += String(chunk)
  return [answer.statusCode!, body]
}

describe.each(transports)('%s', (transport) => {
  test('with a key, only who sends it as auth.token is connected; it is in no answer', async () => {
    server = await startServer({ agents, scripts: { m: model() } }, { apiKey: 'a-long-secret-key' })
    for (const auth of [
      {},
      { token: '' },
      { token: 'wrong' },
      { token: 'a-long-secret-key ' },
      { token: ['a-long-secret-key'] },
      { token: 'a-long-secret-ke' },
    ]) {
      const refused = connectSocket(server.url, transport, { auth })
      await expect(refused).rejects.toMatchObject({
        message: 'Send the key as auth.token.',
        data: { code: 'unauthorized' },
      })
    }
    expect(server.sockets.counts()).toMatchObject({ sockets: 0 })
    const client = await connectSocket(server.url, transport, { auth: { token: 'a-long-secret-key' } })
    await client.run({})
    expect(textOf(await client.ended('r'))).toBe('Answer 1')
    expect(JSON.stringify(client.sent)).not.toContain('secret')
  })

  test('without a key, neither pages of other sites nor other host names get in', async () => {
    const origin = 'https://app.example'
    server = await startServer({ agents, scripts: { m: model() } }, { localOnly: true, allowedOrigins: [origin] })
    const fine = transport === 'websocket' ? 101 : 200
    const [good, bad]: Record<string, string>[][] = [
      [{}, { origin }, { origin: 'http://localhost:5173' }],
      [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { host: 'rebound.example' },
        { 'sec-fetch-site': 'cross-site' },
      ],
    ]
    for (const headers of good!) {
      expect((await handshake(transport, headers))[0]).toBe(fine)
    }
    for (const headers of bad!) {
      const [status, body] = await handshake(transport, headers)
      expect([status, body]).toEqual([
        403,
        expect.stringMatching(/^(?:Pages of|This server|\{"error":\{"message":"(?:Pages of|This server))/u),
      ])
    }
  })

  test('a server that anyone may use is not for pages of other sites: a browser would let them read all', async () => {
    const origin = 'https://app.example'
    server = await startServer({ agents, scripts: { m: model() } }, { allowedOrigins: [origin] })
    const fine = transport === 'websocket' ? 101 : 200
    const own = server.url
    const proxied = { origin: 'https://here.example', 'x-forwarded-host': 'here.example' }
    for (const headers of [{}, { origin }, { origin: own }, proxied] as Record<string, string>[]) {
      expect([headers, (await handshake(transport, headers))[0]]).toEqual([headers, fine])
    }
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }] as Record<
      string,
      string
    >[]) {
      expect(await handshake(transport, headers)).toEqual([403, expect.stringContaining('server.allowedOrigins')])
    }
  })

  test('what is no message is acknowledged with what is wrong, and the connection stays', async () => {
    server = await startServer({ agents: { ...agents, b: agent() }, scripts: { m: model() } })
    const client = await connectSocket(server.url, transport)
    const deep = JSON.parse('['.repeat(500) + ']'.repeat(500)) as unknown
    const wrong: [unknown, string, RegExp][] = [
      [undefined, 'bad-input', /an object \{type, data\}/u],
      ['run_agent', 'bad-input', /an object \{type, data\}/u],
      [[], 'bad-input', /an object \{type, data\}/u],
      [
        { type: 'run_agnet', data: {} },
        'bad-input',
        /one of run_agent, tool_result, message, abort_run, watch_run, request, cancel_request, renew \(did you mean "run_agent"\?\)/u,
      ],
      [{ type: 'constructor', data: {} }, 'bad-input', /one of/u],
      [{ type: 'run_agent' }, 'bad-input', /data must be an object/u],
      [{ type: 'run_agent', data: runInput({ state: deep }) }, 'bad-input', /256 levels/u],
      [
        { type: 'run_agent', data: runInput({}) },
        'bad-input',
        /forwardedProps\.agent is missing\. Known agents: a, b\./u,
      ],
      [
        { type: 'run_agent', data: runInput({ forwardedProps: { agent: 'c' } }) },
        'unknown-agent',
        /Known agents: a, b\./u,
      ],
      [
        { type: 'run_agent', data: runInput({ forwardedProps: { agent: 'a' }, messages: 'Hi' }) },
        'bad-input',
        /messages/u,
      ],
      [{ type: 'run_agent', data: runInput({ forwardedProps: { agent: 'a' }, runId: '' }) }, 'bad-input', /runId/u],
      [{ type: 'tool_result', data: { toolCallId: 7 } }, 'bad-input', /toolCallId/u],
      [{ type: 'abort_run', data: {} }, 'bad-input', /runId/u],
    ]
    for (const [message, code, words] of wrong) {
      const ack = (await client.socket.emitWithAck('message', message)) as unknown
      expect(ack).toEqual({ ok: false, error: { code, message: expect.stringMatching(words) } })
    }
    // Nobody waits for these.
    client.socket.emit('message', { type: 'nothing' })
    client.socket.emit('message')
    client.socket.emit('message', { type: 'abort_run', data: { runId: 'none' } })
    client.socket.emit('other', { type: 'run_agent', data: {} })
    // Without an acknowledgement, a start that failed is told as a run that did.
    client.socket.emit('message', { type: 'run_agent', data: runInput({ runId: 'lost' }) })
    const [lost] = await client.ended('lost')
    expect(lost).toMatchObject({
      type: 'RUN_ERROR',
      code: 'bad-input',
      message: expect.stringContaining('Known agents'),
    })
    await client.run({ forwardedProps: { agent: 'a' } })
    expect(textOf(await client.ended('r'))).toBe('Answer 1')
    expect(server.reported).toEqual([])
  })

  test('a message beyond the limit closes the connection, and nothing else', async () => {
    server = await startServer({ agents, scripts: { m: model() } }, { maxBodyBytes: 20_000 })
    const [client, other] = [await connectSocket(server.url, transport), await connectSocket(server.url, transport)]
    const gone = once(client.socket as never, 'disconnect')
    client.socket.emit('message', { type: 'run_agent', data: runInput({ state: 'x'.repeat(30_000) }) })
    await gone
    await other.run({})
    expect(textOf(await other.ended('r'))).toBe('Answer 1')
  })
})

test('both transports beside the routes, and a client that begins with polling moves to a websocket in the middle of a run', async () => {
  const gate = latch()
  const words = Array.from({ length: 300 }, (_, i) => `w${i} `)
  const script = [
    [text(...words.slice(0, 150)), gate, text(...words.slice(150)), finish()],
    [text('HTTP'), finish()],
  ]
  server = await startServer({ agents, scripts: { m: createScriptedModel(script) } })
  const socket = io(server.url, { transports: ['polling', 'websocket'], forceNew: true, reconnection: false })
  onTestFinished(() => void socket.close())
  let said = ''
  const over = new Promise<void>((done) => {
    socket.on('event', (event: { type: string; delta?: string }) => {
      if (event.type === 'TEXT_MESSAGE_CONTENT') said += event.delta
      if (event.type === 'RUN_FINISHED') done()
    })
  })
  socket.emit('message', { type: 'run_agent', data: runInput({}) })
  await gate.reached
  await expect.poll(() => server.sockets.counts()).toMatchObject({ sockets: 1, polling: 0, runs: 1 })
  gate.open()
  await over
  expect(said).toBe(words.join(''))
  const answer = await server.post('/api/chat', { agentId: 'a', messages: [{ role: 'user', content: 'Hi' }] })
  expect(await answer.text()).toContain('HTTP')
  expect((await fetch(`${server.url}/health`)).status).toBe(200)
  expect((await fetch(`${server.url}/socket.iox`)).status).toBe(404)
})

test('a request that offers another protocol stays an ordinary request', async () => {
  server = await startServer({ agents, scripts: { m: model() } })
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').setEncoding('utf8')
  socket.write(
    'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n',
  )
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK/u)
})

test('the client’s own file is served, for pages without a bundler', async () => {
  server = await startServer({ agents, scripts: { m: model() } }, { apiKey: 'a-long-secret-key' })
  const file = await fetch(`${server.url}/socket.io/socket.io.esm.min.js`)
  expect([file.status, file.headers.get('content-type')]).toEqual([200, 'application/javascript; charset=utf-8'])
  expect(await file.text()).toContain('export')
})

test('an address that is nearly that of Socket.IO is answered like any other that is not there', async () => {
  server = await startServer({ agents, scripts: { m: model() } })
  for (const path of ['/socket.io', '/socket.io?EIO=4&transport=polling', '/socket.iox/']) {
    expect([path, (await fetch(server.url + path)).status]).toEqual([path, 404])
  }
})
