/** `server.streamLimit`: streams that a caller may have open, over every route and over all servers of a store. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Limits } from '../../src/part/limits.ts'
import { createScriptedModel as createPlayer } from '../../src/models/scripted.ts'
import { latch, text } from '../../src/models/testing/scripted-model.ts'
import { createAdmission, createCallerOf } from '../../src/server/http/admission.ts'
import { createLimits } from '../../src/store/limits.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { connectSocket } from '../support/socket.ts'

const key = 'a-long-secret-key'
const authorization = `Bearer ${key}`
const messages = [{ role: 'user', content: 'Hi' }]

async function pair(limits: readonly [Limits, Limits], streams: number) {
  const gate = latch()
  const start = async (own: Limits) => {
    const admission = createAdmission({ limits: own, streams, callerOf: createCallerOf('5ec4e7') })
    const scripts = { m: createPlayer(() => [text('Hello'), gate, text('!')]) }
    const agents = { a: agent('', 'onDisconnect: detach') }
    const server = await startServer({ agents, scripts }, { admission, apiKey: key })
    onTestFinished(() => server.close())
    const ask = (path: string, body?: object) => {
      const headers = { authorization, 'content-type': 'application/json', accept: 'text/event-stream' }
      const sent = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
      return fetch(server.url + path, sent)
    }
    return { ...server, ask }
  }
  return { gate, servers: [await start(limits[0]), await start(limits[1])] as const }
}

describe('in one process', () => {
  const limits = createLimits()
  streamsAreLimited(async () => [limits, limits])
})

describeRedis('over two servers that share Redis', (redis) => {
  streamsAreLimited(async () => {
    const url = `${redis().url}?prefix=${freshPrefix()}`
    const stores = [await redisStore(url), await redisStore(url)] as const
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    return [stores[0].limits!, stores[1].limits!]
  })
})

function streamsAreLimited(make: () => Promise<readonly [Limits, Limits]>): void {
  test('one more is a 429 with Retry-After on any server, in the form of its protocol; one that ends makes room', async () => {
    const { gate, servers } = await pair(await make(), 2)
    const [one, other] = servers
    const held = [await one.ask('/api/chat', { agentId: 'a', messages }), await other.ask('/api/events')]
    expect(held.map(({ status }) => status)).toEqual([200, 200])
    const runs = (await one.store.runs.list()).length + (await other.store.runs.list()).length
    const tries: [string, object?][] = [
      ['/api/chat', { agentId: 'a', messages }],
      ['/api/beddel/chat', { agentId: 'a', messages }],
      ['/v1/chat/completions', { model: 'a', messages, stream: true }],
      ['/ag-ui/a', { threadId: 't', runId: 'r', messages: [] }],
      ['/api/events'],
      ['/api/live?rows=1'],
      ['/api/runs/run_1/events?follow=1'],
      ['/api/chat/t/stream'],
      ['/ag-ui/a/connect?threadId=t'],
    ]
    for (const [path, body] of tries) {
      for (const server of servers) {
        const refused = await server.ask(path, body)
        expect([path, refused.status, refused.headers.get('retry-after')]).toEqual([path, 429, '5'])
        const { error } = (await refused.json()) as { error: { message: string } }
        expect(error.message).toMatch(/^Too many streams are open with this key\. The limit is 2 at the same time\./u)
      }
    }
    const socket = await connectSocket(other.url, 'websocket', { auth: { token: key } })
    const said = await socket.run({ runId: 'r1', threadId: '1' })
    expect(said).toMatchObject({ ok: false, error: { code: 'too-many-streams', retryAfter: 5 } })
    // What was refused has started nothing, and what is no stream goes on.
    expect((await one.store.runs.list()).length + (await other.store.runs.list()).length).toBe(runs)
    expect((await other.ask('/api/runs', { agentId: 'a', input: { messages } })).status).toBe(202)
    expect((await other.ask('/api/runs')).status).toBe(200)

    await held[1]!.body!.cancel()
    await expect.poll(async () => (await socket.run({ runId: 'r2', threadId: '2' })).ok).toBe(true)
    expect((await one.ask('/api/events')).status).toBe(429)
    gate.open()
    await socket.ended('r2')
    expect(await held[0]!.text()).toContain('[DONE]')
    await expect.poll(async () => (await one.ask('/api/events')).status).toBe(200)
  })
}
