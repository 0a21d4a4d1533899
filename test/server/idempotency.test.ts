/** `Idempotency-Key`: the same request is the same run, another one is refused, also after a restart. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const user = (content: string) => ({ role: 'user', content })
const body = { agentId: 'a', input: { messages: [user('Hi')], topic: { x: 1, y: [2, 3] } } }
const headers = { 'idempotency-key': 'order-1' }
const scripts = () => ({ m: createScriptedModel(Array.from({ length: 9 }, () => [text('x'), finish()])) })
const agents = { a: agent(), b: agent(), strict: agent('', 'input: { topic: string }') }

async function start(given: unknown, from = server) {
  const response = await from.post('/api/runs', given, { headers })
  const told = (await response.json()) as { id?: string; error?: { code: string; message: string } }
  return { status: response.status, ...told }
}
const count = async () => (await server.store.runs.list()).length

describe('idempotency keys', () => {
  test('with another body it is refused, whatever the difference; nothing is started and the first run is not told', async () => {
    server = await startServer({ agents, scripts: scripts() })
    const first = await start(body)
    expect(first.status).toBe(202)
    for (const other of [
      { ...body, agentId: 'b' },
      { ...body, threadId: 't' },
      { ...body, input: {} },
      { ...body, input: { ...body.input, messages: [user('Hi!')] } },
      { ...body, input: { ...body.input, topic: { x: 1, y: [3, 2] } } },
      { ...body, input: { ...body.input, more: null } },
    ]) {
      const { id, status, error } = await start(other)
      expect([status, error?.code, id]).toEqual([422, 'idempotency-key-reused', undefined])
      expect(error!.message).toMatch(/^This Idempotency-Key was already used with a different body\. Use a new key/)
      expect(JSON.stringify(error)).not.toContain(first.id)
    }
    expect(await count()).toBe(1)
  })

  test('the same body written another way is the same', async () => {
    server = await startServer({ agents, scripts: scripts() })
    const { id } = await start(body)
    const { messages, topic } = body.input
    const again = `{ "input" : {"topic":{"y":[2,3.0],"x":1e0},\n"messages":${JSON.stringify(messages)}}, "agentId":"\\u0061"}`
    expect(topic).toEqual({ x: 1, y: [2, 3] })
    const response = await fetch(`${server.url}/api/runs`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: again,
    })
    expect([response.status, await response.json()]).toEqual([202, expect.objectContaining({ id })])
    expect(await count()).toBe(1)
  })

  test('two bodies at once: one of them holds the key, and all who sent that one have its run', async () => {
    server = await startServer({ agents, scripts: scripts() })
    const other = { ...body, input: { messages: [user('Ho')] } }
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => start(i % 2 === 0 ? body : other)))
    const winners = all.filter(({ status }) => status === 202)
    expect(winners).toHaveLength(10)
    expect(new Set(winners.map(({ id }) => id)).size).toBe(1)
    expect(all.filter(({ status }) => status === 422)).toHaveLength(10)
    expect(await count()).toBe(1)
  })

  test('a restart forgets neither', async () => {
    server = await startServer({ agents, scripts: scripts(), keep: true })
    const first = await start(body)
    await until(server.store, first.id!, ({ type }) => type === 'run-end')
    const { dir } = server
    await server.close()
    server = await startServer({ agents, scripts: scripts(), dir })
    expect(await start(body)).toMatchObject({ status: 202, id: first.id })
    expect(await start({ ...body, input: {} })).toMatchObject({ status: 422 })
    expect(await count()).toBe(1)
  })

  test('a request that was refused has not used its key', async () => {
    server = await startServer({ agents, scripts: scripts() })
    expect(await start({ ...body, agentId: 'nobody' })).toMatchObject({ status: 404 })
    expect(await start({ ...body, agentId: 'strict' })).toMatchObject({ status: 400 })
    expect(await start({ ...body, more: 1 })).toMatchObject({ status: 400 })
    expect(await start({ ...body, input: { messages: 'x' } })).toMatchObject({ status: 400 })
    expect(await start({ agentId: 'strict', input: { topic: 'mills' } })).toMatchObject({ status: 202 })
  })
})
