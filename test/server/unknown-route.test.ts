/** Paths and agents that are not there: what was probably meant, and what there is. */
import { afterEach, describe, expect, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { agent, createEngine, type Engine } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

function handlerOf(options: object = { authorize: () => true }) {
  engine = createEngine({ agents: { assistant: agent('', 'metadata: { aliases: [helper] }'), poet: agent() } })
  const handler = createHandler({ runtime: engine.runtime, ...options })
  return async (path: string, method = 'GET', body?: object) => {
    const init = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const response = await handler(new Request(`http://x${path}`, { method, ...init }))
    const { error } = (await response.json()) as { error: { message: string; code: string; type: string } }
    return { status: response.status, ...error }
  }
}

describe('unknown routes', () => {
  test.each([
    ['/api/run', '/api/runs'],
    ['/api/runs/', '/api/runs'],
    ['/runs', '/api/runs'],
    ['/v1/api/runs', '/api/runs'],
    ['/API/Runs', '/api/runs'],
    ['/api/chats', '/api/chat'],
    ['/chat', '/api/chat'],
    ['/beddel/chat', '/api/beddel/chat'],
    ['/api/runs/run_1/event', '/api/runs/run_1/events'],
    ['/api/run/run_1/stop', '/api/runs/run_1/stop'],
    ['/api/agent/poet', '/api/agents/poet'],
    ['/heath', '/health'],
  ])('%s: did you mean %s?', async (path, meant) => {
    const { status, code, type, message } = await handlerOf()(path)
    expect([status, code, type]).toEqual([404, 'not-found', 'invalid_request_error'])
    expect(message).toContain(`There is nothing at ${path} (did you mean ${meant}?). Routes: /, /health, /api/agents,`)
  })

  test.each(['/nosuch', '/api', '/a/b/c/d/e/f', `/${'x'.repeat(5000)}`, '/%00', '/<script>'])(
    '%s is near to nothing: the routes are listed, shortly',
    async (path) => {
      const { status, message } = await handlerOf()(path)
      expect(status).toBe(404)
      expect(message).not.toContain('did you mean')
      expect(message).toContain('Routes: /, /health,')
      expect(message.length).toBeLessThan(1000)
    },
  )

  test('a route that is not there is not named; one behind the key is not told without it', async () => {
    expect((await handlerOf({})('/api/run')).message).not.toContain('/api/runs')
    await engine?.close()
    expect(await handlerOf({ apiKey: 'a-long-secret-key' })('/api/run')).toMatchObject({
      status: 401,
      message: 'Send the header Authorization: Bearer <key>.',
    })
  })

  test('an unknown agent is told with what was probably meant and those there are, on every route', async () => {
    const ask = handlerOf()
    const asked = [
      await ask('/api/agents/asistant'),
      await ask('/api/chat', 'POST', { agentId: 'asistant', messages: [] }),
      await ask('/api/beddel/chat', 'POST', { agentId: 'asistant', messages: [] }),
      await ask('/api/runs', 'POST', { agentId: 'asistant' }),
    ]
    for (const told of asked) {
      expect(told).toMatchObject({ status: 404, code: 'unknown-agent' })
      expect(told.message).toBe(
        'There is no agent "asistant" (did you mean "assistant"?). Known agents: assistant, poet.',
      )
    }
    expect((await ask('/api/agents/helpr')).message).toContain('(did you mean "helper"?)')
  })

  test.each(['/v1/complete', '/v1/embeddings'])('%s: says which protocol is spoken under /v1', async (path) => {
    const { status, message } = await handlerOf()(path, 'POST', { model: 'assistant' })
    expect([status, message]).toEqual([404, expect.stringContaining('speaks OpenAI’s Responses and Chat Completions')])
  })
})
