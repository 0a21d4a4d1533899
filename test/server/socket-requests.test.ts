/** `request`: the HTTP routes over Socket.IO, for a client that needs one connection for everything. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, type Ack } from '../support/socket.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

async function start(options: Partial<EngineOptions> = {}, handler: Parameters<typeof startServer>[1] = {}) {
  return (server = await startServer({ agents: { a: agent() }, ...options }, handler))
}

interface Chunk {
  id: string
  text?: string
  end?: true
}

const json = (ack: Ack) => JSON.parse(ack['body'] as string) as Record<string, unknown>

describe('Socket.IO: requests', () => {
  test('a request is answered as over HTTP: a start, a state, an error with its code, a deletion', async () => {
    const { url, post } = await start({ scripts: { m: createScriptedModel([[text('Hello'), finish()]]) } })
    const { send } = await connectSocket(url)
    const body = { agentId: 'a', input: { messages: [{ role: 'user', content: 'Hi' }] } }
    const headers = { 'idempotency-key': 'k1' }
    const begun = await send('request', { id: '1', method: 'POST', path: '/api/runs', body, headers })
    const { id } = json(begun) as { id: string }
    expect(begun).toMatchObject({ ok: true, id: '1', status: 202, headers: { 'x-millrace-run-id': id } })
    // The same key over HTTP is the same run.
    expect(await (await post('/api/runs', body, { headers })).json()).toMatchObject({ id })
    await until(server!.store, id, ({ type }) => type === 'run-end')
    expect(json(await send('request', { id: '2', path: `/api/runs/${id}` }))).toMatchObject({
      status: 'completed',
      text: 'Hello',
    })
    const missing = await send('request', { id: '3', path: '/api/runs/run_x' })
    expect([missing['status'], json(missing)['error']]).toEqual([404, expect.objectContaining({ code: 'unknown-run' })])
    expect(await send('request', { id: '4', method: 'DELETE', path: `/api/runs/${id}` })).toMatchObject({ status: 200 })
  })

  test('mistakes name the place and the cure; only routes under /api are there', async () => {
    const { url } = await start()
    const { send } = await connectSocket(url)
    const fault = async (data: object) => (await send('request', { id: 'x', ...data })).error?.message
    expect(await fault({ path: '/health' })).toBe('path must be a path that begins with /api/.')
    expect(await fault({ path: '/api/../metrics' })).toContain('begins with /api/')
    expect(await fault({ path: '/api/runs', method: 'PATCH' })).toBe('method must be one of GET, POST, DELETE.')
    expect(await fault({ path: '/api/runs', headers: { autorization: 'x' } })).toContain(
      'headers.autorization must be text, of accept',
    )
    expect(await fault({ path: '/api/runs', headers: { authorization: 'x' } })).toContain('headers.authorization')
    expect(await fault({ path: '/api/runs', id: 7 })).toBe('id must be a string of 1 to 256 characters.')
    for (const method of ['GET', 'DELETE'] as const)
      expect(await fault({ path: '/api/runs', method, body: {} })).toBe(
        `body must be absent: a ${method} request has none.`,
      )
    for (const headers of [7, 'accept', ['accept']])
      expect(await fault({ path: '/api/runs', headers })).toBe('headers must be an object.')
    for (const value of ['a\nb: c', 'a\u0000', '☃'])
      expect(await fault({ path: '/api/runs', headers: { accept: value } })).toContain(
        'headers.accept must be one line',
      )
    // None of it is a fault of the server.
    expect(server!.reported).toEqual([])
  })

  test('a token that no header can have is no key, and on a server without one it is nothing', async () => {
    const { url } = await start()
    const { send } = await connectSocket(url, 'websocket', { auth: { token: 'a\r\nx-forwarded-for: ☃' } })
    expect(await send('request', { id: '1', path: '/api/runs' })).toMatchObject({ status: 200 })
  })

  test('the key of the connection is that of its requests; a foreign page is refused as over HTTP', async () => {
    const { url } = await start({}, { apiKey: 'k-1' })
    const { send } = await connectSocket(url, 'websocket', { auth: { token: 'k-1' } })
    expect(await send('request', { id: '1', path: '/api/runs' })).toMatchObject({ status: 200 })
  })

  test('an answer that streams comes in chunks as they are written, and is not read further than the client takes it', async () => {
    const gates = Array.from({ length: 20 }, () => latch())
    const m = createScriptedModel([[...gates.flatMap((gate, i) => [text(`word${i}`), gate]), finish()]])
    const { url, store, sockets } = await start({ scripts: { m } })
    const { send, socket } = await connectSocket(url)
    const chunks: Chunk[] = []
    const untaken: (() => void)[] = []
    let takes = false
    const ended = Promise.withResolvers<void>()
    socket.on('chunk', (chunk: Chunk, taken?: () => void) => {
      chunks.push(chunk)
      if (takes) taken?.()
      else if (taken !== undefined) untaken.push(taken)
      if (chunk.end) ended.resolve()
    })
    const body = { agentId: 'a', input: { messages: [{ role: 'user', content: 'Hi' }] } }
    const run = json(await send('request', { id: '1', method: 'POST', path: '/api/runs', body }))['id'] as string
    const follow = { id: '2', path: `/api/runs/${run}/events`, headers: { accept: 'text/event-stream' } }
    expect(await send('request', follow)).toMatchObject({ status: 200, streams: true })
    expect((await send('request', follow)).error?.message).toBe('id must be new for each request.')
    const said = () => chunks.map(({ text: piece = '' }) => piece).join('')
    for (const [i, gate] of gates.entries()) {
      await until(store, run, (entry) => entry.type === 'text-delta' && entry.delta === `word${i}`)
      // The first words are there while the model is held.
      if (i < 3) await expect.poll(said).toContain(`word${i}`)
      gate.open()
    }
    await until(store, run, ({ type }) => type === 'run-end')
    await send('request', { id: '3', path: '/api/agents' })
    expect([chunks.length, said().includes('run-end'), sockets.counts().runs]).toEqual([8, false, 1])
    takes = true
    for (const taken of untaken) taken()
    await ended.promise
    const seqs = Array.from(said().matchAll(/^id: (\d+)$/gmu), ([, seq]) => Number(seq))
    expect(seqs).toEqual(seqs.map((_, i) => i + 1))
    expect([said().includes('run-end'), sockets.counts().runs]).toEqual([true, 0])
  })

  test('who cancels, or leaves, is read nothing more for; the run goes on', async () => {
    const gate = latch()
    const { url, sockets, store } = await start({ scripts: { m: createScriptedModel([[text('a'), gate, finish()]]) } })
    const { send, close } = await connectSocket(url)
    const begun = await send('request', {
      id: '1',
      method: 'POST',
      path: '/api/runs',
      body: { agentId: 'a', input: { messages: [{ role: 'user', content: 'Hi' }] } },
    })
    const id = json(begun)['id'] as string
    const follow = (name: string) =>
      send('request', { id: name, path: `/api/runs/${id}/events`, headers: { accept: 'text/event-stream' } })
    await follow('2')
    await follow('3')
    expect(sockets.counts().runs).toBe(2)
    expect(await send('cancel_request', { id: '2' })).toMatchObject({ ok: true })
    expect(await send('cancel_request', { id: 'none' })).toMatchObject({ ok: true })
    expect(sockets.counts().runs).toBe(1)
    close()
    await expect.poll(() => sockets.counts().runs).toBe(0)
    gate.open()
    await until(store, id, ({ type }) => type === 'run-end')
    expect((await store.runs.get(id))!.status).toBe('completed')
  })
})
