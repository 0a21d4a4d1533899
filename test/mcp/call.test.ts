/** `/mcp`: agents as tools, called and waited for, by the official client in each of its modes. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createScriptedModel, finish, latch, text, throws } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectMcp, modes } from '../support/mcp.ts'

let server: TestServer
afterEach(() => server.close())

const desk = `
metadata: { name: "The desk", description: "Answers questions" }
input: { style?: string, messages: array }
workflow:
  - id: answer
    type: llm
    config: { model: "script:m", stream: true, messages: "$input.messages" }
`

const says = (...words: string[]) => createScriptedModel([[text(...words), finish()]])

describe.for(modes)('tools of /mcp in mode %s', (mode) => {
  test('are the agents that are not hidden, sorted by id', async () => {
    const agents = { zeta: agent(), desk, secret: agent('', 'metadata: { hidden: true }') }
    server = await startServer({ agents, scripts: { m: says('x') } })
    const client = await connectMcp(server, mode)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['desk', 'zeta'])
    expect(tools[0]).toMatchObject({
      title: 'The desk',
      description: 'Answers questions',
      inputSchema: {
        type: 'object',
        properties: { style: { type: 'string' }, message: { type: 'string' } },
        required: ['message'],
      },
    })
    expect(tools[0]!.inputSchema.properties).not.toHaveProperty('messages')
    expect(tools[0]).not.toHaveProperty('outputSchema')
  })

  test('answer with the text of the run, which names client and version', async () => {
    server = await startServer({ agents: { desk }, scripts: { m: says('Hel', 'lo') } })
    const client = await connectMcp(server, mode)
    const result = await client.callTool({ name: 'desk', arguments: { message: 'Hi' } })
    expect(result.content).toEqual([{ type: 'text', text: 'Hello' }])
    expect(result.isError).toBeFalsy()
    const [run] = await server.store.runs.list()
    expect(result._meta).toMatchObject({ 'millrace/run': run!.id, 'millrace/thread': run!.threadId })
    expect(run).toMatchObject({ protocol: 'mcp', agent: 'desk', title: 'Hi', status: 'completed' })
    expect(await server.runtime.store.runs.view(run!.id)).toMatchObject({
      view: { labels: { client: 'tester', clientVersion: '1.2.3' } },
    })
  })

  test('a word is at the client before the model has the next', async () => {
    const gate = latch()
    const m = createScriptedModel([[text('first '), gate, text('second'), finish()]])
    server = await startServer({ agents: { desk }, scripts: { m } })
    const client = await connectMcp(server, mode)
    const told: unknown[] = []
    const first = Promise.withResolvers<void>()
    const call = client.callTool(
      { name: 'desk', arguments: { message: 'Hi' } },
      {
        onprogress(progress) {
          told.push(progress)
          if (progress.message === 'first ') first.resolve()
        },
      },
    )
    await first.promise
    gate.open()
    expect((await call).content).toEqual([{ type: 'text', text: 'first second' }])
    expect(told.map((each) => (each as { progress: number }).progress)).toEqual(told.map((_, i) => i + 1))
  })

  test('a run that fails is an error for the model, with the text so far', async () => {
    const m = createScriptedModel([[text('I begin'), throws(new Error('secret cause'))]])
    server = await startServer({ agents: { desk }, scripts: { m } })
    const client = await connectMcp(server, mode)
    const result = await client.callTool({ name: 'desk', arguments: { message: 'Hi' } })
    expect(result.isError).toBe(true)
    expect(JSON.stringify(result.content)).toContain('I begin')
    expect(JSON.stringify(result)).not.toContain('secret cause')
  })

  test('arguments that do not fit are an error for the model, with all mistakes, and no run', async () => {
    server = await startServer({ agents: { desk }, scripts: { m: says('x') } })
    const client = await connectMcp(server, mode)
    const result = await client.callTool({ name: 'desk', arguments: { style: 3 } })
    expect(result.isError).toBe(true)
    const [{ text: told }] = result.content as unknown as [{ text: string }]
    expect(told).toMatch(/arguments\.style must be a string.*arguments\.message is missing/u)
    expect(await server.store.runs.list()).toEqual([])
  })

  test('answer before the steps behind the answer have ended', async () => {
    const gate = latch()
    const m = createScriptedModel([
      [text('Hello'), finish()],
      [gate, text('later'), finish()],
    ])
    const after = 'after: [{ id: note, type: llm, config: { model: "script:m" } }]'
    server = await startServer({ agents: { desk: `${desk}${after}` }, scripts: { m } })
    const client = await connectMcp(server, mode)
    const result = await client.callTool({ name: 'desk', arguments: { message: 'Hi' } })
    expect(result.content).toEqual([{ type: 'text', text: 'Hello' }])
    expect((await server.store.runs.list())[0]!.status).toBe('running')
    gate.open()
    await vi.waitFor(async () => expect((await server.store.runs.list())[0]!.status).toBe('completed'))
  })

  test('of one agent: /mcp/<agent>, also a hidden one', async () => {
    const agents = { desk, secret: agent('', 'metadata: { hidden: true }') }
    server = await startServer({ agents, scripts: { m: says('shh') } })
    const client = await connectMcp(server, mode, { path: '/mcp/secret' })
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['secret'])
    const result = await client.callTool({ name: 'secret', arguments: { message: 'Hi' } })
    expect(result.content).toEqual([{ type: 'text', text: 'shh' }])
    await expect(client.callTool({ name: 'desk', arguments: { message: 'Hi' } })).rejects.toMatchObject({
      code: -32602,
    })
  })
})
