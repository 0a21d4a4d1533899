import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel } from '../../src/models/scripted.ts'
import { text } from '../../src/models/testing/scripted-model.ts'
import { createRuntime } from '../../src/project/create-runtime.ts'
import { createHandler } from '../../src/server/handler.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent } from '../support/engine.ts'

describe('responses of real servers', () => {
  test('a server that is not ours gets a real Response for a streamed answer', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    const models = { providers: { script: () => createScriptedModel(() => [text('Hello')]) } }
    const runtime = createRuntime({ agents: { a: agent('') }, store, models, environment: {} })
    const handler = createHandler({ runtime, authorize: () => true })
    const body = JSON.stringify({ agentId: 'a', messages: [{ role: 'user', content: 'Hi' }] })
    const headers = { 'content-type': 'application/json', accept: 'text/plain' }
    const response = await handler(new Request('http://test/api/chat', { method: 'POST', headers, body }))
    // Node's own getter throws for anything else.
    expect(Reflect.get(Response.prototype, 'status', response)).toBe(200)
    expect(await response.text()).toBe('Hello')
  })
})
