/** Who may talk to the server, and where it may listen. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { createHandler } from '../../src/server/handler.ts'
import { serve, type ServeOptions } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { agent, createEngine, type Engine } from '../support/engine.ts'

const key = 'a-long-secret-key'
let engine: Engine | undefined
afterEach(() => engine?.close())

const routes: [string, string][] = [
  ['GET', '/nothing'],
  ['GET', '/api/agents'],
  ['GET', '/api/agents/a'],
  ['POST', '/api/chat'],
  ['POST', '/api/beddel/chat'],
  ['GET', '/api/chat/x/stream'],
  ['GET', '/api/runs'],
  ['POST', '/api/runs'],
  ['GET', '/api/runs/x'],
  ['GET', '/api/runs/x/events'],
  ['POST', '/api/runs/x/stop'],
  ['GET', '/api/runs/x/requests'],
  ['GET', '/api/threads/x'],
  ['POST', '/api/runs/x/requests/y'],
  ['POST', '/health'],
  ['POST', '/'],
  ['GET', '//'],
  ['GET', '/health/'],
  ['GET', '/health/../api/runs'],
  ['GET', '//health'],
  ['GET', '/HEALTH'],
  ['OPTIONS', '/api/runs'],
  ['HEAD', '/api/runs'],
]

const wrong: (string | undefined)[] = [
  undefined,
  '',
  'Bearer',
  'Bearer ',
  'Bearer wrong',
  `Bearer ${key}x`,
  `Bearer ${key.slice(0, -1)}`,
  `Bearer ${key.toUpperCase()}`,
  `Bearer ${key} ${key}`,
  `Basic ${btoa(`:${key}`)}`,
  key,
]

describe('API keys', () => {
  test('with a key every route but GET /health and the page wants it', async () => {
    engine = createEngine({ agents: { a: agent() } })
    const handler = createHandler({ runtime: engine.runtime, apiKey: key })
    for (const [method, path] of routes) {
      for (const authorization of wrong) {
        const headers = authorization === undefined ? undefined : { authorization }
        const response = await handler(new Request(`http://x${path}`, { method, headers }))
        expect([method, path, authorization, response.status]).toEqual([method, path, authorization, 401])
        expect(response.headers.get('www-authenticate')).toBe('Bearer')
        if (method === 'HEAD') continue
        const body = (await response.json()) as { error: { code: string } }
        expect(body.error).toMatchObject({ code: 'unauthorized', type: 'invalid_request_error' })
        expect(JSON.stringify(body)).not.toContain(key)
      }
      const headers = { authorization: `Bearer ${key}` }
      expect((await handler(new Request(`http://x${path}`, { method, headers }))).status).not.toBe(401)
    }
    expect((await handler(new Request('http://x/health'))).status).toBe(200)
  })

  test('the right key runs an agent, in any spelling of the scheme', async () => {
    const model = createScriptedModel([
      [text('ok'), finish()],
      [text('ok'), finish()],
    ])
    engine = createEngine({ agents: { a: agent() }, scripts: { m: model } })
    const handler = createHandler({ runtime: engine.runtime, apiKey: key })
    for (const authorization of [`Bearer ${key}`, `bearer  ${key}`]) {
      const response = await handler(
        new Request('http://x/api/beddel/chat', {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/json' },
          body: JSON.stringify({ agentId: 'a', messages: [{ role: 'user', content: 'Hi' }] }),
        }),
      )
      expect(await response.text()).toBe('ok')
    }
  })

  test('an empty key opens nothing', async () => {
    engine = createEngine({ agents: { a: agent() } })
    const handler = createHandler({ runtime: engine.runtime, apiKey: '' })
    for (const authorization of ['', 'Bearer ', 'Bearer']) {
      expect((await handler(new Request('http://x/api/runs', { headers: { authorization } }))).status).toBe(401)
    }
  })

  test('without a key and without authorize there are chats only', async () => {
    engine = createEngine({ agents: { a: agent() } })
    const handler = createHandler({ runtime: engine.runtime })
    for (const [method, path] of routes.filter(([, at]) => at.startsWith('/api/runs'))) {
      expect([method, path, (await handler(new Request(`http://x${path}`, { method }))).status]).toEqual([
        method,
        path,
        404,
      ])
    }
    for (const path of ['/health', '/api/agents', '/api/agents/a']) {
      expect([path, (await handler(new Request(`http://x${path}`))).status]).toEqual([path, 200])
    }
  })

  test('authorize is asked for every route but GET /health and the page, and what it says holds', async () => {
    engine = createEngine({ agents: { a: agent() } })
    const authorize = async (request: Request) => request.headers.get('cookie') === 'me'
    const handler = createHandler({ runtime: engine.runtime, authorize })
    for (const [method, path] of routes) {
      expect([method, path, (await handler(new Request(`http://x${path}`, { method }))).status]).toEqual([
        method,
        path,
        403,
      ])
    }
    expect((await handler(new Request('http://x/health'))).status).toBe(200)
    expect((await handler(new Request('http://x/api/runs', { headers: { cookie: 'me' } }))).status).toBe(200)
  })

  async function served(options: Partial<ServeOptions>) {
    const dir = folder({ 'a.yaml': agent().replace('script:m', 'demo:assistant') })
    const server = await serve({ dir, data: `${dir}/data`, env: {}, port: 0, host: '127.0.0.1', ...options })
    onTestFinished(() => server.close())
    return server
  }

  test('no other address than this machine without a key', async () => {
    for (const host of ['0.0.0.0', '::', '127.0.0.1.example.com', '127.example.com', 'localhost.example.com', '']) {
      for (const apiKey of [undefined, '']) {
        await expect(served({ host, apiKey })).rejects.toMatchObject({
          code: 'no-key',
          message: expect.stringMatching(/MILLRACE_API_KEY.*--insecure-no-auth/),
        })
      }
    }
  })

  test('with a key, or when it is said aloud, it listens everywhere', async () => {
    const open = await served({ host: '0.0.0.0', insecureNoAuth: true })
    expect((await fetch(`${open.url}/api/runs`)).status).toBe(200)
    const locked = await served({ host: '0.0.0.0', apiKey: key })
    expect((await fetch(`${locked.url}/api/agents`)).status).toBe(401)
    expect((await fetch(`${locked.url}/health`)).status).toBe(200)
    const headers = { authorization: `Bearer ${key}` }
    expect((await fetch(`${locked.url}/api/agents`, { headers })).status).toBe(200)
  })

  test('a data folder has one server; the refused one leaves it alone', async () => {
    const { url, project } = await served({ data: 'none' })
    const dir = folder({ 'a.yaml': agent().replace('script:m', 'demo:assistant') })
    void project
    const first = await serve({ dir, data: `${dir}/data`, env: {}, port: 0, host: '127.0.0.1' })
    const again = () => serve({ dir, data: `${dir}/data`, env: {}, port: 0, host: '127.0.0.1' })
    await expect(again()).rejects.toMatchObject({ code: 'data-in-use', message: expect.stringContaining(first.url) })
    expect((await fetch(`${first.url}/health`)).status).toBe(200)
    await first.close()
    const second = await again()
    // A server whose port is taken gives its folder back.
    const other = folder({ 'a.yaml': agent().replace('script:m', 'demo:assistant') })
    const port = Number(new URL(url).port)
    const blocked = () => serve({ dir: other, data: `${other}/data`, env: {}, port, host: '127.0.0.1' })
    await expect(blocked()).rejects.toMatchObject({ code: 'port-in-use' })
    await expect(blocked()).rejects.toMatchObject({ code: 'port-in-use' })
    await second.close()
  })

  test('what is not there is 404 for every method, also behind the checks of a local server', async () => {
    const served = await serve({ dir: folder(), data: 'none', env: {}, port: 0, host: '127.0.0.1' })
    onTestFinished(() => served.close())
    for (const [method, path, status] of [
      ['POST', '/', 405],
      ['GET', '/nosuch', 404],
      ['POST', '/nosuch', 404],
      ['DELETE', '/api/runs', 405],
      ['GET', '/api/chat', 405],
    ] as const) {
      expect([path, (await fetch(`${served.url}${path}`, { method })).status]).toEqual([path, status])
    }
  })

  test('a server without a key answers to this machine, not to pages of other sites', async () => {
    const served = await serve({ dir: folder(), data: 'none', env: {}, port: 0, host: '127.0.0.1' })
    onTestFinished(() => served.close())
    const status = async (headers: Record<string, string>) => (await ask(served.url, '/api/runs', headers)).status
    expect(await status({})).toBe(200)
    expect(await status({ origin: 'http://localhost:5173' })).toBe(200)
    expect(await status({ origin: 'https://evil.example' })).toBe(403)
    expect(await status({ 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await status({ host: 'evil.example:3000', origin: 'http://evil.example:3000' })).toBe(403)
  })

  /** As `fetch`, which would set some headers itself. */
  async function ask(url: string, path: string, headers: Record<string, string>, method = 'GET') {
    const { request } = await import('node:http')
    const { hostname, port } = new URL(url)
    return new Promise<{ status: number; body: string }>((resolve, reject) => {
      const asked = request({ hostname, port, path, method, headers }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (piece: string) => void (body += piece))
        response.on('end', () => resolve({ status: response.statusCode!, body }))
      })
      asked.on('error', reject).on('upgrade', (response, socket) => {
        socket.destroy()
        resolve({ status: response.statusCode!, body: '' })
      })
      asked.end()
    })
  }

  test('without a key, what a proxy has forwarded is refused on every route and by Socket.IO, with the cure; with a key it is served', async () => {
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const websocket = { ...upgrade, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
    const paths = ['/', '/runs', '/health', '/metrics', '/v1/models', '/ag-ui/a/capabilities', '/api/x', '/assets/x.js']
    const asks = [
      ...routes.map(([method, path]) => [method, path, {}] as const),
      ...paths.map((path) => ['GET', path, { accept: 'text/html' }] as const),
      ['GET', '/socket.io/?EIO=4&transport=polling', {}],
      ['POST', '/socket.io/?EIO=4&transport=polling&sid=x', {}],
      ['GET', '/socket.io/?EIO=4&transport=websocket', websocket],
    ] as const
    const open = await served({ data: 'none' })
    const marks = ['forwarded', 'x-forwarded-for', 'x-forwarded-port', 'via', 'x-real-ip']
    for (const [i, [method, path, headers]] of asks.entries()) {
      const name = marks[i % marks.length]!
      const { status, body } = await ask(open.url, path, { ...headers, [name]: '203.0.113.7' }, method)
      expect([method, path, name, status]).toEqual([method, path, name, 403])
      if (method !== 'HEAD') expect(body).toMatch(/forwarded by a proxy.*Set MILLRACE_API_KEY/u)
      expect(body).not.toContain('203.0.113.7')
    }
    const locked = await served({ data: 'none', apiKey: key })
    const headers = { 'x-forwarded-for': '203.0.113.7', authorization: `Bearer ${key}` }
    expect((await ask(locked.url, '/api/runs', headers)).status).toBe(200)
  })
})

