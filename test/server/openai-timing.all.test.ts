/** What leaves the OpenAI routes when: every wait is a latch that the test opens. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, latch } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'
import { chat, role, heldAfterOne } from './openai-timing.ts'

let server: TestServer
describe('OpenAI: timing', () => {
  afterEach(() => server.close())

  test('a model that has not accepted within a second: status and role frame all the same', async () => {
    const gate = latch()
    const model = createScriptedModel([heldAfterOne(latch())])
    const slow = {
      ...model,
      doStream: async (options: Parameters<typeof model.doStream>[0]) => (await gate.opened, model.doStream(options)),
    }
    server = await startServer({ agents: { a: agent() }, scripts: { m: slow } })
    const began = performance.now()
    const response = await server.post(chat, { model: 'a', messages, stream: true })
    const body = readBody(response)
    await body.until(role)
    const took = performance.now() - began
    expect(took).toBeGreaterThan(900)
    expect(took).toBeLessThan(2500)
    expect(response.status).toBe(200)
    gate.open()
    await body.until('"one"')
    await body.leave()
  })
})
