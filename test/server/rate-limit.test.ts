/** `server.rateLimit`: starts from one address, over every route that starts a run. */
import { expect, onTestFinished, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'

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

test.each(starts)(
  '%s: over the limit it is a 429 with Retry-After, whatever headers say of the address',
  async (path, body) => {
    const url = await served({ rateLimit: { runsPerMinute: 1 } })
    expect((await post(url, ...starts[2]!)).status).toBe(202)
    const made: Record<string, string>[] = [
      {},
      { 'x-forwarded-for': '10.0.0.9', forwarded: 'for=10.0.0.9', 'x-real-ip': '10.0.0.9' },
    ]
    for (const headers of made) {
      const refused = await post(url, path, body, headers)
      expect(refused.status).toBe(429)
      const wait = Number(refused.headers.get('retry-after'))
      expect(wait).toBeGreaterThan(50)
      expect(wait).toBeLessThanOrEqual(60)
      const { error } = (await refused.json()) as { error: { message: string; code: string } }
      expect(error.code).toMatch(/^rate[-_]limit/u)
      expect(error.message).toMatch(/^Too many runs were started from 127\.0\.0\.1\. The limit is 1 run per minute\./u)
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
