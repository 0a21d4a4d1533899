/** What ends a call of MCP before its run has ended, and what does not; and the same call sent again. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { McpOptions } from '../../src/server/mcp/settings.ts'
import { agent, until } from '../support/engine.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'
import { askModern, connectMcp, messagesIn, modernBody, modernHeaders, postModern, withTasks } from '../support/mcp.ts'

let server: TestServer
afterEach(() => server.close())

async function serve(script: ScriptStep[][], top = '', mcp: McpOptions = {}, config = ''): Promise<void> {
  const scripts = { m: createScriptedModel(script) }
  // Without `execute` it is a tool of the client.
  const tools = { pick: { description: 'Picks a colour', parameters: { type: 'object' } as never } }
  server = await startServer({ agents: { desk: agent(config, top) }, scripts, tools }, { mcp, keepAliveMs: 40 })
}

const call = { name: 'desk', arguments: { message: 'Hi' } }
const newest = async () => (await server.store.runs.list())[0]!
const statusIs = (status: string) => vi.waitFor(async () => expect((await newest()).status).toBe(status))

/** Sends a call whose response goes on, and leaves it. */
async function callAndLeave(options: Parameters<typeof postModern>[3] = {}): Promise<void> {
  const leave = new AbortController()
  const response = await postModern(server, 'tools/call', call, { ...options, signal: leave.signal })
  const { id } = await newest()
  await until(server.store, id, ({ type }) => type === 'text-delta')
  leave.abort()
  await response.text().catch(() => undefined)
}

describe('the end of the connection', () => {
  test('stops a modern call without a task', async () => {
    await serve([[text('a'), latch(), finish()]])
    await callAndLeave()
    await statusIs('aborted')
  })

  test('stops a modern call that could have become a task', async () => {
    await serve([[text('a'), latch(), finish()]], '', { taskAfter: '1h' })
    await callAndLeave({ capabilities: withTasks })
    await statusIs('aborted')
  })

  test('stops nothing where the file says onDisconnect: detach', async () => {
    for (const capabilities of [{}, withTasks]) {
      const gate = latch()
      await serve([[text('a'), gate, finish()]], 'onDisconnect: detach', { taskAfter: '1h' })
      await callAndLeave({ capabilities })
      gate.open()
      await statusIs('completed')
      await server.close()
    }
    await serve([])
  })

  test('stops no legacy call at once: its client may come back', async () => {
    const gate = latch()
    await serve([[text('a'), gate, finish()]])
    const leave = new AbortController()
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream, application/json' }
    const response = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      signal: leave.signal,
    })
    await until(server.store, (await newest()).id, ({ type }) => type === 'text-delta')
    leave.abort()
    await response.text().catch(() => undefined)
    gate.open()
    await statusIs('completed')
  })
})

describe('notifications/cancelled', () => {
  test('stops the call of a legacy client, whichever instance it reaches', async () => {
    await serve([[text('a'), latch(), finish()]])
    const client = await connectMcp(server, 'legacy')
    const leave = new AbortController()
    const result = client.callTool(call, { signal: leave.signal }).catch((error: unknown) => error)
    await vi.waitFor(async () => expect(await server.store.runs.list()).toHaveLength(1))
    leave.abort('no longer needed')
    await statusIs('aborted')
    await result
  })

  test('stops no call of another session with the same id', async () => {
    const gate = latch()
    await serve([[text('a'), gate, finish()]])
    const [one, other] = [await connectMcp(server, 'legacy'), await connectMcp(server, 'legacy')]
    const result = one.callTool(call)
    await vi.waitFor(async () => expect(await server.store.runs.list()).toHaveLength(1))
    for (const requestId of [0, 1, 2, 3])
      await other.notification({ method: 'notifications/cancelled', params: { requestId } })
    gate.open()
    expect((await result).content).toEqual([{ type: 'text', text: 'a' }])
  })
})

describe('a legacy client that counts its requests anew', () => {
  test('gets a run for each call', async () => {
    await serve([
      [text('one'), finish()],
      [text('two'), finish()],
    ])
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const send = (body: object, more = {}) =>
      fetch(`${server.url}/mcp`, {
        method: 'POST',
        headers: { ...headers, ...more },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
      })
    const begun = await send({ method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {} } })
    const session = { 'mcp-session-id': begun.headers.get('mcp-session-id')! }
    for (const answer of ['one', 'two']) {
      const response = await send({ method: 'tools/call', params: call }, session)
      expect(await response.json()).toMatchObject({ id: 1, result: { content: [{ type: 'text', text: answer }] } })
    }
    expect(await server.store.runs.list()).toHaveLength(2)
  })
})

