/** `abort_run` over Socket.IO: one end, the model's signal fired, nothing after it; and runs of one socket are isolated. */
import { afterEach, describe, expect, test } from 'vitest'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { createScriptedModel as createPlayer } from '../../src/models/scripted.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, judged, pick, textOf, transports, user, type SocketClient } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

const settled = { runs: 0, starting: 0, waiting: 0 }
const [start, delta] = toolCall('c1', 'pick', { a: 'long enough' }) as [ScriptStep, ScriptStep]

/** What the model does, and when the client stops it. */
const moments: [
  string,
  (gate: ReturnType<typeof latch>) => ScriptStep[],
  (client: SocketClient) => Promise<unknown>,
][] = [
  ['before the first token', (gate) => [gate, text('never'), finish()], async () => undefined],
  [
    'in the middle of a text',
    (gate) => [text('Hel', 'lo'), gate, text('never'), finish()],
    (client) => client.until(({ event }) => event.type === 'TEXT_MESSAGE_CONTENT'),
  ],
  [
    'in the middle of arguments',
    (gate) => [start, delta, gate, finish()],
    (client) => client.until(({ event }) => event.type === 'TOOL_CALL_ARGS'),
  ],
]

describe.each(transports)('%s', (transport) => {
  test.each(moments)('%s', async (_, script, begun) => {
    const gate = latch()
    const model = createScriptedModel([script(gate)])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const client = await connectSocket(server.url, transport)
    await client.run({ tools: [pick] })
    await gate.reached
    await begun(client)
    expect(await client.send('abort_run', { runId: 'r' })).toEqual({ ok: true, runId: 'r' })
    const events = await client.ended('r')
    await judged(events)
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'r', outcome: { type: 'cancelled' } })
    expect(model.calls[0]!.aborted).toBe(true)
    gate.open()
    // Again, and by our id: harmless.
    expect(await client.send('abort_run', { runId: 'r' })).toEqual({ ok: true, runId: 'r' })
    await expect.poll(() => server.sockets.counts()).toMatchObject(settled)
    expect(client.of('r')).toEqual(events)
    expect(JSON.stringify(events)).not.toContain('never')
  })

  test('while a client tool is pending: the call is closed, and its late result is told so', async () => {
    const model = createScriptedModel([[toolCall('c1', 'pick'), finish('tool-calls')]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const client = await connectSocket(server.url, transport)
    const { millraceRunId } = await client.run({ tools: [pick] })
    await client.until(({ event }) => event.type === 'TOOL_CALL_END')
    await expect.poll(async () => (await server.store.runs.get(String(millraceRunId)))?.status).toBe('suspended')
    expect(await client.send('abort_run', { runId: millraceRunId })).toEqual({ ok: true, runId: millraceRunId })
    const events = await client.ended('r')
    await judged(events)
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
    const late = await client.send('tool_result', { messageId: 'm', toolCallId: 'c1', content: '1', role: 'tool' })
    expect(late).toMatchObject({ ok: false, error: { code: 'answer-conflict' } })
    await expect.poll(() => server.sockets.counts()).toMatchObject(settled)
    expect(client.of('r')).toEqual(events)
  })
})

test('sent right behind run_agent, before it is acknowledged: the run is stopped', async () => {
  const gate = latch()
  const model = createScriptedModel([[gate, text('never'), finish()]])
  server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
  const client = await connectSocket(server.url)
  const acks = await Promise.all([client.run({}), client.send('abort_run', { runId: 'r' })])
  expect(acks.map(({ ok }) => ok)).toEqual([true, true])
  expect((await client.ended('r')).at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
  gate.open()
})

test('a client older than 1.0 is told with RUN_ERROR cancelled', async () => {
  const gate = latch()
  server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel([[text('a'), gate]]) } })
  const client = await connectSocket(server.url)
  await client.run({ protocolVersion: undefined })
  await gate.reached
  await client.send('abort_run', { runId: 'r' })
  const events = await client.ended('r')
  await judged(events, true)
  expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'cancelled' })
  gate.open()
})

test('several runs of several agents on one socket: each has its own events, and stopping one leaves the others', async () => {
  const gates = new Map(['a', 'b', 'c'].map((name) => [name, latch()]))
  const model = (name: string) => createPlayer(() => [text(`${name}1`), gates.get(name)!, text(`${name}2`)])
  const agents = Object.fromEntries(
    [...gates.keys()].map((name) => [name, agent().replace('script:m', `script:${name}`)]),
  )
  const scripts = Object.fromEntries([...gates.keys()].map((name) => [name, model(name)]))
  server = await startServer({ agents, scripts })
  const client = await connectSocket(server.url)
  const run = (name: string) =>
    client.run({ threadId: name, runId: `r-${name}`, forwardedProps: { agent: name }, messages: [user(name)] })
  await Promise.all([...gates.keys()].map(run))
  await Promise.all(Array.from(gates.values(), ({ reached }) => reached))
  expect(await client.send('abort_run', { runId: 'r-b' })).toMatchObject({ ok: true })
  expect((await client.ended('r-b')).at(-1)).toMatchObject({ outcome: { type: 'cancelled' } })
  expect(server.sockets.counts().runs).toBe(2)
  for (const gate of gates.values()) gate.open()
  for (const name of ['a', 'c']) {
    const events = await client.ended(`r-${name}`)
    await judged(events)
    expect(textOf(events)).toBe(`${name}1${name}2`)
    expect(events.at(-1)).toMatchObject({ outcome: { type: 'success' } })
  }
  expect(textOf(client.of('r-b'))).toBe('b1')
  for (const { with: sentWith } of client.sent) expect(`r-${sentWith.threadId}`).toBe(sentWith.runId)
})

test('runs are not named by the ids of other clients: those need not be unique', async () => {
  const gate = latch()
  server = await startServer({
    agents: { a: agent() },
    scripts: { m: createScriptedModel([[text('a'), gate, finish()]]) },
  })
  const [client, other] = [await connectSocket(server.url), await connectSocket(server.url)]
  const { millraceRunId } = await client.run({})
  await gate.reached
  expect(await other.send('abort_run', { runId: 'r' })).toMatchObject({ ok: false, error: { code: 'unknown-run' } })
  expect(await other.send('watch_run', { runId: 'r' })).toMatchObject({ ok: false, error: { code: 'unknown-run' } })
  // By our id, as over HTTP.
  expect(await other.send('abort_run', { runId: millraceRunId })).toMatchObject({ ok: true })
  expect((await client.ended('r')).at(-1)).toMatchObject({ outcome: { type: 'cancelled' } })
  gate.open()
})

test.each([
  ['abort_run', 'emit "message" with {type: \'abort_run\', data}'],
  ['run_agent', 'emit "message" with {type: \'run_agent\', data}'],
  ['stop', 'emit "message" with {type, data}'],
])('a bare event %s is acknowledged with the message that is meant', async (event, cure) => {
  server = await startServer({ agents: { a: agent() } })
  const { socket } = await connectSocket(server.url)
  const answer: unknown = await socket.emitWithAck(event, { runId: 'r' })
  expect(answer).toEqual({ ok: false, error: { code: 'bad-input', message: expect.stringContaining(cure) as string } })
})
