/** Headers that a request brings for MCP servers: sent by its run alone, never recorded, and gone after a restart. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, until } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { connectSocket } from '../support/socket.ts'
import { framesOf, startServer, type TestServer } from '../support/server.ts'

interface Seen {
  method: string
  session: string
  authorization: string
  tenant: string
}

/** An MCP server over HTTP that keeps the headers of each request. Its tool `whoami` answers once `expected` calls are there. */
async function startRecorder(expected = 1) {
  const seen: Seen[] = []
  const all = Promise.withResolvers<void>()
  let sessions = 0
  let calls = 0
  const server = createServer((request, response) => {
    const { authorization = '', 'x-tenant': tenant = '', 'mcp-session-id': session = '' } = request.headers
    const note = (method: string) =>
      seen.push({ method, authorization, tenant: String(tenant), session: String(session) })
    if (request.method !== 'POST') {
      note(request.method!)
      return void response.writeHead(request.method === 'DELETE' ? 200 : 405).end()
    }
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', async () => {
      const { id, method } = JSON.parse(body) as { id?: number; method: string }
      note(method)
      if (id === undefined) return void response.writeHead(202).end()
      const headers: Record<string, string> = { 'content-type': 'application/json' }
      if (method === 'initialize') headers['mcp-session-id'] = `s${++sessions}`
      if (method === 'tools/call') {
        if (++calls >= expected) all.resolve()
        await all.promise
      }
      const result = {
        initialize: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'recorder', version: '1' },
        },
        'tools/list': { tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] },
        'tools/call': { content: [{ type: 'text', text: `you are ${authorization}` }] },
      }[method]
      response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

const asks = (prompt: Told['prompts'][number]): ScriptStep[] =>
  resultsIn(prompt).size === 0
    ? [toolCall('c1', 'crm_whoami', {}), finish('tool-calls')]
    : [text(JSON.stringify([...resultsIn(prompt).values()])), finish()]

async function start(
  url: string,
  { config = 'tools: [crm_whoami]', ...more }: { config?: string; keep?: boolean; dir?: string } = {},
) {
  const m = createTold(asks)
  const server = await startServer({
    agents: { a: agent(config) },
    scripts: { m },
    mcpServers: {
      crm: { url, headers: { Authorization: 'Bearer of-the-server', 'X-Tenant': 'of-the-server' } },
      local: { command: 'no-such-program' },
    },
    ...more,
  })
  onTestFinished(() => server.close())
  return { server, m }
}

const input = (threadId: string, runId: string, more: object = {}) => ({
  threadId,
  runId,
  messages: [{ id: 'u1', role: 'user', content: 'Who am I?' }],
  tools: [],
  context: [],
  state: {},
  protocolVersion: '1.0',
  ...more,
})
const tokenOf = (user: string) => `Bearer secret-token-of-${user}`
const headersOf = (user: string) => ({ mcpHeaders: { crm: { authorization: tokenOf(user) } } })

async function everythingStored({ store, dir }: TestServer, run: string): Promise<string> {
  const entries = JSON.stringify(await entriesOf(store, run))
  const files = ['millrace.db', 'millrace.db-wal'].map((name) => {
    try {
      return readFileSync(join(dir, name), 'latin1')
    } catch {
      return ''
    }
  })
  return entries + files.join('')
}

test('two runs at once with their own tokens: each connection has one, over the config’s, and is closed; others have the config’s', async () => {
  const { url, seen } = await startRecorder(2)
  const { server } = await start(url)
  const bodies = await Promise.all(
    ['ann', 'bob'].map(async (user) => {
      const body = input(`t-${user}`, 'r1', { forwardedProps: headersOf(user) })
      return (await server.post('/ag-ui/a', body)).text()
    }),
  )
  for (const body of bodies) expect(body).toContain('RUN_FINISHED')
  const sessions = new Map<string, Set<string>>()
  for (const { session, authorization } of seen) {
    if (session !== '') sessions.set(session, (sessions.get(session) ?? new Set()).add(authorization))
  }
  expect([...sessions.values()].map((each) => [...each].join()).toSorted()).toEqual([tokenOf('ann'), tokenOf('bob')])
  expect(seen.filter(({ method }) => method === 'tools/call').map(({ tenant }) => tenant)).toEqual([
    'of-the-server',
    'of-the-server',
  ])
  // Their sessions are closed with their runs.
  await expect
    .poll(() =>
      seen
        .filter(({ method }) => method === 'DELETE')
        .map(({ authorization }) => authorization)
        .toSorted(),
    )
    .toEqual([tokenOf('ann'), tokenOf('bob')])
  await server.post('/ag-ui/a', input('t-none', 'r1')).then((response) => response.text())
  expect(seen.at(-1)).toMatchObject({ method: 'tools/call', authorization: 'Bearer of-the-server' })
})

test('they are nowhere: not in the log, the input, frames, errors or what the model is told', async () => {
  const { url } = await startRecorder()
  const { server, m } = await start(url)
  const asked = input('t', 'r1', {
    forwardedProps: { ...headersOf('ann'), kept: 1 },
    messages: [{ id: 'u1', role: 'user', content: 'I am secret-token-of-ann, by the way' }],
  })
  const body = await (await server.post('/ag-ui/a', asked)).text()
  const [run] = await server.store.runs.list()
  const stored = await everythingStored(server, run!.id)
  const told = JSON.stringify(m.prompts)
  // The snapshot gives the client its own words back.
  const sent = framesOf(body).filter((frame) => frame !== 'done' && frame['type'] !== 'MESSAGES_SNAPSHOT')
  const where = Object.entries({ sent: JSON.stringify(sent), stored, told }).filter(([, each]) =>
    each.includes('secret-token-of-ann'),
  )
  expect(where.map(([name]) => name)).toEqual([])
  const [begun] = only(await entriesOf(server.store, run!.id), 'run-start')
  expect([begun!.ownHeaders, begun!.input['forwardedProps']]).toEqual([['crm'], { kept: 1 }])
  expect(body).toContain('you are [redacted]')
})

