/** What one client of Socket.IO may cost. */
import { connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createScriptedModel as createPlayer } from '../../src/models/scripted.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createAdmission, createCallerOf } from '../../src/server/http/admission.ts'
import { createLimits } from '../../src/store/limits.ts'
import { mostRuns } from '../../src/server/socket/session.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, judged, pick, runInput, textOf, user } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

const agents = { a: agent() }

test('starts from one address are limited over all its sockets, with the seconds to wait', async () => {
  const model = createPlayer(() => [text('Hi')])
  const limits = createLimits(() => 0)
  const admission = createAdmission({ limits, runsPerMinute: 2, callerOf: createCallerOf(undefined) })
  server = await startServer({ agents, scripts: { m: model } }, { admission })
  const options = { extraHeaders: { 'x-forwarded-for': '10.0.0.9' } }
  const [client, other] = [await connectSocket(server.url), await connectSocket(server.url, 'polling', options)]
  expect((await client.run({ runId: 'r1', threadId: '1' })).ok).toBe(true)
  expect((await other.run({ runId: 'r2', threadId: '2' })).ok).toBe(true)
  for (const socket of [client, other]) {
    const refused = await socket.run({ runId: 'r3', threadId: '3' })
    expect(refused).toEqual({
      ok: false,
      error: { code: 'rate-limited', message: expect.stringContaining('2 runs per minute'), retryAfter: 30 },
    })
  }
  // Only starts count, and what was started goes on.
  await client.ended('r1')
  expect(await client.send('watch_run', { runId: 'r1' })).toMatchObject({ ok: true })
})

test('a client follows a bounded number of runs', async () => {
  const gate = latch()
  server = await startServer({ agents, scripts: { m: createPlayer(() => [gate, text('Hi')]) } })
  const client = await connectSocket(server.url)
  const run = (n: number) => client.run({ threadId: `t${n}`, runId: `r${n}` })
  const acks = await Promise.all(Array.from({ length: mostRuns + 5 }, (_, n) => run(n)))
  expect(acks.filter(({ ok }) => ok)).toHaveLength(mostRuns)
  expect(acks.at(-1)).toMatchObject({ ok: false, error: { code: 'too-many-runs' } })
  gate.open()
  for (let n = 0; n < mostRuns; n++) await client.ended(`r${n}`)
  await expect.poll(() => server.sockets.counts()).toMatchObject({ runs: 0, starting: 0 })
  expect((await run(100)).ok).toBe(true)
})

test('a flood of results for calls of others reads nothing from the store, and the one that counts comes through', async () => {
  let reads = 0
  const model = createScriptedModel([
    [toolCall('c1', 'pick'), finish('tool-calls')],
    [text('Thanks.'), finish()],
  ])
  server = await startServer({
    agents,
    scripts: { m: model },
    wrapStore: (store) => ({
      ...store,
      log: {
        ...store.log,
        read: (...given) => (reads++, store.log.read(...given)),
        post: (...given) => (reads++, store.log.post(...given)),
      },
      runs: {
        ...store.runs,
        get: (id) => (reads++, store.runs.get(id)),
        view: (id) => (reads++, store.runs.view(id)),
        list: (query) => (reads++, store.runs.list(query)),
      },
    }),
  })
  const [owner, flooding] = [await connectSocket(server.url), await connectSocket(server.url)]
  const { millraceRunId } = await owner.run({ tools: [pick] })
  await owner.until(({ event }) => event.type === 'TOOL_CALL_END')
  await expect.poll(async () => (await server.store.runs.get(String(millraceRunId)))?.status).toBe('suspended')
  const before = reads
  const result = (i: number) => ({
    messageId: `m${i}`,
    toolCallId: i % 2 === 0 ? 'c1' : `call_${i}`,
    content: '"stolen"',
    role: 'tool',
    runId: i % 3 === 0 ? millraceRunId : undefined,
  })
  const acks = await Promise.all(Array.from({ length: 3000 }, (_, i) => flooding.send('tool_result', result(i))))
  expect(new Set(acks.map(({ error }) => error?.code))).toEqual(new Set(['unknown-call']))
  expect(reads).toBe(before)
  expect(server.sockets.counts()).toMatchObject({ runs: 1, waiting: 0 })
  const counted = { messageId: 'm', toolCallId: 'c1', content: '1', role: 'tool' }
  expect(await owner.send('tool_result', counted)).toMatchObject({ ok: true, duplicate: false })
  const events = await owner.ended('r')
  await judged(events)
  expect(events.filter(({ type }) => type === 'TOOL_CALL_RESULT')).toMatchObject([{ content: '1' }])
})

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
