import { PassThrough } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import { bridgeStdio } from './stdio-bridge.ts'

interface Posted {
  body: Record<string, unknown>
  headers: Record<string, string>
  signal: AbortSignal
}

type Answer = (posted: Posted, n: number) => Response | Promise<Response>

function open(answer: Answer, options: { patience?: number; grace?: number } = {}) {
  const input = new PassThrough()
  const lines: Record<string, unknown>[] = []
  const posted: Posted[] = []
  const stopped: string[] = []
  const notes: string[] = []
  const ended = bridgeStdio({
    input,
    write: async (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
    async post(body, headers, signal) {
      posted.push({ body: JSON.parse(body) as Record<string, unknown>, headers, signal })
      return answer(posted.at(-1)!, posted.length)
    },
    stop: async (run) => void stopped.push(run),
    note: (text) => void notes.push(text),
    ...options,
  })
  const send = (message: unknown) => {
    input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
  }
  return { input, lines, posted, stopped, notes, ended, send }
}

const versionKey = 'io.modelcontextprotocol/protocolVersion'
const modern = (method: string, params: object = {}, id: string | number = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { ...params, _meta: { [versionKey]: '2026-07-28' } },
})
const legacy = (method: string, params: object = {}, id: string | number = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})
const result = (id: unknown, value: unknown = {}, headers: Record<string, string> = {}) =>
  Response.json({ jsonrpc: '2.0', id, result: value }, { headers })

/** A stream of events that the test ends, or breaks. */
function streamed(headers: Record<string, string> = {}) {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const response = new Response(readable, { headers: { 'content-type': 'text/event-stream', ...headers } })
  return {
    response,
    event: (value: object) =>
      void writer
        .write(new TextEncoder().encode(`: x\n\nevent: message\ndata: ${JSON.stringify(value)}\n\n`))
        .catch(() => undefined),
    end: () => void writer.close(),
    break: () => void writer.abort(new Error('reset')).catch(() => undefined),
    left: writer.closed.then(
      () => false,
      () => true,
    ),
  }
}

describe('a modern message', () => {
  test('is posted with the headers that its body demands', async () => {
    const { send, lines, posted, input, ended } = open(({ body }) => result(body['id']))
    send(modern('tools/call', { name: 'desk', arguments: {} }, 'a'))
    send(modern('tasks/get', { taskId: 'mrtask_1' }, 2))
    send(modern('resources/read', { uri: 'thread://grün' }, 3))
    send(modern('prompts/get', { name: ' x ' }, 4))
    send(modern('tools/list', {}, 5))
    input.end()
    await ended
    expect(new Set(lines.map(({ id }) => id))).toEqual(new Set([2, 3, 4, 5, 'a']))
    const of = (id: unknown) => posted.find(({ body }) => body['id'] === id)!.headers
    expect(of('a')).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'desk',
      'x-millrace-client': 'stdio',
    })
    expect(of(2)).toMatchObject({ 'mcp-name': 'mrtask_1' })
    expect(of(3)).toMatchObject({ 'mcp-name': `=?base64?${Buffer.from('thread://grün').toString('base64')}?=` })
    expect(of(4)).toMatchObject({ 'mcp-name': `=?base64?${btoa(' x ')}?=` })
    expect(of(5)).not.toHaveProperty('mcp-name')
    expect(of(5)).not.toHaveProperty('idempotency-key')
  })

  test('gets all that its stream says, a line each', async () => {
    const { response, event, end } = streamed()
    const { send, lines, input, ended } = open(() => response)
    send(modern('tools/call'))
    event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })
    event({ jsonrpc: '2.0', id: 1, result: { text: 'a\nb' } })
    end()
    input.end()
    await ended
    expect(lines).toMatchObject([{ method: 'notifications/progress' }, { id: 1, result: { text: 'a\nb' } }])
  })
})

