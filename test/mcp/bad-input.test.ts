/** Every line of the table of bad input, in both eras: each request is refused as the specification demands, and starts nothing. */
import { request as httpRequest } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { MillraceError } from '../../src/part/error.ts'
import { createAdmission, createCallerOf } from '../../src/server/http/admission.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { createLimits } from '../../src/store/limits.ts'
import { closingError } from '../../src/runtime/runtime-errors.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { modernBody, modernHeaders, withTasks, type Rpc } from '../support/mcp.ts'

let server: TestServer
afterEach(() => server.close())

const eras = ['modern', 'legacy'] as const
type Era = (typeof eras)[number]

async function serve(options: Partial<HandlerOptions> = {}): Promise<void> {
  const m = createScriptedModel(Array.from({ length: 5 }, () => [text('x'), finish()]))
  server = await startServer({ agents: { desk: agent() }, scripts: { m } }, options)
}

interface Sent {
  status: number
  headers: Headers
  body: Rpc
}

async function send(
  body: unknown,
  headers: Record<string, string>,
  { path = '/mcp', method = 'POST' } = {},
): Promise<Sent> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(server.url + path, { method, headers, ...(method === 'POST' && { body: text }) })
  const said = await response.text()
  const json = said.slice(said.indexOf('data: ') === -1 ? 0 : said.indexOf('data: ') + 6)
  return { status: response.status, headers: response.headers, body: (json === '' ? {} : JSON.parse(json)) as Rpc }
}

const legacyHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2025-11-25',
}

/** A request of either era that is right, to spoil. */
function right(era: Era, method = 'tools/list', params: Record<string, unknown> = {}, capabilities: object = {}) {
  if (era === 'legacy')
    return { body: { jsonrpc: '2.0', id: 1, method, params } as object, headers: { ...legacyHeaders } }
  const body = modernBody(method, params, { capabilities })
  return { body: body as object, headers: modernHeaders(body) }
}

const errorOf = ({ status, body }: Sent) => [status, body.error?.code]
const noRun = async () => expect(await server.store.runs.list()).toEqual([])

