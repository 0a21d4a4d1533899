/** Open streams of a caller whose access ends: the protocol's own error frame, and no byte of what is recorded after it. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/scripted.ts'
import { agent, until } from '../support/engine.ts'
import { createTestAccess, headersFor } from '../support/callers.ts'
import { startServer } from '../support/server.ts'
import { connectSocket } from '../support/socket.ts'

async function start() {
  const gate = latch()
  const access = createTestAccess()
  const m = createScriptedModel([[text('first '), gate, text('second'), finish()]])
  const server = await startServer({ agents: { a: agent('', 'onDisconnect: detach') }, scripts: { m } }, { access })
  onTestFinished(async () => {
    gate.open()
    await server.close()
  })
  return { gate, access, server }
}

const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
const agUi = {
  threadId: 't',
  runId: 'r',
  messages: [{ id: 'm1', role: 'user', content: 'Hi' }],
  tools: [],
  context: [],
  state: null,
  forwardedProps: {},
}

async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, words: string): Promise<string> {
  const decoder = new TextDecoder()
  let body = ''
  while (!body.includes(words)) {
    const { done, value } = await reader.read()
    if (done) break
    body += decoder.decode(value, { stream: true })
  }
  return body
}

async function rest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  return readUntil(reader, '\u0000never')
}

describe('a stream whose reader loses its access', () => {
  test.each([
    ['UI', '/api/chat', { agentId: 'a', id: 't', messages }, '"type":"error"'],
    ['OpenAI', '/v1/chat/completions', { model: 'a', stream: true, messages: agUi.messages }, '"error":{'],
    ['AG-UI', '/ag-ui/a', agUi, '"type":"RUN_ERROR"'],
  ])('%s: its error frame, and nothing behind it', async (_name, path, body, frame) => {
    const { gate, access, server } = await start()
    const response = await server.post(path, body, { headers: headersFor('alice') })
    const reader = response.body!.getReader()
    expect(await readUntil(reader, 'first')).toContain('first')
    access.expire('alice')
    const last = await rest(reader)
    expect(last).toContain(frame)
    expect(last).toContain('Your access has ended.')
    gate.open()
    expect(last).not.toContain('second')
    // The run goes on: what ended is the reading.
    const [row] = await server.store.runs.list({ owner: 'alice', tenant: 'acme' })
    await until(server.store, row!.id, ({ type }) => type === 'run-end')
    expect((await server.store.runs.get(row!.id))?.status).toBe('completed')
  })

  test.each(['/api/events', '/api/live?rows=1'])('%s ends', async (path) => {
    const { gate, access, server } = await start()
    const response = await fetch(server.url + path, { headers: headersFor('alice') })
    const reader = response.body!.getReader()
    await reader.read()
    access.expire('alice')
    gate.open()
    const run = await server.runtime.start('a', {}, { user: { id: 'alice', tenant: 'acme' } })
    await run.result
    expect(await rest(reader)).not.toContain(run.id)
  })

  test('Socket.IO: RUN_ERROR, then the connection closes; its token connects no more', async () => {
    const { access, server } = await start()
    const token = headersFor('alice')['authorization']!.replace('Bearer ', '')
    const client = await connectSocket(server.url, 'websocket', { auth: { token } })
    const closed = new Promise<string>((done) => client.socket.once('disconnect', done))
    await client.send('run_agent', { ...agUi, forwardedProps: { agent: 'a' } })
    await client.until(({ event }) => event.type === 'TEXT_MESSAGE_CONTENT')
    access.expire('alice')
    await client.until(({ event }) => event.type === 'RUN_ERROR')
    await closed
    await expect(connectSocket(server.url, 'websocket', { auth: { token } })).rejects.toMatchObject({
      data: { code: 'unauthorized' },
    })
  })

  test('Socket.IO: with a fresh token of the same user its streams and requests go on', async () => {
    const { gate, access, server } = await start()
    const client = await connectSocket(server.url, 'websocket', { auth: { token: 'alice' } })
    await client.send('run_agent', { ...agUi, forwardedProps: { agent: 'a' } })
    await client.until(({ event }) => event.type === 'TEXT_MESSAGE_CONTENT')
    for (const token of ['bob', 'alice-of-beta', 'admin']) {
      expect(await client.send('renew', { token })).toMatchObject({ ok: false, error: { code: 'forbidden' } })
    }
    expect(await client.send('renew', { token: 'nobody' })).toMatchObject({ error: { code: 'unauthorized' } })
    expect(await client.send('renew', { token: 'alice-2' })).toMatchObject({ ok: true })
    access.expire('alice')
    gate.open()
    await client.ended('r')
    expect(client.of('r').map(({ type }) => type)).not.toContain('RUN_ERROR')
    expect(await client.send('request', { id: 'q', path: '/api/runs' })).toMatchObject({ status: 200 })
  })
})
