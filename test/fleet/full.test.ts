/** A server whose Redis is full: what would write is a 503 `store-failed` in the form of its protocol, the rest answers, and `/health` says it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serve, type Served } from '../../src/server/serve.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { endedRun, entryOf } from './fleet.ts'

const asks =
  'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [{ name: calculator, approval: true }] } }]'
const messages = [{ id: 'u', role: 'user', content: 'Hi', parts: [{ type: 'text', text: 'Hi' }] }]
const openAiMessages = [{ role: 'user', content: 'Hi' }]
const chat = { messages, agentId: 'asks' }
const agUi = { threadId: 'ag', runId: 'ag-run', messages: [{ id: 'u', role: 'user', content: 'Hi' }] }

/** Requests by their route, with a body. `:ended` and `:waits` are runs, `:request` is what the latter waits for. */
const refused: [request: string, body?: unknown][] = [
  ['POST /api/chat', { id: 'new', ...chat }],
  ['POST /api/beddel/chat', chat],
  ['POST /api/runs', { agentId: 'asks', input: { messages: openAiMessages } }],
  ['POST /v1/chat/completions', { model: 'asks', messages: openAiMessages }],
  ['POST /v1/chat/completions', { model: 'asks', messages: openAiMessages, stream: true }],
  ['POST /v1/completions', { model: 'asks', prompt: 'Hi' }],
  ['POST /ag-ui/asks', agUi],
  ['POST /api/runs/:waits/stop', {}],
  ['POST /api/runs/:waits/requests/:request', { kind: 'approval', approved: true }],
  ['POST /api/runs/:ended/fork', { at: 1 }],
  ['POST /api/runs/import', 'export'],
]
/** What makes room, reads, or needs no store. */
const works: [request: string, body?: unknown][] = [
  ...[
    '/api/runs',
    '/api/runs/:ended',
    '/api/runs/:ended/events',
    '/api/runs/:ended/export',
    '/api/runs/:ended/outline',
    '/api/runs/:ended/replay?speed=max&format=ui',
    '/api/runs/:waits/requests',
    '/api/threads',
    '/api/stats',
    '/api/agents',
    '/api/server',
    '/v1/models',
    '/metrics',
    '/health/live',
    '/',
  ].map((path): [string] => [`GET ${path}`]),
  ['POST /api/compact', { olderThan: '0s' }],
  ['POST /api/agents/check', { text: asks }],
  ['DELETE /api/runs/:ended'],
]

describeRedis('a server whose Redis is full', (redis) => {
  let root: string
  let upstream: Upstream
  let server: Served
  let exported: string
  const names = new Map<string, string>()
  const limit = (bytes: string) => redis().command('CONFIG', 'SET', 'maxmemory', bytes)
  const health = async () => {
    const response = await fetch(`${server.url}/health`)
    return [response.status, await response.json()]
  }
  const ask = async (request: string, body?: unknown) => {
    const [method, path] = request.split(' ') as [string, string]
    const isText = body === 'export'
    const content = isText ? exported : JSON.stringify(body)
    const headers = { 'content-type': isText ? 'application/x-ndjson' : 'application/json' }
    const url = server.url + path.replaceAll(/:(?:ended|waits|request)/gu, (name) => names.get(name)!)
    const response = await fetch(url, { method, ...(body !== undefined && { body: content, headers }) })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'millrace-full-'))
    let isCalled = false
    upstream = await startUpstream((reply) => {
      const calls = isCalled
      isCalled = true
      if (calls) reply.call('c1', 'calculator', { expression: '1' })
      else reply.say('Yes')
      reply.finish(calls ? 'tool_calls' : 'stop')
    })
    const settings = { models: { endpoints: [{ name: 'up', baseURL: upstream.baseURL }] } }
    writeFileSync(join(root, 'asks.yaml'), asks)
    writeFileSync(join(root, 'millrace.config.mjs'), `export default ${JSON.stringify(settings)}`)
    const store = `${redis().url}?prefix=${freshPrefix()}`
    server = await serve({ dir: root, data: join(root, 'data'), store, port: 0, env: {}, report: () => undefined })
    const start = async () => JSON.parse((await ask('POST /api/runs', refused[2]![1])).text).id as string
    const shared = server.project.runtime.store
    names.set(':ended', await start())
    await endedRun(shared, names.get(':ended')!)
    names.set(':waits', await start())
    const waiting = await entryOf(shared, names.get(':waits')!, ({ type }) => type === 'suspend')
    names.set(':request', (waiting as { requests?: string[] }).requests![0]!)
    exported = (await ask('GET /api/runs/:ended/export')).text.replaceAll(names.get(':ended')!, 'other')
    await limit('1mb')
  }, 30_000)
  afterAll(async () => {
    await limit('0')
    await server?.close()
    await upstream?.close()
    rmSync(root, { recursive: true, force: true })
  })

  test.each(refused)('%s is refused', async (request, body) => {
    const { status, text } = await ask(request, body)
    expect([status, text]).toEqual([503, expect.stringContaining('store-failed')])
    expect(text).not.toContain('OOM')
  })

  test('/health says so', async () => {
    expect(await health()).toMatchObject([
      503,
      { status: 'degraded', reasons: ['Runs cannot be stored: the memory of the store is full.'] },
    ])
  })

  test.each(works)('%s works', async (request, body) => {
    const { status, text } = await ask(request, body)
    expect([status, text]).toEqual([200, expect.not.stringContaining('store-failed')])
  })

  test('with room it recovers, and the run that waits is answered', async () => {
    await limit('0')
    await expect.poll(health, { timeout: 30_000 }).toMatchObject([200, { status: 'ok' }])
    expect((await ask('POST /api/runs/:waits/requests/:request', { kind: 'approval', approved: false })).status).toBe(
      200,
    )
  })
})
