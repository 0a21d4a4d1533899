/** Servers that ask a person: the question is a request of the run, every protocol answers it once, and the call goes on with the reply. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { EntryOf } from '../../src/part/entry.ts'
import { createJournal, type HttpChild } from '../../src/tools/mcp/testing/everything.ts'
import { sdkOverStdio, startSdk } from '../../src/tools/mcp/testing/sdk.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { agent, entriesOf, only, until, type EngineOptions } from '../support/engine.ts'
import { framesOf, startServer, type TestServer } from '../support/server.ts'

type Era = 'modern' | 'legacy'

/** Calls the tool, then says what it returned. */
const scripted = (tool: string) =>
  createTold((prompt) =>
    resultsIn(prompt).size === 0
      ? [toolCall('c1', tool, {}), finish('tool-calls')]
      : [text(JSON.stringify([...resultsIn(prompt).values()])), finish()],
  )

async function serve(
  era: Era,
  {
    tool = 's_ask',
    over = 'http',
    elicitation = true,
    ...more
  }: { tool?: string; over?: 'http' | 'stdio'; elicitation?: boolean } & Partial<EngineOptions> = {},
) {
  const journal = createJournal()
  onTestFinished(() => journal.remove())
  let child: HttpChild | undefined
  if (over === 'http') {
    child = await startSdk(journal, era)
    onTestFinished(child.kill)
  }
  const s = child === undefined ? sdkOverStdio(journal, era) : { url: child.url }
  const options: EngineOptions = {
    agents: {
      a: agent(`tools: [${tool}]`),
      step: 'workflow: [{ id: answer, type: mcp-tool, config: { server: s, tool: ask, input: {} } }]',
    },
    scripts: { m: scripted(tool) },
    mcpServers: { s: { ...s, elicitation } },
    ...more,
  }
  const server = await startServer(options)
  onTestFinished(() => server.close())
  const calls = () => journal.lines().filter((line) => line.startsWith('ask '))
  return { server, journal, calls, options }
}

const messages = [{ role: 'user', content: 'Hi' }]

async function start(server: TestServer, agentId = 'a'): Promise<string> {
  const { id } = (await (await server.post('/api/runs', { agentId, input: { messages } })).json()) as { id: string }
  return id
}

/** The question, when it is open: with a legacy server the run does not wait. */
async function asked(server: TestServer, run: string, after = 0): Promise<Asked> {
  return (await until(server.store, run, ({ type, seq }) => type === 'request' && seq > after)) as Asked
}
type Asked = Extract<EntryOf<'request'>, { kind: 'input' }>

const answer = async (server: TestServer, run: string, { requestId }: { requestId: string }, body: object) => {
  const response = await server.post(`/api/runs/${run}/requests/${requestId}`, body)
  return response.status
}

async function ended(server: TestServer, run: string) {
  await until(server.store, run, ({ type }) => type === 'run-end')
  const entries = await entriesOf(server.store, run)
  return { entries, result: only(entries, 'tool-result').at(-1), end: only(entries, 'run-end')[0]! }
}

describe.for<Era>(['modern', 'legacy'])('a %s server', (era) => {
  test('its question is a request with message, schema, server and tool; an answer that fits is accepted', async () => {
    const { server, calls } = await serve(era)
    const run = await start(server)
    const request = await asked(server, run)
    expect(request).toMatchObject({
      kind: 'input',
      reason: 'mcp-elicitation',
      // Without the character that turns the direction of text.
      message: 'The MCP server "s" asks: Which colour?',
      schema: { type: 'object', required: ['colour'] },
      metadata: { server: 's', tool: 'ask', mode: 'form' },
    })
    if (era === 'modern') await until(server.store, run, ({ type }) => type === 'suspend')
    expect(await answer(server, run, request, { value: { colour: 'green' } })).toBe(400)
    expect(await answer(server, run, request, { value: { colour: 'red' } })).toBe(200)
    const { result, entries } = await ended(server, run)
    expect(result!.result).toBe('colour: {"action":"accept","content":{"colour":"red"}}')
    expect(await answer(server, run, request, { value: { colour: 'red' } })).toBe(200)
    expect(await answer(server, run, request, { value: { colour: 'blue' } })).toBe(409)
    expect(only(entries, 'response')).toHaveLength(1)
    expect(only(entries, 'suspend')).toHaveLength(era === 'modern' ? 1 : 0)
    expect(calls()).toHaveLength(2)
    expect(calls()[1]).toMatch(/state$/u)
  })

  test.each([
    ['decline', { declined: true }],
    ['cancel', { cancelled: true }],
  ])('%s goes back as such', async (action, body) => {
    const { server } = await serve(era)
    const run = await start(server)
    expect(await answer(server, run, await asked(server, run), body)).toBe(200)
    const { result } = await ended(server, run)
    expect(result!.result).toBe(`colour: {"action":"${action}"}`)
  })

  test('a link is shown whole, and accepted without content', async () => {
    const { server } = await serve(era, { tool: 's_open' })
    const run = await start(server)
    const request = await asked(server, run)
    const url = 'https://login.example/start?of=the%20person'
    expect(request).toMatchObject({
      message: `The MCP server "s" asks: Sign in, please.\n${url}`,
      metadata: { mode: 'url', url },
    })
    expect(request).not.toHaveProperty('schema')
    await answer(server, run, request, { value: true })
    const { result } = await ended(server, run)
    expect(result!.result).toBe('page: {"action":"accept"}')
  })

  test('over stdio, and in a step without a model', async () => {
    const { server } = await serve(era, { over: 'stdio' })
    const run = await start(server, 'step')
    await answer(server, run, await asked(server, run), { value: { colour: 'blue' } })
    const { end } = await ended(server, run)
    expect(end).toMatchObject({
      outcome: 'completed',
      output: 'colour: {"action":"accept","content":{"colour":"blue"}}',
    })
  })

  test('nobody is asked without elicitation: true, and where a run cannot wait', async () => {
    const without = await serve(era, { elicitation: false })
    const run = await start(without.server)
    const { result, entries } = await ended(without.server, run)
    expect([result!.isError, only(entries, 'request')]).toEqual([true, []])
    const { server } = await serve(era)
    // This protocol has no request to come back with.
    const response = await server.post('/v1/chat/completions', { model: 'a', messages })
    expect(response.status).toBe(200)
    await response.text()
    const [row] = await server.store.runs.list()
    const both = await ended(server, row!.id)
    expect([both.result!.isError, only(both.entries, 'request')]).toEqual([true, []])
  })

  test('a stop ends the call', async () => {
    const { server } = await serve(era)
    const run = await start(server)
    await asked(server, run)
    await server.runtime.stop(run, 'Enough.')
    const { end, entries } = await ended(server, run)
    expect(end.outcome).toBe('aborted')
    expect(only(entries, 'response')).toMatchObject([{ outcome: 'closed' }])
  })
})

