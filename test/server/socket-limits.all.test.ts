/** What one client of Socket.IO may cost. */
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, runInput, textOf, user } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

/** A WebSocket client by hand, which can stop reading. */
function rawSocket(port: number) {
  const socket = connect(port, '127.0.0.1')
  const frame = (packet: string) => {
    const bytes = Buffer.from(packet)
    const head =
      bytes.length < 126
        ? Buffer.from([0x81, 0x80 | bytes.length])
        : Buffer.from([0x81, 0xfe, bytes.length >> 8, bytes.length & 0xff])
    return Buffer.concat([head, Buffer.alloc(4), bytes])
  }
  socket.write(
    'GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  return { socket, send: (packet: string) => socket.write(frame(packet)) }
}

describe('Socket.IO: limits', () => {
  test('a client that does not read costs one batch: nothing more is read for it until it does', async () => {
    const delta = 'x'.repeat(1000)
    const count = 15_000
    let served = 0
    const model = createScriptedModel([[text(...Array.from({ length: count }, () => delta)), finish()]])
    server = await startServer({
      agents: { a: agent('', 'onDisconnect: detach') },
      limits: { answerChars: 2 * count * delta.length },
      scripts: { m: model },
      wrapStore: (store) => ({
        ...store,
        log: {
          ...store.log,
          read: (run, options) => {
            const read = store.log.read(run, options)
            // Only readers that follow.
            if (options?.signal === undefined) return read
            return (async function* () {
              for await (const batch of read) {
                served += batch.length
                yield batch
              }
            })()
          },
        },
      }),
    })
    const { socket, send } = rawSocket(Number(new URL(server.url).port))
    await new Promise((done) => socket.once('data', done))
    send('40{}')
    await new Promise((done) => socket.once('data', done))
    socket.pause()
    send(`42${JSON.stringify(['message', { type: 'run_agent', data: runInput({ messages: [user('Go')] }) }])}`)
    const ended = async () => (await server.store.runs.list({ threadId: 't' }))[0]?.status
    await expect.poll(ended, { timeout: 30_000 }).toBe('completed')
    // The kernel took some of the 15 MB; the rest waits in the log.
    expect(served).toBeLessThan(0.8 * count)
    expect(served).toBeGreaterThan(0)
    const before = served
    // Another client is not held up by it.
    const other = await connectSocket(server.url)
    await other.send('watch_run', { runId: (await server.store.runs.list({ threadId: 't' }))[0]!.id })
    expect(textOf(await other.ended('r'))).toHaveLength(count * delta.length)
    expect(server.sockets.counts()).toMatchObject({ sockets: 2, runs: 1 })
    // Once it reads, it gets all of it.
    let tail = ''
    const told = new Promise<void>((done) => {
      socket.on('data', (chunk: Buffer) => {
        tail += chunk.toString('latin1')
        if (tail.includes('RUN_FINISHED')) done()
        tail = tail.slice(-100)
      })
    })
    socket.resume()
    await told
    expect(served).toBeGreaterThan(before)
    socket.destroy()
    await expect.poll(() => server.sockets.counts()).toMatchObject({ sockets: 1, runs: 0 })
  })
})
