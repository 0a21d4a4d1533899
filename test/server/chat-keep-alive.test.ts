import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const messages = [{ role: 'user', content: 'Hi' }]

describe('chat: keep-alive', () => {
  test('silence on an SSE stream is filled with comments, which are no frames', async () => {
    const gate = latch()
    const model = createScriptedModel([[text('first'), gate, text('second'), finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } }, { keepAliveMs: 20 })
    const ui = readBody(await server.post('/api/chat', { agentId: 'a', messages }))
    await ui.until('first')
    await ui.until(': keep-alive\n\n: keep-alive\n\n: keep-alive\n\n')
    gate.open()
    const frames = framesOf(await ui.rest())
    expect(frames.at(-1)).toBe('done')
    expect(frames.filter((frame) => frame !== 'done' && frame['type'] === 'text-delta')).toMatchObject([
      { delta: 'first' },
      { delta: 'second' },
    ])
  })

  test('the log as SSE is kept alive too; plain text has nothing harmless to send and sends nothing', async () => {
    const gate = latch()
    const model = createScriptedModel([[text('first'), gate, text(' second'), finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } }, { keepAliveMs: 20 })
    const response = await server.post('/api/beddel/chat', { agentId: 'a', messages })
    const plain = readBody(response)
    await plain.until('first')
    const id = response.headers.get('x-millrace-run-id')
    const events = await fetch(`${server.url}/api/runs/${id}/events`, { headers: { accept: 'text/event-stream' } })
    const log = readBody(events)
    await log.until('"delta":"first"')
    await log.until(': keep-alive\n\n: keep-alive\n\n')
    gate.open()
    expect(await plain.rest()).toBe('first second')
    expect(await log.rest()).toContain('run-end')
  })

  test('a stream that is busy gets no comments', async () => {
    const model = createScriptedModel([[text(...Array.from({ length: 200 }, (_, i) => `${i} `)), finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const body = await (await server.post('/api/chat', { agentId: 'a', messages })).text()
    expect(body).not.toContain(': keep-alive')
  })
})