describe('a legacy client', () => {
  const initialize = (n: number) => result(0, { protocolVersion: '2025-06-18' }, { 'mcp-session-id': `mrsession_${n}` })

  test('has its session and its version in each message after initialize', async () => {
    const { send, lines, posted, input, ended } = open(({ body }, n) =>
      body['method'] === 'initialize'
        ? initialize(n)
        : body['id'] === undefined || body['method'] === undefined
          ? new Response(null, { status: 202 })
          : result(body['id']),
    )
    send(legacy('initialize', {}, 0))
    send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    send(legacy('tools/list', {}, 1))
    send({ jsonrpc: '2.0', id: 'mrask_1', result: { action: 'accept' } })
    input.end()
    await ended
    expect(lines.map(({ id }) => id)).toEqual([0, 1])
    expect(posted[0]!.headers).not.toHaveProperty('mcp-session-id')
    for (const { headers } of posted.slice(1))
      expect(headers).toMatchObject({ 'mcp-session-id': 'mrsession_1', 'mcp-protocol-version': '2025-06-18' })
    expect(posted).toHaveLength(4)
  })

  test('begins anew by itself when its session has expired', async () => {
    const { send, lines, posted, input, ended } = open(({ body, headers }, n) => {
      if (body['method'] === 'initialize') return initialize(n)
      if (headers['mcp-session-id'] === 'mrsession_1') return Response.json({ error: {} }, { status: 404 })
      return result(body['id'])
    })
    send(legacy('initialize', {}, 0))
    send(legacy('tools/list', {}, 1))
    input.end()
    await ended
    expect(lines).toEqual([expect.objectContaining({ id: 0 }), { jsonrpc: '2.0', id: 1, result: {} }])
    expect(posted.map(({ body }) => body['method'])).toEqual(['initialize', 'tools/list', 'initialize', 'tools/list'])
  })
})

describe('a connection that breaks', () => {
  test('before an answer: the message is sent again with the same key', async () => {
    const { send, lines, posted, input, ended } = open(({ body }, n) => {
      if (n < 3) throw new Error('No server answers.')
      return result(body['id'])
    })
    send(modern('tools/call', { name: 'desk' }))
    await vi.waitFor(() => expect(lines).toHaveLength(1))
    input.end()
    await ended
    expect(lines).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }])
    const keys = posted.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toBeDefined()
  })

  test('in mid-stream: the call is joined again, and its progress does not fall', async () => {
    const [first, second] = [streamed(), streamed()]
    const { send, lines, input, ended } = open((_, n) => (n === 1 ? first.response : second.response))
    const progress = (value: number) => ({
      method: 'notifications/progress',
      params: { progressToken: 1, progress: value },
    })
    send(modern('tools/call', { name: 'desk' }))
    first.event(progress(1))
    first.event(progress(2))
    await vi.waitFor(() => expect(lines).toHaveLength(2))
    first.break()
    for (const value of [1, 2, 3]) second.event(progress(value))
    second.event({ jsonrpc: '2.0', id: 1, result: {} })
    second.end()
    await vi.waitFor(() => expect(lines).toHaveLength(4))
    input.end()
    await ended
    expect(lines).toMatchObject([progress(1), progress(2), progress(3), { id: 1 }])
  })

  test('a call with an id of the model keeps that as its key', async () => {
    const { send, posted, input, ended } = open(({ body }) => result(body['id']))
    const call = modern('tools/call', { name: 'desk' })
    Object.assign(call.params._meta, { 'claudecode/toolUseId': 'toolu_1' })
    send(call)
    input.end()
    await ended
    expect(posted[0]!.headers).not.toHaveProperty('idempotency-key')
  })

  test('for good: the client gets an error', async () => {
    const { send, lines, input, ended } = open(
      () => {
        throw new Error('No server answers.')
      },
      { patience: 0 },
    )
    send(modern('tools/list'))
    send(legacy('initialize', {}, 2))
    input.end()
    await ended
    expect(lines.toSorted((a, b) => Number(a['id']) - Number(b['id']))).toMatchObject([
      { id: 1, error: { code: -32603, message: 'No server answers: No server answers.' } },
      { id: 2, error: { code: -32603 } },
    ])
  })
})

