/** Tasks of MCP: a long call is answered with one, which any instance can be asked for. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { compactRuns } from '../../src/record/upkeep.ts'
import { createTestClock } from '../../src/server/mcp/testing/test-clock.ts'
import type { McpOptions } from '../../src/server/mcp/settings.ts'
import { agent, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { askModern, messagesIn, postModern, withTasks, type Rpc } from '../support/mcp.ts'

let server: TestServer
afterEach(() => server.close())

const wipe = {
  description: 'Wipes a disk',
  parameters: { type: 'object', properties: { disk: { type: 'string' } } } as never,
  approval: true,
  execute: () => 'wiped',
}
const agents = { desk: agent('tools: [wipe]') }

async function serve(script: ScriptStep[][], mcp: McpOptions = { taskAfter: 0 }): Promise<void> {
  server = await startServer({ agents, scripts: { m: createScriptedModel(script) }, tools: { wipe } }, { mcp })
}

const options = { capabilities: withTasks }
const call = (message = 'Hi', more: object = {}) =>
  askModern(server, 'tools/call', { name: 'desk', arguments: { message } }, { ...options, ...more })
const get = (taskId: unknown, more: object = {}) => askModern(server, 'tasks/get', { taskId }, { ...options, ...more })

const untilTask = (taskId: unknown, status: string) =>
  vi.waitFor(async () => {
    const { result } = await get(taskId)
    if (result?.['status'] !== status) throw new Error(`the task is ${JSON.stringify(result)}`)
    return result
  })

describe('a call of a client that knows tasks', () => {
  test('is answered with the result if the run ends in time', async () => {
    await serve([[text('Quick'), finish()]], { taskAfter: '1h' })
    const { result } = await call()
    expect(result).toMatchObject({ resultType: 'complete', content: [{ type: 'text', text: 'Quick' }] })
  })

  test('is answered with a task if the run takes longer than taskAfter, not before', async () => {
    const gate = latch()
    const clock = createTestClock()
    await serve([[text('a'), gate, finish()]], { taskAfter: 1000, clock })
    const response = await postModern(server, 'tools/call', { name: 'desk', arguments: { message: 'Hi' } }, options)
    let isAnswered = false
    const answer = messagesIn(response).then((messages) => ((isAnswered = true), messages.at(-1)!))
    const [run] = await server.store.runs.list()
    await until(server.store, run!.id, ({ type }) => type === 'text-delta')
    clock.advance(999)
    await get('x')
    expect(isAnswered).toBe(false)
    clock.advance(1)
    const { result } = await answer
    expect(result).toMatchObject({ resultType: 'task', status: 'working', pollIntervalMs: 500, ttlMs: null })
    expect(result!['taskId']).toMatch(/^[!-~]{1,200}$/u)
    expect(result!['taskId']).not.toContain(run!.id)
    gate.open()
    expect(await untilTask(result!['taskId'], 'completed')).toMatchObject({
      result: { content: [{ type: 'text', text: 'a' }] },
    })
  })

  test('never is, if this request does not declare them', async () => {
    await serve([[text('a'), finish()]])
    expect((await call('Hi', { capabilities: {} })).result).toMatchObject({ resultType: 'complete' })
  })

  test('the task of a run that failed is completed, with an error for the model', async () => {
    const gate = latch()
    await serve([[text('I begin'), gate, throws(new Error('no'))]])
    const { result } = await call()
    gate.open()
    const task = await untilTask(result!['taskId'], 'completed')
    expect(task).toMatchObject({ resultType: 'complete', result: { isError: true, resultType: 'complete' } })
  })

  test('every poll of the end has the same bytes', async () => {
    const gate = latch()
    await serve([[text('a'), gate, finish()]])
    const { result } = await call()
    gate.open()
    await untilTask(result!['taskId'], 'completed')
    const polls = await Promise.all(Array.from({ length: 5 }, () => get(result!['taskId'])))
    expect(new Set(polls.map((poll) => JSON.stringify(poll))).size).toBe(1)
  })

  test('its result stays the same when the log is compacted, and is gone with the run', async () => {
    const gate = latch()
    await serve([[text('a', 'b', 'c'), gate, text('d'), finish()]])
    const taskId = (await call()).result!['taskId']
    gate.open()
    const before = await untilTask(taskId, 'completed')
    const { id } = (await server.store.runs.list())[0]!
    await compactRuns(server.store.upkeep!, { endedBefore: Date.now() + 1000 })
    expect((await server.store.runs.get(id))!.compactedAt).toBeDefined()
    expect(await untilTask(taskId, 'completed')).toEqual(before)
    expect((await fetch(`${server.url}/api/runs/${id}`, { method: 'DELETE' })).status).toBe(200)
    expect((await get(taskId)).error).toEqual({ code: -32602, message: 'There is no such task.' })
  })

  test('says for how long it is kept, and how often to poll: later less often', async () => {
    let time = Date.now()
    const gate = latch()
    server = await startServer(
      {
        agents,
        scripts: { m: createScriptedModel([[text('a'), gate, finish()]]) },
        tools: { wipe },
        wrapStore: (store) => ({ ...store, now: () => time }),
      },
      { mcp: { taskAfter: 0, keepsRunsMs: 86_400_000 } },
    )
    const { result } = await call()
    expect(result).toMatchObject({ ttlMs: 86_400_000, pollIntervalMs: 500 })
    const { taskId } = result!
    time += 9999
    expect((await get(taskId)).result).toMatchObject({ ttlMs: 86_400_000, pollIntervalMs: 500 })
    time += 1
    expect((await get(taskId)).result).toMatchObject({ ttlMs: 86_400_000, pollIntervalMs: 2000 })
    time += 86_400_000
    expect((await get(taskId)).error).toEqual({ code: -32602, message: 'There is no such task.' })
    gate.open()
  })

  test('tasks/cancel stops the run', async () => {
    const gate = latch()
    await serve([[text('a'), gate, finish()]])
    const taskId = (await call()).result!['taskId']
    expect((await askModern(server, 'tasks/cancel', { taskId }, options)).result).toMatchObject({
      resultType: 'complete',
    })
    await untilTask(taskId, 'cancelled')
    // Twice is once.
    expect((await askModern(server, 'tasks/cancel', { taskId }, options)).error).toBeUndefined()
  })

  test('the end of the connection after the task stops nothing', async () => {
    const gate = latch()
    await serve([[text('a'), gate, finish()]])
    const taskId = (await call()).result!['taskId']
    gate.open()
    await untilTask(taskId, 'completed')
  })

  test('metadata.mcp.tasks: required refuses clients without tasks, never gives none', async () => {
    const script = [
      [text('a'), finish()],
      [text('b'), finish()],
    ]
    server = await startServer(
      {
        agents: {
          must: agent('', 'metadata: { mcp: { tasks: required } }'),
          never: agent('', 'metadata: { mcp: { tasks: never } }'),
        },
        scripts: { m: createScriptedModel(script) },
      },
      { mcp: { taskAfter: 0 } },
    )
    const of = (name: string) => ({ name, arguments: { message: 'Hi' } })
    const refused = await postModern(server, 'tools/call', of('must'))
    expect(refused.status).toBe(400)
    expect(((await refused.json()) as Rpc).error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    })
    expect((await askModern(server, 'tools/call', of('never'), options)).result).toMatchObject({
      resultType: 'complete',
    })
    expect(await server.store.runs.list({ agent: 'must' })).toEqual([])
  })
})

describe('a task that waits for an approval', () => {
  const form = { ...withTasks, elicitation: { form: {} } }
  const asking = () => [
    [text('I ask'), ...toolCall('c1', 'wipe', { disk: '/' }), finish('tool-calls')],
    [text('Done'), finish()],
  ]

  async function waiting(capabilities: object): Promise<Record<string, unknown>> {
    await serve(asking())
    const { result } = await call('Hi', { capabilities })
    const [run] = await server.store.runs.list()
    await until(server.store, run!.id, ({ type }) => type === 'suspend')
    return (await get(result!['taskId'], { capabilities })).result!
  }

  test('asks a client that can answer, and goes on with its answer', async () => {
    const task = await waiting(form)
    expect(task).toMatchObject({
      status: 'input_required',
      pollIntervalMs: 5000,
      statusMessage: 'waits for an approval of wipe',
    })
    const requests = task['inputRequests'] as Record<string, { method: string; params: { message: string } }>
    const [key, { method, params }] = Object.entries(requests)[0]!
    expect(method).toBe('elicitation/create')
    expect(params.message).toContain('desk')
    const { taskId } = task
    const inputResponses = { [key]: { action: 'accept', content: { approved: true } }, other: { action: 'accept' } }
    const update = await askModern(server, 'tasks/update', { taskId, inputResponses }, { capabilities: form })
    expect(update.result).toMatchObject({ resultType: 'complete' })
    expect(await untilTask(taskId, 'completed')).toMatchObject({
      result: { content: [{ type: 'text', text: expect.stringMatching(/^I ask\s*Done$/u) }] },
    })
    // A key that was answered is acknowledged and ignored.
    const again = await askModern(server, 'tasks/update', { taskId, inputResponses }, { capabilities: form })
    expect(again.error).toBeUndefined()
  })

  test('takes an answer while the run goes on with another', async () => {
    const gate = latch()
    const began = Promise.withResolvers<void>()
    const slow = {
      ...wipe,
      async execute() {
        began.resolve()
        await gate.opened
        return 'wiped'
      },
    }
    const asks = ['c1', 'c2'].flatMap((id) => toolCall(id, 'wipe', { disk: id }))
    const m = createScriptedModel([
      [...asks, finish('tool-calls')],
      [text('Done'), finish()],
    ])
    server = await startServer({ agents, scripts: { m }, tools: { wipe: slow } }, { mcp: { taskAfter: 0 } })
    const { taskId } = (await call('Hi', { capabilities: form })).result!
    const keys = await vi.waitFor(async () => {
      const { result } = await get(taskId, { capabilities: form })
      const found = Object.keys((result!['inputRequests'] ?? {}) as object)
      expect(found).toHaveLength(2)
      return found
    })
    const answer = (key: string) => {
      const inputResponses = { [key]: { action: 'accept', content: { approved: true } } }
      return askModern(server, 'tasks/update', { taskId, inputResponses }, { capabilities: form })
    }
    await answer(keys[0]!)
    await began.promise
    expect((await get(taskId, { capabilities: form })).result).toMatchObject({ status: 'working' })
    await answer(keys[1]!)
    gate.open()
    await untilTask(taskId, 'completed')
  })

  test('says what it waits for to a client that cannot answer', async () => {
    const task = await waiting(withTasks)
    expect(task).toMatchObject({ status: 'working', statusMessage: 'waits for an approval of wipe' })
    expect(task).not.toHaveProperty('inputRequests')
  })

  test('is not asked again after cancel, and stays open for others', async () => {
    const { taskId, inputRequests } = await waiting(form)
    const [key] = Object.keys(inputRequests as object)
    const inputResponses = { [key!]: { action: 'cancel' } }
    await askModern(server, 'tasks/update', { taskId, inputResponses }, { capabilities: form })
    expect((await get(taskId, { capabilities: form })).result).toMatchObject({ status: 'working' })
    const [run] = await server.store.runs.list()
    const kept = (await server.store.runs.view(run!.id))!.view as { requests: { requestId: string }[] }
    await server.runtime.answer(run!.id, kept.requests[0]!.requestId, { kind: 'approval', approved: true })
    await untilTask(taskId, 'completed')
  })

  test('content that does not fit is asked again under another key', async () => {
    const { taskId, inputRequests } = await waiting(form)
    const [key] = Object.keys(inputRequests as object)
    const inputResponses = { [key!]: { action: 'accept', content: { approved: 'maybe' } } }
    await askModern(server, 'tasks/update', { taskId, inputResponses }, { capabilities: form })
    const { result } = await get(taskId, { capabilities: form })
    const [next, ...more] = Object.keys(result!['inputRequests'] as object)
    expect(more).toEqual([])
    expect(next).not.toBe(key)
  })
})

describe('an id of a task', () => {
  test('that was changed, is unknown or was deleted is the same error as any', async () => {
    await serve([[text('a'), finish()]])
    const gate = latch()
    await server.close()
    await serve([[text('a'), gate, finish()]])
    const taskId = (await call()).result!['taskId'] as string
    const ids = [`${taskId.slice(0, -1)}${taskId.endsWith('A') ? 'B' : 'A'}`, 'nonsense', 'mrtask_', 7, undefined]
    const errors = await Promise.all(ids.map((id) => get(id)))
    for (const { error } of errors) expect(error).toEqual({ code: -32602, message: 'There is no such task.' })
    gate.open()
  })

  test('needs the capability at every use', async () => {
    await serve([[text('a'), finish()]])
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const response = await postModern(server, method, { taskId: 'x' })
      expect(response.status).toBe(400)
      expect(((await response.json()) as Rpc).error?.code).toBe(-32021)
    }
  })
})
