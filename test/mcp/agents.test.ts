/** What agents are to MCP clients: outputs, agents that call agents, prompts, resources, and how the list follows the folder. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createRuntime } from '../../src/project/create-runtime.ts'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { serve } from '../../src/server/serve.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'
import {
  askModern,
  connectMcp,
  modernBody,
  modernHeaders,
  modes,
  postModern,
  withTasks,
  type Rpc,
} from '../support/mcp.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'

async function start(options: EngineOptions, more: Partial<HandlerOptions> = {}): Promise<TestServer> {
  const server = await startServer(options, more)
  onTestFinished(() => server.close())
  return server
}

const form = { elicitation: { form: {} } }
const says = (...answers: string[]) => createScriptedModel(answers.map((each) => [text(each), finish()]))

describe.for(modes)('an output in mode %s', (mode) => {
  test('is structured content that fits its schema, with the same JSON as text', async () => {
    const yaml = `
output: { type: object, properties: { status: string } }
workflow: [{ id: answer, type: llm, config: { model: "script:m", output: { schema: { type: object, properties: { status: string } } } } }]`
    const server = await start({ agents: { desk: yaml }, scripts: { m: says('{"status":"sent"}') } })
    const client = await connectMcp(server, mode)
    // The official client checks the content with the schema of the list.
    const { tools } = await client.listTools()
    expect(tools[0]!.outputSchema).toMatchObject({ type: 'object' })
    const result = await client.callTool({ name: 'desk', arguments: { message: 'Hi' } })
    expect(result.structuredContent).toEqual({ status: 'sent' })
    expect(result.content).toEqual([{ type: 'text', text: '{"status":"sent"}' }])
  })

  test('prompts and resources are there', async () => {
    const prompts = 'metadata: { prompts: [{ name: plan, arguments: { goal: "What for" }, text: "Plan {goal}" }] }'
    const server = await start({ agents: { desk: agent('', prompts) }, scripts: { m: says('Hello') } })
    const client = await connectMcp(server, mode)
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['desk.plan'])
    const prompt = await client.getPrompt({ name: 'desk.plan', arguments: { goal: 'a party' } })
    expect(prompt.messages).toEqual([{ role: 'user', content: { type: 'text', text: 'Plan a party' } }])
    const result = await client.callTool({ name: 'desk', arguments: { message: 'Hi' } })
    const uri = `run://${(result._meta as Record<string, string>)['millrace/run']}`
    expect((await client.listResources()).resources.map((each) => each.uri)).toContain(uri)
    const [{ text: markdown }] = (await client.readResource({ uri })).contents as unknown as [{ text: string }]
    expect(markdown).toContain('Hello')
    expect((await client.listResourceTemplates()).resourceTemplates.length).toBeGreaterThan(0)
  })
})

describe('an agent that calls another', () => {
  const outer = `
workflow: [{ id: ask, type: llm, config: { model: "script:outer", stream: true, tools: [{ agent: writer }] } }]`
  const inner = `
workflow: [{ id: look, type: llm, config: { model: "script:inner", tools: [publish] } }]`
  const publish = {
    description: 'Publishes',
    parameters: { type: 'object' } as never,
    approval: true,
    execute: () => 'published',
  }

  test('says in the progress which agent does what', async () => {
    const gate = latch()
    const outerModel = createScriptedModel([
      [...toolCall('c1', 'writer', { message: 'Go' }), finish('tool-calls')],
      [text('Done'), finish()],
    ])
    const innerModel = createScriptedModel([[gate, text('ok'), finish()]])
    const server = await start({
      agents: { desk: outer, writer: inner },
      scripts: { outer: outerModel, inner: innerModel },
      tools: { publish },
    })
    const params = { name: 'desk', arguments: { message: 'Hi' } }
    const reading = readBody(await postModern(server, 'tools/call', params, { meta: { progressToken: 1 } }))
    await reading.until('"message":"writer: look"')
    gate.open()
    expect(await reading.rest()).toContain('Done')
  })

  test('asks for an approval inside with the chain of agents', async () => {
    const outerModel = createScriptedModel([
      [...toolCall('c1', 'writer', { message: 'Go' }), finish('tool-calls')],
      [text('Done'), finish()],
    ])
    const innerModel = createScriptedModel([
      [...toolCall('c2', 'publish', { page: 'home' }), finish('tool-calls')],
      [text('ok'), finish()],
    ])
    const server = await start({
      agents: { desk: outer, writer: inner },
      scripts: { outer: outerModel, inner: innerModel },
      tools: { publish },
    })
    const params = { name: 'desk', arguments: { message: 'Hi' } }
    const { result } = await askModern(server, 'tools/call', params, { capabilities: form })
    const [{ params: question }] = Object.values(result!['inputRequests'] as object) as [
      { params: { message: string } },
    ]
    expect(question.message).toMatch(/desk[^]*writer[^]*publish[^]*home/u)
  })
})

describe('a question that fits no form', () => {
  const asks = `workflow: [{ id: ask, type: ask-secret, config: {} }]`
  const steps = {
    'ask-secret': async (_config: unknown, { request }: { request: (asked: object) => Promise<unknown> }) =>
      request({ kind: 'input', message: 'The password?', metadata: { secret: true } }),
  } as never

  test('is a link to the page, with server.publicUrl, and waits for the person there', async () => {
    const server = await start({ agents: { desk: asks }, steps }, { mcp: { publicUrl: 'https://agents.example' } })
    const params = { name: 'desk', arguments: { message: 'Hi' } }
    const capabilities = { elicitation: { form: {}, url: {} } }
    const { result } = await askModern(server, 'tools/call', params, { capabilities })
    const [[key, question]] = Object.entries(result!['inputRequests'] as object) as [
      [string, { params: Record<string, string> }],
    ]
    expect(question.params).toMatchObject({ mode: 'url' })
    const [run] = await server.store.runs.list()
    expect(question.params['url']).toMatch(new RegExp(`^https://agents\\.example/runs/${run!.id}`, 'u'))
    const retry = { ...params, requestState: result!['requestState'], inputResponses: { [key]: { action: 'accept' } } }
    const answer = askModern(server, 'tools/call', retry, { capabilities })
    const kept = (await server.store.runs.view(run!.id))!.view as { requests: { requestId: string }[] }
    await server.runtime.answer(run!.id, kept.requests[0]!.requestId, { kind: 'input', value: 'hunter2' })
    expect((await answer).result).toMatchObject({ resultType: 'complete' })
  })

  test('is left to other protocols without it', async () => {
    const server = await start({ agents: { desk: asks }, steps }, { mcp: { taskAfter: 0 } })
    const params = { name: 'desk', arguments: { message: 'Hi' } }
    const capabilities = { ...withTasks, elicitation: { form: {}, url: {} } }
    const { result } = await askModern(server, 'tools/call', params, { capabilities })
    const [run] = await server.store.runs.list()
    await until(server.store, run!.id, ({ type }) => type === 'suspend')
    const task = await askModern(server, 'tasks/get', { taskId: result!['taskId'] }, { capabilities })
    expect(task.result).toMatchObject({ status: 'working', statusMessage: 'waits for an answer' })
  })
})

describe('a program with its agents in memory', () => {
  test('serves them with the handler alone', async () => {
    const yaml = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]'
    const runtime = createRuntime({ agents: { desk: yaml } })
    onTestFinished(() => runtime.close(0))
    const handler = createHandler({ runtime, mcp: { taskAfter: 0 } })
    const ask = async (method: string, params: Record<string, unknown>) => {
      const body = modernBody(method, params, { capabilities: withTasks })
      const headers = { ...modernHeaders(body), accept: 'application/json' }
      const response = await handler(
        new Request('http://localhost/mcp', { method: 'POST', headers, body: JSON.stringify(body) }),
      )
      return (await response.json()) as Rpc
    }
    const { result } = await ask('tools/call', { name: 'desk', arguments: { message: 'What is 12*7?' } })
    const end = await vi.waitFor(async () => {
      if (result!['resultType'] === 'complete') return result!
      const task = (await ask('tasks/get', { taskId: result!['taskId'] })).result!
      expect(task['status']).toBe('completed')
      return task['result'] as Record<string, unknown>
    })
    expect(JSON.stringify(end['content'])).toContain('12*7')
    // Without a rule about who may see what was recorded, runs are shown to nobody.
    expect((await ask('resources/list', {})).error?.data).toEqual({ code: 'forbidden' })
  })
})

describe('the agents folder', () => {
  const yaml = (name: string) =>
    `metadata: { name: "${name}" }\nworkflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]\n`

  test('decides what the list has; agents that cannot be loaded, or call each other in a circle, are not in it', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-mcp-'))
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
    writeFileSync(join(dir, 'desk.yaml'), yaml('One'))
    writeFileSync(join(dir, 'broken.yaml'), 'workflow: [{ id: a }]\n')
    for (const [from, to] of [
      ['ping', 'pong'],
      ['pong', 'ping'],
    ]) {
      writeFileSync(join(dir, `${from}.yaml`), `workflow: [{ id: a, type: call-agent, config: { agent: ${to} } }]\n`)
    }
    const served = await serve({ dir, data: 'none', port: 0, log: () => undefined, env: {} })
    onTestFinished(() => served.close())
    const client = await connectMcp(served, 'pin')
    const titles = async () =>
      (await client.listTools({}, { cacheMode: 'refresh' } as never)).tools.map(({ name, title }) => [name, title])
    expect(await titles()).toEqual([['desk', 'One']])
    const changed = Promise.withResolvers<void>()
    client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve())
    const subscription = await client.listen({ toolsListChanged: true })
    writeFileSync(join(dir, 'desk.yaml'), yaml('Two'))
    await changed.promise
    expect(await titles()).toEqual([['desk', 'Two']])
    await subscription.close()
  })
})