describe.for(eras)('bad input to /mcp, %s:', (era) => {
  test('a request that is right is answered', async () => {
    await serve()
    const { body, headers } = right(era)
    const sent = await send(body, headers)
    expect([sent.status, Object.keys(sent.body)]).toEqual([200, ['jsonrpc', 'id', 'result']])
  })

  test('not JSON is 400 and -32700', async () => {
    await serve()
    for (const body of ['{', '', 'nonsense', `${'['.repeat(5000)}${']'.repeat(5000)}`, '\u0000'])
      expect(errorOf(await send(body, right(era).headers))).toEqual([400, -32700])
  })

  test('not JSON-RPC is 400 and -32600', async () => {
    await serve()
    const { body, headers } = right(era)
    const { method: _, ...withoutMethod } = body as { method: string }
    for (const wrong of [
      7,
      null,
      'text',
      {},
      withoutMethod,
      { ...body, jsonrpc: '1.0' },
      { ...body, id: null },
      { ...body, id: 1.5 },
      { ...body, method: 3 },
      { ...body, params: [1] },
    ]) {
      expect(errorOf(await send(JSON.stringify(wrong), headers)), JSON.stringify(wrong)).toEqual([400, -32600])
    }
  })

  test('a body that is too large is 413', async () => {
    await serve({ maxBodyBytes: 2000 })
    const { body, headers } = right(era, 'tools/call', { name: 'desk', arguments: { message: 'x'.repeat(3000) } })
    const sent = await send(body, headers)
    expect([sent.status, sent.body.error?.data]).toEqual([413, { code: 'too-large' }])
    await noRun()
  })

  test('a version that we lack is 400 and -32022, with those that we have', async () => {
    await serve()
    const { body, headers } = right(era)
    const named = { ...headers, 'mcp-protocol-version': '2027-01-01' }
    const said = JSON.parse(JSON.stringify(body).replaceAll('2026-07-28', '2027-01-01')) as object
    const sent = await send(said, named)
    expect(errorOf(sent)).toEqual([400, -32022])
    expect(sent.body.error?.data).toEqual({
      supported: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'],
      requested: '2027-01-01',
    })
  })

  test('a batch is 400 and -32600', async () => {
    await serve()
    const { body, headers } = right(era)
    for (const batch of [[body], [], [body, body]]) expect(errorOf(await send(batch, headers))).toEqual([400, -32600])
  })

  test('another content type is 415', async () => {
    await serve()
    const { body, headers } = right(era)
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1']) {
      const sent = await send(body, { ...headers, 'content-type': type })
      expect([sent.status, sent.body.error?.data]).toEqual([415, { code: 'unsupported-type' }])
    }
  })

  test('an unknown method is -32601', async () => {
    await serve()
    for (const method of ['tools/nosuch', 'constructor', 'sampling/createMessage', 'logging/setLevel', 'tasks/list']) {
      const { body, headers } = right(era, method)
      expect(errorOf(await send(body, headers)), method).toEqual([era === 'modern' ? 404 : 200, -32601])
    }
  })

  test('an unknown tool and one that is not open are -32602 with one text', async () => {
    await serve({ mcp: { agents: ['desk'] } })
    const texts: (string | undefined)[] = []
    for (const name of ['nosuch', 'hidden', '__proto__']) {
      const { body, headers } = right(era, 'tools/call', { name, arguments: { message: 'Hi' } })
      const sent = await send(body, headers)
      expect(errorOf(sent)).toEqual([200, -32602])
      texts.push(sent.body.error?.message.replace(JSON.stringify(name), '<name>'))
    }
    expect(new Set(texts).size).toBe(1)
    const { body, headers } = right(era, 'tools/call', {})
    expect(errorOf(await send(body, headers))).toEqual([200, -32602])
    await noRun()
  })

  test('an unknown resource is -32602', async () => {
    await serve()
    for (const uri of ['run://run_nobodys', 'thread://x', 'file:///etc/passwd', '']) {
      const { body, headers } = right(era, 'resources/read', { uri })
      const sent = await send(body, { ...headers, ...(era === 'modern' && { 'mcp-name': uri }) })
      expect(errorOf(sent), uri).toEqual([200, -32602])
    }
  })

  test('arguments that do not fit are a result for the model, and no run', async () => {
    await serve()
    for (const given of [
      undefined,
      {},
      { message: 3 },
      { message: '' },
      { mesage: 'Hi' },
      { message: 'Hi', tools: [] },
      'text',
      [1],
    ]) {
      const { body, headers } = right(era, 'tools/call', { name: 'desk', arguments: given }, withTasks)
      const sent = await send(body, headers)
      expect([sent.status, sent.body.result?.['isError']], JSON.stringify(given)).toEqual([200, true])
    }
    await noRun()
  })

  test('too many starts are 429 with Retry-After, and polls do not count', async () => {
    const limits = createLimits()
    const admission = createAdmission({ limits, runsPerMinute: 1, callerOf: createCallerOf(undefined) })
    await serve({ admission })
    const { body, headers } = right(era, 'tools/call', { name: 'desk', arguments: { message: 'Hi' } })
    expect((await send(body, headers)).status).toBe(200)
    const sent = await send(body, headers)
    expect([sent.status, sent.body.error?.data]).toEqual([429, { code: 'rate-limited' }])
    expect(Number(sent.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(sent.body.id).toBe(1)
    const list = right(era)
    for (let i = 0; i < 3; i++) expect((await send(list.body, list.headers)).status).toBe(200)
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  test('too many runs of an agent are 429', async () => {
    await serve({ admit: () => new MillraceError('too-many-runs', 'Too many.', { status: 429, retryAfter: 3 }) })
    const { body, headers } = right(era, 'tools/call', { name: 'desk', arguments: { message: 'Hi' } })
    const sent = await send(body, headers)
    expect([sent.status, sent.body.error?.data, sent.headers.get('retry-after')]).toEqual([
      429,
      { code: 'too-many-runs' },
      '3',
    ])
    await noRun()
  })

  test('a server that shuts down is 503 with Retry-After', async () => {
    let draining: MillraceError | undefined
    await serve({ draining: () => draining })
    draining = closingError()
    const { body, headers } = right(era)
    const sent = await send(body, headers)
    expect([sent.status, sent.body.error?.data, sent.headers.get('retry-after')]).toEqual([
      503,
      { code: 'closing' },
      '1',
    ])
    draining = undefined
  })

  test('a page of another origin is 403; one of allowedOrigins is not', async () => {
    for (const localOnly of [true, false]) {
      await serve({
        localOnly,
        allowedOrigins: ['https://app.example'],
        ...(!localOnly && { apiKey: 'key-1234567890abcdef' }),
      })
      const { body, headers } = right(era)
      const auth = localOnly ? headers : { ...headers, authorization: 'Bearer key-1234567890abcdef' }
      expect((await send(body, { ...auth, origin: 'https://evil.example' })).status).toBe(403)
      expect((await send(body, { ...auth, origin: 'null' })).status).toBe(403)
      const allowed = await send(body, { ...auth, origin: 'https://app.example' })
      expect(allowed.status).toBe(200)
      expect(allowed.headers.get('access-control-expose-headers')).toContain('mcp-session-id')
      expect((await send(body, auth)).status).toBe(200)
      await server.close()
    }
    await serve()
  })

  test('a page of server.publicUrl is one of ours', async () => {
    await serve({ mcp: { publicUrl: 'https://agents.example' } })
    const { body, headers } = right(era)
    expect((await send(body, { ...headers, origin: 'https://agents.example' })).status).toBe(200)
    expect((await send(body, { ...headers, origin: 'https://other.example' })).status).toBe(403)
  })

  test('on loopback another Host is 403', async () => {
    await serve({ localOnly: true })
    const { body, headers } = right(era)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(
        `${server.url}/mcp`,
        { method: 'POST', headers: { ...headers, host: 'evil.example' } },
        (response) => {
          response.resume()
          resolve(response.statusCode)
        },
      )
      sent.on('error', reject).end(JSON.stringify(body))
    })
    expect(status).toBe(403)
  })

  test('no or a wrong key is 401 with WWW-Authenticate', async () => {
    await serve({ apiKey: 'key-1234567890abcdef' })
    const { body, headers } = right(era)
    for (const wrong of [{}, { authorization: 'Bearer nonsense' }] as Record<string, string>[]) {
      const sent = await send(body, { ...headers, ...wrong })
      expect([sent.status, sent.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
      expect(sent.body.error?.data).toEqual({ code: 'unauthorized' })
    }
  })

  test('with access.jwt the challenge says where to get a token', async () => {
    await serve({ apiKey: 'key-1234567890abcdef', mcp: { issuer: 'https://login.example' } })
    const { body, headers } = right(era)
    const sent = await send(body, headers)
    const url = `${server.url}/.well-known/oauth-protected-resource/mcp`
    expect(sent.headers.get('www-authenticate')).toBe(`Bearer resource_metadata="${url}"`)
    expect(await (await fetch(url)).json()).toEqual({
      resource: `${server.url}/mcp`,
      authorization_servers: ['https://login.example'],
      bearer_methods_supported: ['header'],
    })
  })

  test('GET and DELETE are 405', async () => {
    await serve()
    const { headers } = right(era)
    for (const path of ['/mcp', '/mcp/desk']) {
      for (const method of ['GET', 'DELETE']) {
        const sent = await send('', headers, { path, method })
        expect([sent.status, sent.headers.get('allow')]).toEqual([405, 'POST'])
      }
    }
  })

  test('an agent in the path that does not exist, or is not offered, is 404', async () => {
    await serve({ mcp: { agents: ['desk'] } })
    const { body, headers } = right(era)
    expect((await send(body, headers, { path: '/mcp/nosuch' })).status).toBe(404)
    expect((await send(body, headers, { path: '/mcp/desk' })).status).toBe(200)
  })

  test('server.mcp: false: there is nothing', async () => {
    await serve({ mcp: false })
    const { body, headers } = right(era)
    expect((await send(body, headers)).status).toBe(404)
  })
})

describe('bad headers of a modern request', () => {
  const call = { name: 'desk', arguments: { message: 'Hi' } }

  test.for([
    ['MCP-Protocol-Version absent', { 'mcp-protocol-version': undefined }],
    ['MCP-Protocol-Version unlike the body', { 'mcp-protocol-version': '2025-11-25' }],
    ['Mcp-Method absent', { 'mcp-method': undefined }],
    ['Mcp-Method unlike the body', { 'mcp-method': 'tools/list' }],
    ['Mcp-Method in other case', { 'mcp-method': 'Tools/Call' }],
    ['Mcp-Name absent', { 'mcp-name': undefined }],
    ['Mcp-Name unlike the body', { 'mcp-name': 'other' }],
    ['Mcp-Name in other case', { 'mcp-name': 'Desk' }],
    ['Mcp-Name in base64 of another', { 'mcp-name': '=?base64?b3RoZXI=?=' }],
    ['Mcp-Name in bad base64', { 'mcp-name': '=?base64?*?=' }],
  ] as const)('%s is 400 and -32020', async ([, spoilt]) => {
    await serve()
    const { body, headers } = right('modern', 'tools/call', call)
    const all = Object.entries({ ...headers, ...spoilt }).filter(([, value]) => value !== undefined)
    expect(errorOf(await send(body, Object.fromEntries(all) as Record<string, string>))).toEqual([400, -32020])
    await noRun()
  })

  test('Mcp-Name in base64 is decoded', async () => {
    await serve()
    const { body, headers } = right('modern', 'tools/call', call)
    expect((await send(body, { ...headers, 'mcp-name': '=?base64?ZGVzaw==?=' })).status).toBe(200)
  })

  test('_meta without capabilities, or without a version, is 400 and -32602', async () => {
    await serve()
    const { body, headers } = right('modern')
    const spoil = (change: (meta: Record<string, unknown>) => void) => {
      const copy = structuredClone(body) as { params: { _meta: Record<string, unknown> } }
      change(copy.params._meta)
      return copy
    }
    const key = (name: string) => `io.modelcontextprotocol/${name}`
    for (const wrong of [
      spoil((meta) => delete meta[key('clientCapabilities')]),
      spoil((meta) => (meta[key('clientCapabilities')] = 'all')),
      spoil((meta) => (meta[key('clientInfo')] = 'me')),
      spoil((meta) => (meta[key('protocolVersion')] = 7)),
      spoil((meta) => delete meta[key('protocolVersion')]),
    ]) {
      expect(errorOf(await send(wrong, headers))).toEqual([400, -32602])
    }
  })

  test('a response of a client is 400 and -32600', async () => {
    await serve()
    const { headers } = right('modern')
    expect(errorOf(await send({ jsonrpc: '2.0', id: 1, result: {} }, headers))).toEqual([400, -32600])
  })
})

describe('sessions of legacy clients', () => {
  const begin = (version = '2025-11-25') =>
    send(
      {
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'old', version: '1' } },
      },
      { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    )

  test('begin with the version that was asked for, or the newest', async () => {
    await serve()
    for (const version of ['2025-11-25', '2025-06-18', '2025-03-26']) {
      expect((await begin(version)).body.result).toMatchObject({ protocolVersion: version })
    }
    expect((await begin('2024-11-05')).body.result).toMatchObject({ protocolVersion: '2025-11-25' })
  })

  test('another instance of the store reads the id; a wrong one is 404', async () => {
    await serve()
    const session = (await begin()).headers.get('mcp-session-id')!
    expect(session).toMatch(/^[!-~]+$/u)
    const { body } = right('legacy')
    const headers = { ...legacyHeaders, 'mcp-session-id': session }
    expect((await send(body, headers)).status).toBe(200)
    for (const wrong of ['x', `${session}A`, session.slice(0, -4)]) {
      expect((await send(body, { ...headers, 'mcp-session-id': wrong })).status).toBe(404)
    }
  })

  test('batches are answered in 2025-03-26, each message by itself', async () => {
    await serve()
    const session = (await begin('2025-03-26')).headers.get('mcp-session-id')!
    const headers = { 'content-type': 'application/json', accept: '*/*', 'mcp-session-id': session }
    const sent = await send(
      [
        { jsonrpc: '2.0', id: 'a', method: 'ping' },
        { jsonrpc: '2.0', method: 'notifications/initialized' },
        { jsonrpc: '2.0', id: 'b', method: 'nosuch' },
        { jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'desk', arguments: { message: 'Hi' } } },
      ],
      headers,
    )
    const answers = sent.body as unknown as Rpc[]
    expect(answers.map(({ id, error }) => [id, error?.code])).toEqual([
      ['a', undefined],
      ['b', -32601],
      ['c', undefined],
    ])
    expect(answers[2]!.result).toMatchObject({ content: [{ type: 'text', text: 'x' }] })
    const notes = await send([{ jsonrpc: '2.0', method: 'notifications/initialized' }], headers)
    expect(notes.status).toBe(202)
  })
})
