/** `server.rateLimit`: starts from one address, over every route that starts a run. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

async function served(value: object, apiKey?: string): Promise<string> {
  const dir = folder({
    'a.yaml': 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]\n',
    'millrace.config.mjs': `export default ${JSON.stringify({ record: { data: 'none' }, server: { port: 0, ...value } })}\n`,
  })
  const server = await serve({ dir, env: {}, ...(apiKey !== undefined && { apiKey }) })
  onTestFinished(() => server.close())
  return server.url
}

const messages = [{ role: 'user', content: 'Hi' }]
const starts: [string, object][] = [
  ['/api/chat', { agentId: 'a', messages }],
  ['/api/beddel/chat', { agentId: 'a', messages }],
  ['/api/runs', { agentId: 'a', input: { messages } }],
  ['/v1/chat/completions', { model: 'a', messages }],
  ['/v1/completions', { model: 'a', prompt: 'Hi' }],
  ['/api/v1/chat/completions', { model: 'a', messages }],
  ['/ag-ui/a', { threadId: 't', runId: 'r', messages: [] }],
]

function post(url: string, path: string, body: object, headers: Record<string, string> = {}) {
  return fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

describe('rate limit', () => {
  test.each(starts)(
    '%s: over the limit it is a 429 with Retry-After, whatever headers say of the address',
    async (path, body) => {
      const url = await served({ rateLimit: { runsPerMinute: 1 } })
      expect((await post(url, ...starts[2]!)).status).toBe(202)
      const made: Record<string, string>[] = [{}, { 'true-client-ip': '10.0.0.9', 'cf-connecting-ip': '10.0.0.9' }]
      for (const headers of made) {
        const refused = await post(url, path, body, headers)
        expect(refused.status).toBe(429)
        const wait = Number(refused.headers.get('retry-after'))
        expect(wait).toBeGreaterThan(50)
        expect(wait).toBeLessThanOrEqual(60)
        const { error } = (await refused.json()) as { error: { message: string; code: string } }
        expect(error.code).toMatch(/^rate[-_]limit/u)
        expect(error.message).toMatch(
          /^Too many runs were started from 127\.0\.0\.1\. The limit is 1 run per minute\./u,
        )
      }
      // What starts no run is not limited.
      for (const other of ['/api/agents', '/v1/models', '/api/runs', '/health']) {
        expect((await fetch(url + other)).status).toBe(200)
      }
    },
  )

  test('without the setting nothing is limited; a request without the key does not count', async () => {
    const open = await served({})
    for (let i = 0; i < 30; i++) expect((await post(open, '/api/runs', starts[2]![1])).status).toBe(202)
    const closed = await served({ rateLimit: { runsPerMinute: 1 } }, 'a-long-secret-key')
    for (let i = 0; i < 3; i++) expect((await post(closed, '/api/runs', starts[2]![1])).status).toBe(401)
    const key = { authorization: 'Bearer a-long-secret-key' }
    expect((await post(closed, '/api/runs', starts[2]![1], key)).status).toBe(202)
    expect((await post(closed, '/api/runs', starts[2]![1], key)).status).toBe(429)
  })

  test('a client that leaves before it is let in is counted by its address', async () => {
    const asked = Promise.withResolvers<Request>()
    const mayEnter = Promise.withResolvers<boolean>()
    const counted: string[] = []
    const seen = Promise.withResolvers<void>()
    const server = await startServer(
      { agents: { a: agent('') }, scripts: {} },
      {
        authorize(request) {
          asked.resolve(request)
          return mayEnter.promise
        },
        admission: {
          async start({ address }) {
            counted.push(address)
            return undefined
          },
          async stream({ address }) {
            counted.push(address)
            seen.resolve()
            return { leave: () => undefined }
          },
        },
      },
    )
    onTestFinished(() => server.close())
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.write('POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}')
    const { signal } = await asked.promise
    socket.resetAndDestroy()
    await once(signal, 'abort')
    mayEnter.resolve(true)
    await seen.promise
    expect(counted).toEqual(['127.0.0.1', '127.0.0.1'])
  })
})