describe('the same call sent again', () => {
  const twice = [
    [text('one'), finish()],
    [text('two'), finish()],
  ]

  test.for([
    ['Idempotency-Key', { headers: { 'idempotency-key': 'k1' } }],
    ['the id of the call in Claude Code', { meta: { 'claudecode/toolUseId': 'toolu_1' } }],
  ] as const)('with %s joins its run', async ([, options]) => {
    await serve(twice)
    const answers = await Promise.all([1, 2, 3].map(() => askModern(server, 'tools/call', call, options)))
    for (const { result } of answers) expect(result!['content']).toEqual([{ type: 'text', text: 'one' }])
    expect(await server.store.runs.list()).toHaveLength(1)
    const other = { ...call, arguments: { message: 'Ho' } }
    const { result } = await askModern(server, 'tools/call', other, options)
    expect(result!['content']).toEqual([{ type: 'text', text: 'two' }])
  })

  test('without a key is a new run', async () => {
    await serve(twice)
    await askModern(server, 'tools/call', call)
    await askModern(server, 'tools/call', call)
    expect(await server.store.runs.list()).toHaveLength(2)
  })

  test('after a stop is a new run', async () => {
    await serve([
      [text('one'), latch(), finish()],
      [text('two'), finish()],
    ])
    const options = { headers: { 'idempotency-key': 'k1' } }
    await callAndLeave(options)
    await statusIs('aborted')
    for (let i = 0; i < 2; i++) {
      const { result } = await askModern(server, 'tools/call', call, options)
      expect(result!['content']).toEqual([{ type: 'text', text: 'two' }])
    }
    expect(await server.store.runs.list()).toHaveLength(2)
  })
})

describe('a response', () => {
  test('to a client without a token has comments, and no progress', async () => {
    const gate = latch()
    await serve([[text('a'), gate, finish()]])
    const body = readBody(await postModern(server, 'tools/call', call))
    await body.until(': keep-alive\n\n')
    gate.open()
    const whole = await body.rest()
    expect(whole).not.toContain('notifications/progress')
    expect(whole).toContain('"resultType":"complete"')
  })

  test('to a client that accepts JSON only is one JSON, with space before it while the run goes on', async () => {
    const gate = latch()
    await serve([[text('a'), gate, finish()]])
    const body = modernBody('tools/call', call, { meta: { progressToken: 1 } })
    const response = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: { ...modernHeaders(body), accept: 'application/json' },
      body: JSON.stringify(body),
    })
    expect(response.headers.get('content-type')).toBe('application/json')
    const reading = readBody(response)
    await reading.until(' ')
    gate.open()
    expect(JSON.parse(await reading.rest())).toMatchObject({
      id: 1,
      result: { content: [{ type: 'text', text: 'a' }] },
    })
  })

  test('has the exact text of the answer in the progress', async () => {
    const words = ['α ', '😀', ' line\n', 'end']
    const gates = words.map(() => latch())
    await serve([[...words.flatMap((word, i) => [text(word), gates[i]!]), finish()]])
    const response = await postModern(server, 'tools/call', call, { meta: { progressToken: 'p' } })
    const reading = readBody(response)
    let said = ''
    for (const [i, word] of words.entries()) {
      said += word
      await reading.until(`"millrace/delta":${JSON.stringify(word)}`)
      gates[i]!.open()
    }
    const whole = await reading.rest()
    const deltas = whole
      .split('\n\n')
      .filter((frame) => frame.includes('millrace/delta'))
      .map(
        (frame) =>
          JSON.parse(frame.slice(frame.indexOf('{'))) as {
            params: { _meta: Record<string, string>; progressToken: string }
          },
      )
    expect(deltas.map(({ params }) => params._meta['millrace/delta']).join('')).toBe(said)
    expect(new Set(deltas.map(({ params }) => params.progressToken))).toEqual(new Set(['p']))
  })
})

describe('a client tool', () => {
  const asks = [
    [...toolCall('c1', 'pick', {}), finish('tool-calls')],
    [text('Done'), finish()],
  ]
  const config = 'tools: [pick]'

  test('is unavailable at once: nobody listens', async () => {
    await serve(asks, '', {}, config)
    expect((await askModern(server, 'tools/call', call)).result!['content']).toEqual([{ type: 'text', text: 'Done' }])
    const entries: unknown[] = []
    for await (const batch of server.store.log.read((await newest()).id)) entries.push(...batch)
    expect(entries).toContainEqual(expect.objectContaining({ type: 'tool-result', outcome: 'unavailable' }))
    expect(entries).not.toContainEqual(expect.objectContaining({ type: 'request' }))
  })

  test('waits for other protocols with clientTools: wait', async () => {
    await serve(asks, '', { clientTools: 'wait' }, config)
    const answer = postModern(server, 'tools/call', call).then(messagesIn)
    await statusIs('suspended')
    const { id } = await newest()
    const { requests } = (await server.store.runs.view(id))!.view as { requests: { requestId: string }[] }
    await server.runtime.answer(id, requests[0]!.requestId, { kind: 'tool', output: 'red' })
    expect((await answer).at(-1)!.result!['content']).toEqual([{ type: 'text', text: 'Done' }])
  })
})

describe('a thread', () => {
  test('goes on where the agent shows it', async () => {
    await serve(
      [
        [text('one'), finish()],
        [text('two'), finish()],
      ],
      'metadata: { mcp: { threads: true } }',
    )
    const first = (await askModern(server, 'tools/call', call)).result!
    const thread = (first['_meta'] as Record<string, string>)['millrace/thread']!
    expect(JSON.stringify(first['content'])).toContain(thread)
    const again = { ...call, arguments: { message: 'And?', thread } }
    const second = (await askModern(server, 'tools/call', again)).result!
    expect(second['_meta']).toMatchObject({ 'millrace/thread': thread })
    const [last] = await server.store.runs.list({ threadId: thread })
    expect(last!.previousRunId).toBe((first['_meta'] as Record<string, string>)['millrace/run'])
  })
})
