/** Results of client tools over Socket.IO: never lost when valid, never somebody else's, always acknowledged. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel as createPlayer } from '../../src/models/scripted.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { z } from 'zod'
import { agent, entriesOf, only } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, judged, pick, textOf, transports, user, type SocketClient } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

const asking = (...ids: string[]) => [
  [...ids.map((id) => toolCall(id, 'pick')), finish('tool-calls')],
  [text('Thanks.'), finish()],
]
const result = (toolCallId: string, content = '"seven"') => ({
  messageId: `m-${toolCallId}`,
  toolCallId,
  content,
  role: 'tool',
})
const ended = (client: SocketClient, id = 'c1') =>
  client.until(({ event }) => event.type === 'TOOL_CALL_END' && event.toolCallId === id)
const results = async (run: string) =>
  only(await entriesOf(server.store, run), 'tool-result').map(({ toolCallId, result: value, isError }) => [
    toolCallId,
    value,
    isError,
  ])
const settled = { runs: 0, starting: 0, waiting: 0 }

async function start(...ids: string[]) {
  const model = createScriptedModel(asking(...ids))
  server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
  return model
}

describe.each(transports)('%s', (transport) => {
  test('a result that comes while the model still makes other calls waits for its request, and counts', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [toolCall('c1', 'pick'), gate, toolCall('c2', 'pick'), finish('tool-calls')],
      [text('Thanks.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const client = await connectSocket(server.url, transport)
    const { millraceRunId } = await client.run({ tools: [pick] })
    await ended(client)
    await gate.reached
    const early = client.send('tool_result', result('c1', 'not JSON'))
    const again = client.send('tool_result', result('c1', 'not JSON'))
    // Both have been read: messages of a connection arrive in order.
    expect((await client.send('nothing', {})).ok).toBe(false)
    gate.open()
    await ended(client, 'c2')
    const acks = await Promise.all([early, again])
    expect(acks.map(({ ok }) => ok)).toEqual([true, true])
    expect(acks.filter(({ duplicate }) => duplicate === true)).toHaveLength(1)
    expect(await client.send('tool_result', result('c2', '{"a":[1]}'))).toMatchObject({ ok: true, duplicate: false })
    const events = await client.ended('r')
    await judged(events)
    expect(await results(String(millraceRunId))).toEqual([
      ['c1', 'not JSON', false],
      ['c2', { a: [1] }, false],
    ])
    await expect.poll(() => server.sockets.counts()).toMatchObject(settled)
  })

  test('twice is a duplicate, another result a conflict, late is told what became of it, unknown is refused', async () => {
    const model = await start('c1')
    const client = await connectSocket(server.url, transport)
    await client.run({ tools: [pick] })
    await ended(client)
    expect(await client.send('tool_result', result('c9'))).toMatchObject({ ok: false, error: { code: 'unknown-call' } })
    expect(await client.send('tool_result', result('c1'))).toEqual({ ok: true, toolCallId: 'c1', duplicate: false })
    expect(await client.send('tool_result', result('c1'))).toEqual({ ok: true, toolCallId: 'c1', duplicate: true })
    expect(await client.send('tool_result', result('c1', '"eight"'))).toMatchObject({
      ok: false,
      error: { code: 'answer-conflict' },
    })
    const events = await client.ended('r')
    expect(events.filter(({ type }) => type === 'TOOL_CALL_RESULT')).toHaveLength(1)
    expect(await client.send('tool_result', result('c1'))).toMatchObject({ ok: true, duplicate: true })
    expect(model.calls).toHaveLength(2)
  })

  test('a tool that failed: the model is told its error', async () => {
    await start('c1')
    const client = await connectSocket(server.url, transport)
    const { millraceRunId } = await client.run({ tools: [pick] })
    await ended(client)
    await client.send('tool_result', { ...result('c1', ''), error: 'The user closed the dialog.' })
    await judged(await client.ended('r'))
    expect(await results(String(millraceRunId))).toEqual([['c1', 'The user closed the dialog.', true]])
  })
})

test('another socket cannot answer a call that it does not follow, whatever it knows of it', async () => {
  await start('c1')
  const [owner, other] = [await connectSocket(server.url), await connectSocket(server.url)]
  const { millraceRunId } = await owner.run({ tools: [pick] })
  await ended(owner)
  for (const extra of [{}, { runId: 'r' }, { runId: millraceRunId }]) {
    const refused = await other.send('tool_result', { ...result('c1', '"stolen"'), ...extra })
    expect(refused).toMatchObject({ ok: false, error: { code: 'unknown-call' } })
  }
  expect(await owner.send('tool_result', result('c1'))).toMatchObject({ ok: true, duplicate: false })
  await owner.ended('r')
  expect(await results(String(millraceRunId))).toEqual([['c1', 'seven', false]])
})

test('two runs on one socket whose calls have the same id: each gets the result that names it', async () => {
  const model = createPlayer((call) => {
    const prompt = call.options.prompt
    return prompt.at(-1)!.role === 'tool' ? [text('Thanks.')] : [toolCall('c1', 'pick')]
  })
  server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
  const client = await connectSocket(server.url)
  const ids: string[] = []
  for (const name of ['one', 'two']) {
    ids.push(String((await client.run({ threadId: name, runId: name, tools: [pick] }))['millraceRunId']))
    await client.until(({ event, with: { runId } }) => event.type === 'TOOL_CALL_END' && runId === name)
  }
  const refused = await client.send('tool_result', result('c1'))
  expect(refused).toMatchObject({
    ok: false,
    error: { code: 'ambiguous-call', message: expect.stringContaining('runId') },
  })
  expect(await client.send('tool_result', { ...result('c1', '2'), runId: 'two' })).toMatchObject({ ok: true })
  await client.ended('two')
  // Only one is open now.
  expect(await client.send('tool_result', result('c1', '1'))).toMatchObject({ ok: true, duplicate: false })
  await client.ended('one')
  expect([await results(ids[0]!), await results(ids[1]!)]).toEqual([[['c1', 1, false]], [['c1', 2, false]]])
})

test('a result for a tool of the server is refused', async () => {
  const gate = latch()
  const model = createScriptedModel([
    [toolCall('c1', 'slow'), finish('tool-calls')],
    [text('Done.'), finish()],
  ])
  const slow = {
    description: 'Slow',
    parameters: z.object({}),
    execute: async () => (gate.arrive(), await gate.opened, 'mine'),
  }
  server = await startServer({ agents: { a: agent('tools: [slow]') }, scripts: { m: model }, tools: { slow } })
  const client = await connectSocket(server.url)
  const { millraceRunId } = await client.run({})
  await gate.reached
  const early = client.send('tool_result', result('c1', '"stolen"'))
  expect((await client.send('nothing', {})).ok).toBe(false)
  gate.open()
  await client.ended('r')
  expect(await early).toMatchObject({ ok: false, error: { code: 'unknown-call' } })
  expect(await client.send('tool_result', result('c1'))).toMatchObject({ ok: false, error: { code: 'unknown-call' } })
  expect(await results(String(millraceRunId))).toEqual([['c1', 'mine', false]])
})

test('a client tool that nobody answers in time: the model gets an error, the run goes on', async () => {
  const model = createScriptedModel(asking('c1'))
  server = await startServer({ agents: { a: agent() }, scripts: { m: model }, requestDeadlineMs: 60 })
  const client = await connectSocket(server.url)
  const { millraceRunId } = await client.run({ tools: [pick] })
  const events = await client.ended('r')
  await judged(events)
  expect(textOf(events)).toBe('Thanks.')
  expect(await results(String(millraceRunId))).toEqual([['c1', expect.stringContaining('not'), true]])
  expect(await client.send('tool_result', result('c1'))).toMatchObject({
    ok: false,
    error: { code: 'answer-conflict' },
  })
})

test('the client leaves while its tool is pending: the call waits, and a new connection answers it', async () => {
  const model = createScriptedModel(asking('c1'))
  server = await startServer({ agents: { a: agent('', 'onDisconnect: cancel') }, scripts: { m: model } })
  const client = await connectSocket(server.url)
  const run = String((await client.run({ tools: [pick] }))['millraceRunId'])
  await ended(client)
  await expect.poll(async () => (await server.store.runs.get(run))?.status).toBe('suspended')
  client.close()
  const { with: last } = client.sent.at(-1)!
  await expect.poll(() => server.sockets.counts()).toEqual({ sockets: 0, polling: 0, ...settled })
  const later = await connectSocket(server.url)
  const watched = later.send('watch_run', { runId: run, after: last, protocolVersion: '1.0' })
  // Sent at once, not after the acknowledgement.
  const answered = later.send('tool_result', result('c1'))
  expect(await watched).toEqual({ ok: true, runId: 'r', threadId: 't', millraceRunId: run })
  expect(await answered).toMatchObject({ ok: true, duplicate: false })
  const rest = await later.ended('r')
  await judged([...client.of('r'), ...rest])
  expect(textOf(rest)).toBe('Thanks.')
  await expect.poll(() => server.sockets.counts()).toMatchObject(settled)
})

test('the client leaves while its tool is pending and nobody comes: the request is closed at its deadline', async () => {
  const model = createScriptedModel(asking('c1'))
  server = await startServer({ agents: { a: agent() }, scripts: { m: model }, requestDeadlineMs: 60 })
  const client = await connectSocket(server.url)
  const run = String((await client.run({ tools: [pick] }))['millraceRunId'])
  await ended(client)
  client.close()
  await expect.poll(async () => (await server.store.runs.get(run))?.status).toBe('completed')
  expect(await results(run)).toMatchObject([['c1', expect.any(String), true]])
  await expect.poll(() => server.sockets.counts()).toEqual({ sockets: 0, polling: 0, ...settled })
})

test('the client leaves while its model answers: the model is aborted, and nothing is left', async () => {
  const gate = latch()
  const model = createScriptedModel([[text('Hel'), gate, text('lo'), finish()]])
  server = await startServer({ agents: { a: agent('', 'onDisconnect: cancel') }, scripts: { m: model } })
  const client = await connectSocket(server.url)
  const run = String((await client.run({}))['millraceRunId'])
  await gate.reached
  client.close()
  await expect.poll(async () => (await server.store.runs.get(run))?.status).toBe('aborted')
  expect(model.calls[0]!.aborted).toBe(true)
  await expect.poll(() => server.sockets.counts()).toEqual({ sockets: 0, polling: 0, ...settled })
  gate.open()
})

test('a call that needs an approval: no result counts before it, and a denial is told to the model', async () => {
  let ran = 0
  const wipe = { description: 'Wipes', parameters: z.object({}), approval: true, execute: () => ++ran }
  const model = createScriptedModel([
    [toolCall('c1', 'wipe'), finish('tool-calls')],
    [text('Not wiped.'), finish()],
  ])
  server = await startServer({ agents: { a: agent('tools: [wipe]') }, scripts: { m: model }, tools: { wipe } })
  const client = await connectSocket(server.url)
  const run = String((await client.run({ runId: 'r1' }))['millraceRunId'])
  const first = await client.ended('r1')
  await judged(first)
  const { outcome } = first.at(-1) as unknown as {
    outcome: { type: string; interrupts: { id: string; toolCallId: string }[] }
  }
  expect(outcome).toMatchObject({ type: 'interrupt', interrupts: [{ toolCallId: 'c1' }] })
  expect(await client.send('tool_result', result('c1', '"done"'))).toMatchObject({
    ok: false,
    error: { code: 'not-approved' },
  })
  const resume = [
    { interruptId: outcome.interrupts[0]!.id, status: 'resolved', payload: { approved: false, reason: 'no' } },
  ]
  expect(await client.run({ runId: 'r2', messages: [], resume })).toMatchObject({
    ok: true,
    runId: 'r2',
    millraceRunId: run,
  })
  const rest = await client.ended('r2')
  await judged([...first, ...rest])
  expect(textOf(rest)).toBe('Not wiped.')
  expect(ran).toBe(0)
  expect(JSON.stringify(model.calls[1]!.options.prompt.at(-1))).toContain('no')
})

test('a result may come with the next run_agent instead, as over HTTP: the run goes on under the new id', async () => {
  const model = await start('c1')
  const client = await connectSocket(server.url)
  const run = String((await client.run({ runId: 'r1', tools: [pick] }))['millraceRunId'])
  await ended(client)
  client.close()
  const later = await connectSocket(server.url)
  const said = {
    id: `${run}:1`,
    role: 'assistant',
    toolCalls: [{ id: 'c1', type: 'function', function: { name: 'pick', arguments: '{}' } }],
  }
  const messages = [user('Hi'), said, { id: 'm', role: 'tool', toolCallId: 'c1', content: '"seven"' }]
  expect(await later.run({ runId: 'r2', tools: [pick], messages })).toMatchObject({
    ok: true,
    runId: 'r2',
    millraceRunId: run,
  })
  const rest = await later.ended('r2')
  await judged(rest)
  expect(textOf(rest)).toBe('Thanks.')
  expect(model.calls).toHaveLength(2)
})