describe('sessions of an application', () => {
  const session = (headers: Headers) => headers.get('cookie') === 'session=1'
  test.each([
    ['authenticate', { authenticate: ({ headers }: Request) => session(headers) && { id: 'ann' } }],
    ['authorize', { authorize: ({ headers }: Request) => session(headers) }],
  ])('%s: a page of another site cannot change anything with its cookie', async (_, ways) => {
    engine = createEngine({ agents: { a: agent() } })
    const { runtime } = engine
    const handler = createHandler({ runtime, allowedOrigins: ['https://friend.example'], ...ways })
    const stop = async (headers: Record<string, string>) => {
      // The body is optional, so that a browser sends it without a preflight.
      const all = { host: 'app.example', cookie: 'session=1', 'content-type': 'text/plain', ...headers }
      return (await handler(new Request('http://app.example/api/runs/none/stop', { method: 'POST', headers: all })))
        .status
    }
    expect(await stop({ origin: 'https://evil.example' })).toBe(403)
    expect(await stop({ 'sec-fetch-site': 'same-site' })).toBe(403)
    expect(await stop({ origin: 'https://app.example' })).toBe(404)
    expect(await stop({ origin: 'https://friend.example' })).toBe(404)
    // A program has no origin, and behind a proxy the host may be another one.
    expect(await stop({})).toBe(404)
    expect(await stop({ origin: 'https://public.example', 'sec-fetch-site': 'same-origin' })).toBe(404)
  })
})
