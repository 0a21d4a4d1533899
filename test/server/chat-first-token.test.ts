/** What leaves the server before the model has said much: status, headers, the first frame, the first token. */
import { createConnection } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'

let server: TestServer
afterEach(() => server.close())

const messages = [{ role: 'user', content: 'Hi' }]
const heldAfterOne = (gate: ReturnType<typeof latch>): ScriptStep[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'one' },
  gate,
  { type: 'text-delta', id: 't', delta: 'two' },
  { type: 'text-end', id: 't' },
  finish(),
]

/** A request on a bare socket: what came so far, as bytes on the wire. */
function rawPost(url: string, path: string, body: unknown) {
  const { hostname, port } = new URL(url)
  const json = JSON.stringify(body)
  const socket = createConnection(Number(port), hostname)
  const state = { received: '', wake: () => undefined as void }
  socket.setEncoding('utf8').on('data', (data) => {
    state.received += String(data)
    state.wake()
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`,
  )
  return {
    socket,
    get received() {
      return state.received
    },
    async until(part: string): Promise<string> {
      while (!state.received.includes(part)) await new Promise<void>((resolve) => (state.wake = resolve))
      return state.received
    },
  }
}

describe('chat: first token', () => {
  test.each([
    ['/api/beddel/chat', 'one'],
    ['/api/chat', '"delta":"one"'],
  ])('%s: the first token is on the socket while the model is held before the second', async (path, token) => {
    const gate = latch()
    const model = createScriptedModel([heldAfterOne(gate)])
    server = await startServer({ agents: { assistant: agent() }, scripts: { m: model } })
    const client = rawPost(server.url, path, { agentId: 'assistant', messages })
    const before = await client.until(token)
    expect(before).toContain('HTTP/1.1 200 OK')
    expect(before).not.toContain('two')
    gate.open()
    await client.until('\r\n0\r\n\r\n')
    expect(client.received).toContain('two')
    client.socket.destroy()
  })

  test('the same through a real model server', async () => {
    const gate = latch()
    const upstream = await startUpstream(async (reply) => {
      reply.say('one')
      await gate.opened
      reply.say('two')
      reply.finish()
    })
    const models = { endpoints: [{ name: 'local', baseURL: upstream.baseURL }] }
    server = await startServer({ agents: { assistant: agent().replace('script:m', 'local:m') }, models })
    const response = await server.post('/api/beddel/chat', { agentId: 'assistant', messages })
    const body = readBody(response)
    expect(await body.until('one')).toBe('one')
    gate.open()
    expect(await body.rest()).toBe('onetwo')
    await upstream.close()
  })

  test('a model that has accepted but says nothing: status and `start` are out at once', async () => {
    const gate = latch()
    const upstream = await startUpstream(async (reply) => {
      reply.accept()
      await gate.opened
      reply.say('at last')
      reply.finish()
    })
    const models = { endpoints: [{ name: 'local', baseURL: upstream.baseURL }] }
    server = await startServer({ agents: { assistant: agent().replace('script:m', 'local:m') }, models })
    const response = await server.post('/api/chat', { agentId: 'assistant', messages })
    const body = readBody(response)
    expect(framesOf(await body.until('\n\n'))[0]).toEqual({
      type: 'start',
      messageId: response.headers.get('x-millrace-run-id'),
    })
    expect(body.text).not.toContain('text-start')
    gate.open()
    expect(framesOf(await body.rest()).at(-1)).toBe('done')
    await upstream.close()
  })

  test('headers are the contract’s, and nothing compresses, stores or transforms the stream', async () => {
    server = await startServer({
      agents: { assistant: agent() },
      scripts: {
        m: createScriptedModel([
          [text('Hi'), finish()],
          [text('Hi'), finish()],
        ]),
      },
    })
    const accept = { 'accept-encoding': 'gzip, br' }
    const ui = await server.post('/api/chat', { agentId: 'assistant', messages }, { headers: accept })
    const plain = await server.post('/api/beddel/chat', { agentId: 'assistant', messages }, { headers: accept })
    for (const { headers } of [ui, plain]) {
      expect(headers.get('cache-control')).toBe('no-cache, no-transform')
      expect(headers.get('x-accel-buffering')).toBe('no')
      expect(headers.get('x-millrace-run-id')).toMatch(/^run_/)
      expect(headers.get('transfer-encoding')).toBe('chunked')
      for (const name of ['content-encoding', 'content-length']) expect(headers.has(name)).toBe(false)
    }
    expect(ui.headers.get('content-type')).toBe('text/event-stream')
    expect(ui.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1')
    expect(plain.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(plain.headers.has('x-vercel-ai-ui-message-stream')).toBe(false)
    expect(framesOf(await ui.text()).at(-1)).toBe('done')
    expect(await plain.text()).toBe('Hi')
  })

  test('`Accept` chooses the wire on either route', async () => {
    const model = createScriptedModel(Array.from({ length: 4 }, () => [text('Hi'), finish()]))
    server = await startServer({ agents: { assistant: agent() }, scripts: { m: model } })
    const body = { agentId: 'assistant', messages }
    for (const [accept, isText] of [
      ['text/event-stream, text/plain;q=0.5', false],
      ['Text/Plain', true],
    ] as const) {
      const response = await server.post('/api/chat', body, { headers: { accept } })
      expect({ accept, isText: (await response.text()) === 'Hi' }).toEqual({ accept, isText })
    }
    const plain = await server.post('/api/chat', body, { headers: { accept: 'text/plain' } })
    expect(await plain.text()).toBe('Hi')
    const ui = await server.post('/api/beddel/chat', body, { headers: { accept: 'text/event-stream' } })
    expect(framesOf(await ui.text()).at(-1)).toBe('done')
  })
})
