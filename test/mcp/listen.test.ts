/** `subscriptions/listen`: tasks as they change, and lists. */
import { afterEach, describe, expect, test } from 'vitest'
import type { ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { createListeners } from '../../src/server/serve.ts'
import type { AgentSource } from '../../src/runtime/runtime.ts'
import { agent } from '../support/engine.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'
import { askModern, connectMcp, postModern, withTasks, type Rpc } from '../support/mcp.ts'

let server: TestServer
afterEach(() => server.close())

const wipe = {
  description: 'Wipes a disk',
  parameters: { type: 'object' } as never,
  approval: true,
  execute: () => 'wiped',
}
const capabilities = { ...withTasks, elicitation: { form: {} } }

async function serve(script: ScriptStep[][], options: Partial<HandlerOptions> = {}): Promise<void> {
  const scripts = { m: createScriptedModel(script) }
  const agents = { desk: agent('tools: [wipe]'), other: agent() }
  server = await startServer({ agents, scripts, tools: { wipe } }, { mcp: { taskAfter: 0 }, ...options })
}

const newTask = async () => {
  const { result } = await askModern(
    server,
    'tools/call',
    { name: 'desk', arguments: { message: 'Hi' } },
    { capabilities },
  )
  return result!['taskId'] as string
}

type Told = Rpc & { method?: string; params?: Record<string, unknown> & { _meta: Record<string, unknown> } }

async function listen(notifications: object, id: string | number = 'sub-1') {
  const response = await postModern(server, 'subscriptions/listen', { notifications }, { capabilities, id })
  const reading = readBody(response)
  const messages = () =>
    reading.text
      .split('\n\n')
      .filter((frame) => frame.includes('data: '))
      .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as Told)
  return { response, reading, messages }
}

describe('a stream of tasks', () => {
  test('begins with what it has, and tells each change until the end', async () => {
    const [first, second] = [latch(), latch()]
    await serve([
      [text('a'), first, ...toolCall('c1', 'wipe', {}), finish('tool-calls')],
      [text('b'), second, finish()],
    ])
    const taskId = await newTask()
    const { reading, messages } = await listen({ taskIds: [taskId, 'mrtask_nonsense'], toolsListChanged: true })
    await reading.until('"working"')
    expect(messages()[0]).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: {
        _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub-1' },
        notifications: { taskIds: [taskId], toolsListChanged: true },
      },
    })
    first.open()
    await reading.until(/"input_required"[^]*?\n\n/u)
    const asked = messages().findLast(({ params }) => params?.['status'] === 'input_required')!.params!
    expect(asked).toMatchObject({ taskId, _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub-1' } })
    const polled = (await askModern(server, 'tasks/get', { taskId }, { capabilities })).result!
    expect(asked['inputRequests']).toEqual(polled['inputRequests'])
    const [key] = Object.keys(asked['inputRequests'] as object)
    const inputResponses = { [key!]: { action: 'accept', content: { approved: true } } }
    await askModern(server, 'tasks/update', { taskId, inputResponses }, { capabilities })
    second.open()
    await reading.until(/"completed"[^]*?\n\n/u)
    const { result } = (await askModern(server, 'tasks/get', { taskId }, { capabilities })).result!
    const last = messages().at(-1)!
    expect(last).toMatchObject({ method: 'notifications/tasks', params: { status: 'completed', result } })
    const statuses = messages().flatMap(({ method, params }) =>
      method === 'notifications/tasks' ? [params!['status']] : [],
    )
    expect(new Set(statuses)).toEqual(new Set(['working', 'input_required', 'completed']))
    // Each tells something new.
    const states = messages().flatMap(({ method, params }) => {
      const { lastUpdatedAt: _, pollIntervalMs: __, ...state } = (params ?? {}) as Record<string, unknown>
      return method === 'notifications/tasks' ? [JSON.stringify(state)] : []
    })
    for (const [i, state] of states.entries()) expect(state).not.toBe(states[i - 1])
    await reading.leave()
  })

  test('tells the end of a task that has ended before', async () => {
    const gate = latch()
    await serve([[text('a'), gate, finish()]])
    const taskId = await newTask()
    gate.open()
    const [run] = await server.store.runs.list()
    await (await server.runtime.open(run!.id))!.result
    const { reading } = await listen({ taskIds: [taskId] })
    await reading.until('"completed"')
    await reading.leave()
  })

  test('needs the capability: 400 and -32021', async () => {
    await serve([])
    const response = await postModern(server, 'subscriptions/listen', { notifications: { taskIds: [] } })
    expect([response.status, ((await response.json()) as Rpc).error?.code]).toEqual([400, -32021])
  })

  test('refuses a filter that is none', async () => {
    await serve([])
    for (const notifications of [undefined, 7, { taskIds: 'all' }, { taskIds: [1] }]) {
      const { error } = await askModern(server, 'subscriptions/listen', { notifications }, { capabilities })
      expect(error?.code).toBe(-32602)
    }
  })

  test('ends with a result when the server closes', async () => {
    await serve([])
    const { reading, messages } = await listen({ toolsListChanged: true })
    await reading.until('acknowledged')
    const rest = reading.rest()
    await server.runtime.close(0)
    await rest
    expect(messages().at(-1)).toMatchObject({
      id: 'sub-1',
      result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub-1' } },
    })
  })
})

describe('a list of tools', () => {
  test('that has changed is told to the official client, which reads it again', async () => {
    const reloads = createListeners()
    await serve([], { onAgents: reloads.listen })
    const source = server.runtime.agents
    const client = await connectMcp(server, 'pin')
    const changed = Promise.withResolvers<void>()
    client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve())
    const subscription = await client.listen({ toolsListChanged: true })
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['desk', 'other'])
    hide(source, 'other')
    reloads.tell()
    await changed.promise
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['desk'])
    await subscription.close()
  })
})

test('a reload that changes no tool is not told', async () => {
  const reloads = createListeners()
  await serve([], { onAgents: reloads.listen })
  const { reading } = await listen({ toolsListChanged: true })
  await reading.until('acknowledged')
  reloads.tell()
  // By then it would have been told.
  await askModern(server, 'tools/list')
  hide(server.runtime.agents, 'other')
  reloads.tell()
  await reading.until('list_changed')
  const rest = reading.rest()
  await server.runtime.close(0)
  expect((await rest).split('list_changed')).toHaveLength(2)
})

function hide(source: AgentSource, id: string): void {
  source.get(id)!.pipeline.metadata.hidden = true
}