test('a page with useChat sees the question, and answers over the API', async () => {
  const { server } = await serve('modern')
  const said = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
  const response = await server.post('/api/chat', { agentId: 'a', id: 'c1', messages: said })
  const body = await response.text()
  const run = response.headers.get('x-millrace-run-id')!
  const request = await asked(server, run)
  const waiting = framesOf(body).find((frame) => frame !== 'done' && frame['type'] === 'data-waiting')
  expect(waiting).toMatchObject({
    id: request.requestId,
    data: {
      reason: 'mcp-elicitation',
      message: 'The MCP server "s" asks: Which colour?',
      metadata: { server: 's', tool: 'ask' },
    },
  })
  expect(body).not.toContain('xxxxxxxxxxxxxxxx')
  expect(await answer(server, run, request, { value: { colour: 'red' } })).toBe(200)
  expect((await ended(server, run)).result!.isError).toBe(false)
})

test('an AG-UI client answers an interrupt', async () => {
  const { server } = await serve('modern')
  const input = (runId: string, more: object = {}) => ({
    threadId: 't',
    runId,
    messages: [{ id: 'u1', role: 'user', content: 'Hi' }],
    tools: [],
    context: [],
    state: {},
    protocolVersion: '1.0',
    ...more,
  })
  const body = await (await server.post('/ag-ui/a', input('r1'))).text()
  expect(body).toContain('Which colour?')
  expect(body).toContain('"outcome":{"type":"interrupt"')
  const [row] = await server.store.runs.list()
  const [request] = only(await entriesOf(server.store, row!.id), 'request')
  const resume = [{ interruptId: request!.requestId, status: 'cancelled', payload: { declined: true } }]
  const second = await (await server.post('/ag-ui/a', input('r2', { resume }))).text()
  expect(second).toContain('RUN_FINISHED')
  expect((await ended(server, row!.id)).result!.result).toBe('colour: {"action":"decline"}')
})

test('the state of the server is the same after a restart, and nowhere to be seen', async () => {
  const { server, options, calls } = await serve('modern', { keep: true })
  const run = await start(server)
  const request = await asked(server, run)
  await until(server.store, run, ({ type }) => type === 'suspend')
  const shown = JSON.stringify([
    await entriesOf(server.store, run),
    await (await fetch(`${server.url}/api/runs/${run}`)).json(),
    await (await fetch(`${server.url}/api/runs/${run}/requests`)).json(),
  ])
  await server.close()
  const stored = readFileSync(join(server.dir, 'millrace.db'), 'latin1')
  for (const place of [shown, stored]) expect(place).not.toContain('xxxxxxxxxxxxxxxx')
  const next = await startServer({ ...options, dir: server.dir })
  onTestFinished(() => next.close())
  await next.runtime.recover()
  await answer(next, run, request, { value: { colour: 'red' } })
  const { result } = await ended(next, run)
  expect(result!.result).toBe('colour: {"action":"accept","content":{"colour":"red"}}')
  expect(calls().map((line) => line.split(' ').at(-1))).toEqual(['undefined', 'state'])
})

test('two legacy calls at once: each question is that of its own call', async () => {
  const journal = createJournal()
  onTestFinished(() => journal.remove())
  const m = createTold((prompt) =>
    resultsIn(prompt).size === 0
      ? [toolCall('c1', 's_ask', {}), toolCall('c2', 's_open', {}), finish('tool-calls')]
      : [text('Done.'), finish()],
  )
  const server = await startServer({
    agents: { a: agent('tools: [s_ask, s_open]') },
    scripts: { m },
    mcpServers: { s: { ...sdkOverStdio(journal, 'legacy'), elicitation: true } },
  })
  onTestFinished(() => server.close())
  const run = await start(server)
  const first = await asked(server, run)
  await answer(server, run, first, first.metadata?.['tool'] === 'ask' ? { value: { colour: 'red' } } : { value: true })
  const second = await asked(server, run, first.seq)
  await answer(
    server,
    run,
    second,
    second.metadata?.['tool'] === 'ask' ? { value: { colour: 'red' } } : { value: true },
  )
  const { entries } = await ended(server, run)
  const results = only(entries, 'tool-result').map(({ toolCallId, result }) => [toolCallId, result])
  expect(Object.fromEntries(results)).toEqual({
    c1: 'colour: {"action":"accept","content":{"colour":"red"}}',
    c2: 'page: {"action":"accept"}',
  })
})
