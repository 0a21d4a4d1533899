/** What leaves the server before the model has said much: status, headers, the first frame, the first token. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const messages = [{ role: 'user', content: 'Hi' }]

describe('chat: first token', () => {
  test.each(['/api/chat', '/api/beddel/chat'])(
    '%s: a model that does not even accept: the status waits for it, but never longer than a second',
    async (path) => {
      const gate = latch()
      const model = createScriptedModel([[gate, text('at last'), finish()]])
      server = await startServer({ agents: { assistant: agent() }, scripts: { m: model } })
      const asked = performance.now()
      const response = await server.post(path, { agentId: 'assistant', messages })
      const waited = performance.now() - asked
      expect(response.status).toBe(200)
      expect(waited).toBeGreaterThan(900)
      expect(waited).toBeLessThan(2500)
      const body = readBody(response)
      if (path === '/api/chat') expect(await body.until('\n\n')).toContain('"type":"start"')
      expect(body.text).not.toContain('at last')
      gate.open()
      expect(await body.rest()).toContain('at last')
    },
  )
})
