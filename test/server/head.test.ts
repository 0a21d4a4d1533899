/** HEAD at a stream: its head, and nothing stays open for it. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel } from '../../src/models/scripted.ts'
import { latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

describe('HEAD requests', () => {
  test('HEAD at the stream of a chat leaves no client behind: when the last one has left, the run stops', async () => {
    const gate = latch()
    const server = await startServer({
      agents: { a: agent('', 'onDisconnect: cancel') },
      scripts: { m: createScriptedModel(() => [text('Hello'), gate, text('!')]) },
    })
    onTestFinished(() => server.close())
    const leave = new AbortController()
    const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
    const chat = await fetch(`${server.url}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agentId: 'a', id: 't', messages }),
      signal: leave.signal,
    })
    expect(chat.status).toBe(200)
    const head = await fetch(`${server.url}/api/chat/t/stream`, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type')?.split(';')[0]]).toEqual([200, 'text/event-stream'])
    leave.abort()
    const run = chat.headers.get('x-millrace-run-id')!
    await expect.poll(async () => (await server.store.runs.get(run))?.status).toBe('aborted')
    gate.open()
  })
})