describe('a call that is cancelled', () => {
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }

  test('has its run stopped, and gets no answer', async () => {
    const { response, event, left } = streamed({ 'x-millrace-run-id': 'run_1' })
    const { send, lines, stopped, posted, input, ended } = open(() => response)
    send(modern('tools/call', { name: 'desk' }))
    event({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })
    await vi.waitFor(() => expect(lines).toHaveLength(1))
    send(cancel)
    await vi.waitFor(() => expect(stopped).toEqual(['run_1']))
    expect(await left).toBe(true)
    input.end()
    await ended
    expect(lines).toHaveLength(1)
    expect(posted).toHaveLength(1)
  })

  test('before the server has named its run: it is stopped then', async () => {
    const answer = Promise.withResolvers<Response>()
    const { send, lines, stopped, input, ended } = open(() => answer.promise)
    send(modern('tools/call', { name: 'desk' }))
    send(cancel)
    const { response } = streamed({ 'x-millrace-run-id': 'run_1' })
    await vi.waitFor(() => answer.resolve(response))
    await vi.waitFor(() => expect(stopped).toEqual(['run_1']))
    input.end()
    await ended
    expect(lines).toEqual([])
  })

  test('is left at once if it has no run', async () => {
    const { response, left } = streamed()
    const { send, lines, stopped, input, ended } = open(() => response)
    send(modern('subscriptions/listen'))
    send(cancel)
    expect(await left).toBe(true)
    input.end()
    await ended
    expect([lines, stopped]).toEqual([[], []])
  })

  test('and has ended: the server is told', async () => {
    const { send, posted, input, ended } = open(({ body }) =>
      body['id'] === undefined ? new Response(null, { status: 202 }) : result(body['id']),
    )
    send(cancel)
    input.end()
    await ended
    expect(posted[0]!.body).toEqual(cancel)
  })
})

describe('stdout', () => {
  test('has an answer to what is no message, and refusals get the id of their request', async () => {
    const { send, lines, input, ended } = open(({ body }) =>
      body['method'] === 'html'
        ? new Response('<html>', { status: 502 })
        : Response.json({ jsonrpc: '2.0', error: { code: -32600, message: 'unauthorized' } }, { status: 401 }),
    )
    send('not json')
    send(`${'['.repeat(300)}${']'.repeat(300)}`)
    send(modern('tools/list', {}, 7))
    send(modern('html', {}, 8))
    send('')
    input.end()
    await ended
    expect(lines.map(({ id, error }) => [id, (error as { code: number }).code])).toEqual(
      expect.arrayContaining([
        [undefined, -32700],
        [7, -32600],
        [8, -32603],
      ]),
    )
    expect(lines).toHaveLength(4)
  })

  test('has nothing of notifications', async () => {
    const { send, lines, notes, input, ended } = open(() => new Response('no', { status: 400 }))
    send({ jsonrpc: '2.0', method: 'notifications/x' })
    input.end()
    await ended
    expect([lines, notes]).toEqual([[], ['The server refused a message: no']])
  })

  test('messages may come in any pieces', async () => {
    const { input, lines, ended } = open(({ body }) => result(body['id'], body['params']))
    const bytes = Buffer.from(
      `${JSON.stringify(modern('x', { text: 'grün 😀' }))}\r\n${JSON.stringify(modern('y', {}, 2))}`,
    )
    for (const byte of bytes) input.write(Buffer.from([byte]))
    input.end()
    await ended
    expect(lines).toMatchObject([{ id: 1, result: { text: 'grün 😀' } }, { id: 2 }])
  })
})

test('when stdin ends, calls that go on are left', async () => {
  const { response, left } = streamed({ 'x-millrace-run-id': 'run_1' })
  const { send, stopped, input, ended, posted } = open(() => response, { grace: 0 })
  send(modern('tools/call', { name: 'desk' }))
  await vi.waitFor(() => expect(posted).toHaveLength(1))
  input.end()
  await ended
  expect(await left).toBe(true)
  expect(stopped).toEqual([])
})