describe('refused with 400, which names the server and the header, and no value', () => {
  test.each<[string, unknown, RegExp]>([
    ['an unknown server', { crmm: { authorization: 'x-secret' } }, /"crmm".*did you mean "crm"/u],
    ['a local program', { local: { authorization: 'x-secret' } }, /mcpHeaders\.local is a local program/u],
    ['no object', ['x-secret'], /must be an object/u],
    ['no headers', { crm: 'x-secret' }, /mcpHeaders\.crm must be an object/u],
    ['a value that is none', { crm: { authorization: 7 } }, /"authorization" that is not a string/u],
    ['a line break', { crm: { authorization: 'x-secret\r\nx-admin: 1' } }, /line break/u],
    ['a name that is none', { crm: { 'a b': 'x-secret' } }, /not a valid header name/u],
    ['a header of the connection', { crm: { 'Mcp-Session-Id': 'x-secret' } }, /must not set Mcp-Session-Id/u],
    ['a value that is too long', { crm: { authorization: 'x-secret'.repeat(2000) } }, /more than 8192/u],
    [
      'a prototype',
      JSON.parse('{"__proto__":{"authorization":"x-secret"}}'),
      /"__proto__", which is not in the config/u,
    ],
  ])('%s', async (_, mcpHeaders, words) => {
    const { url, seen } = await startRecorder()
    const { server } = await start(url)
    const response = await server.post('/ag-ui/a', input('t', 'r1', { forwardedProps: { mcpHeaders } }))
    const { error } = (await response.json()) as { error: { message: string } }
    const said = error.message
    expect([response.status, said]).toEqual([400, expect.stringMatching(words)])
    expect(said).not.toContain('x-secret')
    expect([seen, await server.store.runs.list()]).toEqual([[], []])
  })
})

test('after a restart they are gone: a call fails and says so, unless the request that continues the run brings new ones', async () => {
  const { url, seen } = await startRecorder()
  const config = 'tools: [{ name: crm_whoami, approval: true }]'
  const first = await start(url, { config, keep: true })
  for (const thread of ['without', 'with']) {
    await (await first.server.post('/ag-ui/a', input(thread, 'r1', { forwardedProps: headersOf('ann') }))).text()
  }
  await first.server.close()
  const { server } = await start(url, { config, dir: first.server.dir })
  await server.runtime.recover()
  const answer = async (thread: string, forwardedProps: object) => {
    const [run] = await server.store.runs.list({ threadId: thread })
    const request = only(await entriesOf(server.store, run!.id), 'request')[0]!
    const resume = [{ interruptId: request.requestId, status: 'resolved', payload: { approved: true } }]
    const response = await server.post('/ag-ui/a', input(thread, 'r2', { resume, forwardedProps }))
    const body = await response.text()
    await until(server.store, run!.id, ({ type }) => type === 'run-end')
    return { body, result: only(await entriesOf(server.store, run!.id), 'tool-result')[0]! }
  }
  seen.length = 0
  const without = await answer('without', {})
  expect(without.body).toContain('"mcp-headers-missing"')
  expect(without.body).toMatch(/crm.* needs the headers that came with the request\. They are not stored/u)
  expect(seen).toEqual([])
  const renewed = await answer('with', headersOf('new-ann'))
  expect(renewed.result).toMatchObject({ isError: false, result: 'you are [redacted]' })
  expect(seen.find(({ method }) => method === 'tools/call')).toMatchObject({ authorization: tokenOf('new-ann') })
})

test('a run that waits keeps them in this process: approved by somebody else, it goes on with those of its own request', async () => {
  const { url, seen } = await startRecorder()
  const { server } = await start(url, { config: 'tools: [{ name: crm_whoami, approval: true }]' })
  await (await server.post('/ag-ui/a', input('t', 'r1', { forwardedProps: headersOf('ann') }))).text()
  const [run] = await server.store.runs.list()
  const [request] = only(await entriesOf(server.store, run!.id), 'request')
  await server.post(`/api/runs/${run!.id}/requests/${request!.requestId}`, { approved: true })
  await until(server.store, run!.id, ({ type }) => type === 'run-end')
  expect(seen.find(({ method }) => method === 'tools/call')).toMatchObject({ authorization: tokenOf('ann') })
})

test('over Socket.IO they are the run’s as well', async () => {
  const { url, seen } = await startRecorder(2)
  const { server } = await start(url)
  const client = await connectSocket(server.url)
  for (const user of ['ann', 'bob']) {
    const { ok } = await client.run({ threadId: user, runId: user, forwardedProps: headersOf(user) })
    expect(ok).toBe(true)
  }
  await Promise.all([client.ended('ann'), client.ended('bob')])
  const called = seen.filter(({ method }) => method === 'tools/call').map(({ authorization }) => authorization)
  expect(called.toSorted()).toEqual([tokenOf('ann'), tokenOf('bob')])
  const wrong = await client.run({ threadId: 'x', runId: 'x', forwardedProps: { mcpHeaders: { crmm: { a: 'b' } } } })
  expect(wrong).toMatchObject({ ok: false, error: { message: expect.stringContaining('crmm') } })
  const sent = JSON.stringify(client.sent)
  expect(sent).not.toContain('secret-token')
})
