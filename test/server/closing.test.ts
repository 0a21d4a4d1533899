/** What a server that shuts down tells those who wait for an answer that has not begun: 503 in JSON, so that they try again. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const chat = { agentId: 'a', messages }
const openai = { model: 'a', messages }
const asked: [string, object, string][] = [
  ['/v1/chat/completions', openai, 'stream: true'],
  ['/v1/chat/completions', { ...openai, stream: true }, 'stream: true'],
  ['/v1/completions', { model: 'a', prompt: 'Hi' }, 'stream: true'],
  ['/api/v1/chat/completions', openai, 'stream: false'],
  ['/api/chat', chat, 'stream: false'],
  ['/api/chat', chat, 'stream: true'],
  ['/api/beddel/chat', chat, 'stream: false'],
  ['/api/beddel/chat', chat, 'stream: true'],
]

describe('closing the server', () => {
  test.each(asked.flatMap((each) => [[...each, ''] as const, [...each, 'recover: true'] as const]))(
    '%s %j, %s %s: a server that shuts down answers 503 in JSON',
    async (path, body, streams, recover) => {
      const gate = latch()
      server = await startServer({
        agents: { a: agent('', recover).replace('stream: true', streams) },
        scripts: { m: createScriptedModel([[gate, text('late'), finish()]]) },
      })
      const answered = server.post(path, body)
      await gate.reached
      await server.runtime.close(0)
      const response = await answered
      expect(response.status).toBe(503)
      expect(response.headers.get('content-type')).toContain('application/json')
      expect(response.headers.get('x-millrace-run-id')).toMatch(/^run_/u)
      // OpenAI's clients may try it again.
      expect(response.headers.get('x-should-retry')).toBeNull()
      const { error } = (await response.json()) as { error: Record<string, unknown> }
      expect(error).toMatchObject({
        code: recover === '' ? 'interrupted' : 'closing',
        type: 'server_error',
        message: expect.stringMatching(/^The server is shutting down/u),
      })
      expect('param' in error).toBe(path.includes('/v1/'))

      // Neither does what comes later reach a store that is closed: no 500.
      for (const later of [await server.post(path, body), await fetch(`${server.url}/api/runs`)]) {
        expect(later.status).toBe(503)
        await later.body?.cancel()
      }
      expect(server.reported.filter((error) => !/shutting down|store is closed/u.test(String(error)))).toEqual([])
    },
  )
})
