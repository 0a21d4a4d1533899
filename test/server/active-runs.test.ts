/** `limits.activeRuns` of an agent: how many of its runs execute at the same time, over all servers of a store. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Store } from '../../src/part/log.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { agent, only, entriesOf, until } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { startServer } from '../support/server.ts'
import { connectSocket } from '../support/socket.ts'

const messages = [{ id: 'u', role: 'user', content: 'Hi' }]
const asks = [{ role: 'user', content: 'Please choose' }]

/** Servers that share what `wrap` gives. Their model says nothing more until the gate opens. */
async function serve(stores: (Store | undefined)[], most: number) {
  const gate = latch()
  const taken = { count: 0 }
  const script = (prompt: Parameters<Parameters<typeof createTold>[0]>[0]) =>
    JSON.stringify(prompt).includes('choose') && resultsIn(prompt).size === 0
      ? [toolCall('c1', 'choose'), finish('tool-calls')]
      : [text('Hello'), gate, text('!'), finish()]
  const yaml = agent('tools: [{ name: choose, client: true }]', `limits: { activeRuns: ${most} }\nonDisconnect: detach`)
  const servers = []
  for (const store of stores) {
    const wrapStore = (own: Store): Store => {
      if (store !== undefined) void own.close()
      const used = store ?? own
      const occupy = async (key: string, places: number) => {
        const place = await used.limits!.occupy(key, places)
        if (place !== undefined) taken.count++
        return place
      }
      return { ...used, limits: { ...used.limits!, occupy } }
    }
    const server = await startServer({ agents: { a: yaml }, scripts: { m: createTold(script) }, wrapStore })
    onTestFinished(() => server.close())
    servers.push(server)
  }
  onTestFinished(() => gate.open())
  return { gate, one: servers[0]!, other: servers.at(-1)!, taken }
}

type Server = Awaited<ReturnType<typeof startServer>>

async function begun(server: Server, given: object[] = messages, headers = {}): Promise<string> {
  const response = await server.post('/api/runs', { agentId: 'a', input: { messages: given } }, { headers })
  expect(response.status, await response.clone().text()).toBe(202)
  return ((await response.json()) as { id: string }).id
}

const statusOf = (server: Server) => async () =>
  (await server.post('/api/runs', { agentId: 'a', input: { messages } })).status

describe('on SQLite', () => {
  runsAreLimited(async () => [undefined])
})

describeRedis('over two servers that share Redis', (redis) => {
  runsAreLimited(async () => {
    const url = `${redis().url}?prefix=${freshPrefix()}`
    return [await redisStore(url), await redisStore(url)]
  })
})

function runsAreLimited(make: () => Promise<(Store | undefined)[]>): void {
  test('one more is a 429 with Retry-After in the form of its protocol, and has no entry; one that ends makes room', async () => {
    const { gate, one, other } = await serve(await make(), 2)
    const key = { 'idempotency-key': 'k1' }
    const first = await begun(one, messages, key)
    const second = await begun(other)
    const listed = (await one.store.runs.list()).length
    const tries: [string, object][] = [
      ['/api/chat', { agentId: 'a', messages, id: 't1' }],
      ['/api/beddel/chat', { agentId: 'a', messages }],
      ['/api/runs', { agentId: 'a', input: { messages } }],
      ['/v1/chat/completions', { model: 'a', messages, stream: true }],
      ['/v1/chat/completions', { model: 'a', messages }],
      ['/ag-ui/a', { threadId: 't', runId: 'r', messages }],
      [`/api/runs/${first}/fork`, { at: 1 }],
    ]
    for (const [path, body] of tries) {
      for (const server of [one, other]) {
        const refused = await server.post(path, body)
        expect([path, refused.status, refused.headers.get('retry-after')]).toEqual([path, 429, '5'])
        const { error } = (await refused.json()) as { error: { message: string; code: string } }
        expect(error.code).toBe('too-many-runs')
        expect(error.message).toMatch(/^Agent "a" has too many active runs\. The limit is 2 at the same time/u)
      }
    }
    const socket = await connectSocket(other.url, 'websocket')
    const said = await socket.run({ runId: 'r1', threadId: '1' })
    expect(said).toMatchObject({ ok: false, error: { code: 'too-many-runs', retryAfter: 5 } })
    expect((await one.store.runs.list()).length).toBe(listed)
    // The same request again is no new run, and what was refused may be sent again.
    expect(await begun(other, messages, key)).toBe(first)
    const again = { 'idempotency-key': 'k2' }
    const late = await one.post('/api/runs', { agentId: 'a', input: { messages } }, { headers: again })
    expect(late.status).toBe(429)

    await one.runtime.stop(second)
    let third = ''
    await expect
      .poll(async () => {
        const response = await other.post('/api/runs', { agentId: 'a', input: { messages } }, { headers: again })
        if (response.status === 202) third = ((await response.json()) as { id: string }).id
        return response.status
      })
      .toBe(202)
    expect(await statusOf(one)()).toBe(429)
    gate.open()
    for (const run of [first, third]) await until(one.store, run, ({ type }) => type === 'run-end')
    await expect.poll(statusOf(one)).toBe(202)
  })

  test('a run that waits has no place; when it goes on it is not refused, and takes the next place', async () => {
    const { gate, one, other, taken } = await serve(await make(), 1)
    const waits = await begun(one, asks)
    await until(one.store, waits, ({ type }) => type === 'suspend')
    let active = ''
    await expect
      .poll(async () => {
        const response = await other.post('/api/runs', { agentId: 'a', input: { messages } })
        if (response.status === 202) active = ((await response.json()) as { id: string }).id
        return response.status
      })
      .toBe(202)
    const [request] = only(await entriesOf(one.store, waits), 'request')
    const answer = await other.post(`/api/runs/${waits}/requests/${request!.requestId}`, { output: 'one' })
    expect(answer.status).toBe(200)
    await until(one.store, waits, ({ type }) => type === 'resume')
    await one.runtime.stop(active)
    // Now the resumed one counts.
    await expect.poll(() => taken.count).toBe(3)
    expect(await statusOf(other)()).toBe(429)
    gate.open()
    await until(one.store, waits, ({ type }) => type === 'run-end')
    await expect.poll(statusOf(other)).toBe(202)
  })
}
