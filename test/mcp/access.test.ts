/** Each method of MCP has an action of its own, and what is not a caller's is like what does not exist. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { createTestAccess, headersFor, type Caller } from '../support/callers.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { askModern, postModern, withTasks, type Rpc } from '../support/mcp.ts'

let server: TestServer
afterEach(() => server.close())

const canary = 'canary-90ab'
const wipe = {
  description: 'Wipes a disk',
  parameters: { type: 'object' } as never,
  approval: true,
  execute: () => 'wiped',
}
const capabilities = { ...withTasks, elicitation: { form: {} } }

async function serve(): Promise<void> {
  const m = createScriptedModel([
    [text(canary), ...toolCall('c1', 'wipe', { disk: canary }), finish('tool-calls')],
    [text(canary), finish()],
  ])
  const agents = { a: agent('tools: [wipe]'), other: agent(), ops: agent('', 'access: { roles: [operator] }') }
  server = await startServer(
    { agents, scripts: { m }, tools: { wipe } },
    { access: createTestAccess(), mcp: { taskAfter: 0 } },
  )
}

const as = (caller: Caller, method: string, params: Record<string, unknown> = {}) =>
  askModern(server, method, params, { capabilities, headers: headersFor(caller) })

/** A call of alice that waits for an approval, as her task. */
async function taskOfAlice(): Promise<{ taskId: string; run: string; key: string }> {
  const { result } = await as('alice', 'tools/call', { name: 'a', arguments: { message: canary } })
  const taskId = result!['taskId'] as string
  const task = await vi.waitFor(async () => {
    const found = (await as('alice', 'tasks/get', { taskId })).result!
    if (found['status'] !== 'input_required') throw new Error(`the task is ${String(found['status'])}`)
    return found
  })
  const [run] = await server.store.runs.list()
  return { taskId, run: run!.id, key: Object.keys(task['inputRequests'] as object)[0]! }
}

describe('a task', () => {
  test('is its caller’s alone: to every other caller there is none, with one text', async () => {
    await serve()
    const { taskId, run, key } = await taskOfAlice()
    for (const caller of ['bob', 'alice of beta', 'operator', 'operator of beta', 'admin', 'other agents'] as const) {
      const inputResponses = { [key]: { action: 'accept', content: { approved: true } } }
      for (const [method, more] of [
        ['tasks/get', {}],
        ['tasks/update', { inputResponses }],
        ['tasks/cancel', {}],
      ] as const) {
        const answer = await as(caller, method, { taskId, ...more })
        expect(answer.error, `${method} by ${caller}`).toEqual({ code: -32602, message: 'There is no such task.' })
      }
    }
    expect((await server.store.runs.get(run))?.status).toBe('suspended')
  })

  test('is answered and read by its caller', async () => {
    await serve()
    const { taskId, key } = await taskOfAlice()
    const inputResponses = { [key]: { action: 'accept', content: { approved: true } } }
    expect((await as('alice', 'tasks/update', { taskId, inputResponses })).error).toBeUndefined()
    await vi.waitFor(async () => {
      const { result } = await as('alice', 'tasks/get', { taskId })
      expect(result!['status']).toBe('completed')
      expect(JSON.stringify(result)).toContain(canary)
    })
  })

  test('needs a credential', async () => {
    await serve()
    const { taskId } = await taskOfAlice()
    for (const caller of ['no one', 'expired'] as const) {
      const response = await postModern(server, 'tasks/get', { taskId }, { capabilities, headers: headersFor(caller) })
      expect(response.status).toBe(401)
    }
  })

  test('has its stop and its answers in the audit', async () => {
    await serve()
    const { taskId, run } = await taskOfAlice()
    await as('alice', 'tasks/cancel', { taskId })
    await vi.waitFor(async () => {
      const rows = await server.store.audit!.list({})
      expect(rows).toContainEqual(expect.objectContaining({ action: 'runs.stop', resource: run, outcome: 'done' }))
    })
  })
})

describe('the state of a call and a session', () => {
  test('count for their caller alone', async () => {
    await serve()
    const params = { name: 'a', arguments: { message: canary } }
    const blocking = { capabilities: { elicitation: {} } }
    const first = await askModern(server, 'tools/call', params, { ...blocking, headers: headersFor('alice') })
    const { requestState } = first.result!
    for (const caller of ['bob', 'operator', 'admin'] as const) {
      const answer = await askModern(
        server,
        'tools/call',
        { ...params, requestState },
        { ...blocking, headers: headersFor(caller) },
      )
      expect(answer.error?.code).toBe(-32602)
      expect(JSON.stringify(answer)).not.toContain(canary)
    }
    const begin = (caller: Caller) =>
      fetch(`${server.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headersFor(caller) },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: { protocolVersion: '2025-11-25', capabilities: {} },
        }),
      })
    const session = (await begin('alice')).headers.get('mcp-session-id')!
    const ping = (caller: Caller) =>
      fetch(`${server.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'mcp-session-id': session, ...headersFor(caller) },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      })
    expect((await ping('alice')).status).toBe(200)
    expect((await ping('bob')).status).toBe(404)
  })
})

describe('tools', () => {
  test('are those that are open to the caller; others are like those that do not exist', async () => {
    await serve()
    const names = async (caller: Caller) =>
      ((await as(caller, 'tools/list')).result!['tools'] as { name: string }[]).map(({ name }) => name)
    expect(await names('alice')).toEqual(['a', 'other'])
    expect(await names('operator')).toEqual(['a', 'ops', 'other'])
    expect(await names('other agents')).toEqual(['other'])
    const call = (name: string) => as('alice', 'tools/call', { name, arguments: { message: 'Hi' } })
    const texts = await Promise.all(
      ['ops', 'nosuch'].map(async (name) => (await call(name)).error?.message.replace(name, '')),
    )
    expect(texts[0]).toBe(texts[1])
  })
})

describe('a canary of one caller', () => {
  test('is in no byte of another’s lists', async () => {
    await serve()
    const { run } = await taskOfAlice()
    for (const caller of ['bob', 'alice of beta', 'operator of beta'] as const) {
      for (const [method, params] of [
        ['tools/list', {}],
        ['prompts/list', {}],
        ['resources/list', {}],
        ['resources/templates/list', {}],
        ['resources/read', { uri: `run://${run}` }],
      ] as [string, Record<string, unknown>][]) {
        const answer: Rpc = await as(caller, method, params)
        expect(JSON.stringify(answer), `${method} by ${caller}`).not.toContain(canary)
      }
    }
    expect(JSON.stringify(await as('alice', 'resources/read', { uri: `run://${run}` }))).toContain(canary)
  })
})
