/** Socket.IO with the official client: what each message does, over both transports. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, judged, pick, textOf, transports, user } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

describe.each(transports)('%s', (transport) => {
  test('a run: acknowledged with its ids, then its events in order', async () => {
    server = await startServer({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[text('Hel', 'lo'), finish()]]) },
    })
    const client = await connectSocket(server.url, transport)
    expect(client.agents).toEqual([{ agents: [{ id: 'a', name: 'a' }], defaultAgent: 'a' }])
    const ack = await client.run({})
    expect(ack).toEqual({ ok: true, runId: 'r', threadId: 't', millraceRunId: expect.stringMatching(/^run_/u) })
    const events = await client.ended('r')
    // Whoever reads the events knows the run already.
    expect(client.sentBefore.get(ack)).toBe(0)
    expect(textOf(events)).toBe('Hello')
    expect(events[0]).toMatchObject({
      type: 'RUN_STARTED',
      threadId: 't',
      runId: 'r',
      metadata: { millrace: { runId: ack['millraceRunId'] } },
    })
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' }, result: 'Hello' })
    await judged(events)
    await expect.poll(() => server.sockets.counts()).toMatchObject({ sockets: 1, runs: 0, starting: 0, waiting: 0 })
  })

  test('a client tool: the run goes on in the same stream with what the client returned', async () => {
    const model = createScriptedModel([
      [text('Which? '), toolCall('c1', 'pick'), finish('tool-calls')],
      [text('You picked 7.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const client = await connectSocket(server.url, transport)
    await client.run({ tools: [pick] })
    await client.until(({ event }) => event.type === 'TOOL_CALL_END')
    const result = { messageId: 'm1', toolCallId: 'c1', content: '{"number":7}', role: 'tool' }
    expect(await client.send('tool_result', result)).toEqual({ ok: true, toolCallId: 'c1', duplicate: false })
    const events = await client.ended('r')
    const types = events.map(({ type }) => type)
    expect(types.filter((type) => type === 'RUN_STARTED' || type === 'RUN_FINISHED')).toHaveLength(2)
    expect(types.indexOf('TOOL_CALL_RESULT')).toBeGreaterThan(types.indexOf('TOOL_CALL_END'))
    expect(textOf(events)).toBe('Which? You picked 7.')
    expect(events.filter(({ type }) => type === 'TOOL_CALL_RESULT')).toMatchObject([
      { toolCallId: 'c1', content: '{"number":7}' },
    ])
    const told = model.calls[1]!.options.prompt.at(-1)!
    expect(told).toMatchObject({
      role: 'tool',
      content: [{ toolCallId: 'c1', output: { type: 'json', value: { number: 7 } } }],
    })
    await judged(events)
  })

  test('deltas come as the model makes them, and an emoji that they cut survives', async () => {
    const gates = [latch(), latch(), latch()]
    const [first, second] = ['😀'.slice(0, 1), '😀'.slice(1)]
    const model = createScriptedModel([
      [text('a'), gates[0]!, text('b', first), gates[1]!, text(second, '👍'), gates[2]!, text('c'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const client = await connectSocket(server.url, transport)
    await client.run({})
    const shown = (part: string) => client.until(() => textOf(client.of('r')).includes(part))
    await shown('a')
    await gates[0]!.reached
    expect(textOf(client.of('r'))).toBe('a')
    gates[0]!.open()
    await shown('b')
    await gates[1]!.reached
    gates[1]!.open()
    await shown('👍')
    await gates[2]!.reached
    expect(textOf(client.of('r')).at(-1)).not.toBe('c')
    gates[2]!.open()
    expect(textOf(await client.ended('r'))).toContain('👍c')
  })

  test('two turns of a thread: the client sends only what is new, or all that it has, and nothing is doubled', async () => {
    const model = createScriptedModel([1, 2, 3].map((n) => [text(`Answer ${n}`), finish()]))
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const client = await connectSocket(server.url, transport)
    await client.run({ runId: 'r1', messages: [user('One')] })
    const first = await client.ended('r1')
    await client.run({ runId: 'r2', messages: [user('Two')] })
    await client.ended('r2')
    const said = first.find((event) => event.type === 'TEXT_MESSAGE_START')!
    const copy = [
      user('One'),
      { id: said.type === 'TEXT_MESSAGE_START' && said.messageId, role: 'assistant', content: 'Answer 1' },
    ]
    await client.run({
      runId: 'r3',
      messages: [...copy, user('Two'), { id: 'x', role: 'assistant', content: 'Answer 2' }, user('Three')],
    })
    const events = await client.ended('r3')
    const told = model.calls.map(({ options: { prompt } }) => prompt.map(({ role }) => role[0]).join(''))
    expect(told).toEqual(['u', 'uau', 'uauau'])
    const snapshot = events.find((event) => event.type === 'MESSAGES_SNAPSHOT')
    expect(snapshot).toMatchObject({
      messages: [
        { role: 'user' },
        { role: 'assistant' },
        { role: 'user' },
        { role: 'assistant' },
        { role: 'user', content: 'Three' },
      ],
    })
  })
})
