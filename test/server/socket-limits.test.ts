/** What one client of Socket.IO may cost. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel as createPlayer } from '../../src/models/scripted.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createAdmission, createCallerOf } from '../../src/server/http/admission.ts'
import { createLimits } from '../../src/store/limits.ts'
import { mostRuns } from '../../src/server/socket/session.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, judged, pick } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

const agents = { a: agent() }

describe('Socket.IO: limits', () => {
  test('starts from one address are limited over all its sockets, with the seconds to wait', async () => {
    const model = createPlayer(() => [text('Hi')])
    const limits = createLimits(() => 0)
    const admission = createAdmission({ limits, runsPerMinute: 2, callerOf: createCallerOf(undefined) })
    server = await startServer({ agents, scripts: { m: model } }, { admission })
    const options = { extraHeaders: { 'x-forwarded-for': '10.0.0.9' } }
    const [client, other] = [await connectSocket(server.url), await connectSocket(server.url, 'polling', options)]
    expect((await client.run({ runId: 'r1', threadId: '1' })).ok).toBe(true)
    expect((await other.run({ runId: 'r2', threadId: '2' })).ok).toBe(true)
    for (const socket of [client, other]) {
      const refused = await socket.run({ runId: 'r3', threadId: '3' })
      expect(refused).toEqual({
        ok: false,
        error: { code: 'rate-limited', message: expect.stringContaining('2 runs per minute'), retryAfter: 30 },
      })
    }
    // Only starts count, and what was started goes on.
    await client.ended('r1')
    expect(await client.send('watch_run', { runId: 'r1' })).toMatchObject({ ok: true })
  })

  test('a client follows a bounded number of runs', async () => {
    const gate = latch()
    server = await startServer({ agents, scripts: { m: createPlayer(() => [gate, text('Hi')]) } })
    const client = await connectSocket(server.url)
    const run = (n: number) => client.run({ threadId: `t${n}`, runId: `r${n}` })
    const acks = await Promise.all(Array.from({ length: mostRuns + 5 }, (_, n) => run(n)))
    expect(acks.filter(({ ok }) => ok)).toHaveLength(mostRuns)
    expect(acks.at(-1)).toMatchObject({ ok: false, error: { code: 'too-many-runs' } })
    gate.open()
    for (let n = 0; n < mostRuns; n++) await client.ended(`r${n}`)
    await expect.poll(() => server.sockets.counts()).toMatchObject({ runs: 0, starting: 0 })
    expect((await run(100)).ok).toBe(true)
  })

  test('a flood of results for calls of others reads nothing from the store, and the one that counts comes through', async () => {
    let reads = 0
    const model = createScriptedModel([
      [toolCall('c1', 'pick'), finish('tool-calls')],
      [text('Thanks.'), finish()],
    ])
    server = await startServer({
      agents,
      scripts: { m: model },
      wrapStore: (store) => ({
        ...store,
        log: {
          ...store.log,
          read: (...given) => (reads++, store.log.read(...given)),
          post: (...given) => (reads++, store.log.post(...given)),
        },
        runs: {
          ...store.runs,
          get: (id) => (reads++, store.runs.get(id)),
          view: (id) => (reads++, store.runs.view(id)),
          list: (query) => (reads++, store.runs.list(query)),
        },
      }),
    })
    const [owner, flooding] = [await connectSocket(server.url), await connectSocket(server.url)]
    const { millraceRunId } = await owner.run({ tools: [pick] })
    await owner.until(({ event }) => event.type === 'TOOL_CALL_END')
    await expect.poll(async () => (await server.store.runs.get(String(millraceRunId)))?.status).toBe('suspended')
    const before = reads
    const result = (i: number) => ({
      messageId: `m${i}`,
      toolCallId: i % 2 === 0 ? 'c1' : `call_${i}`,
      content: '"stolen"',
      role: 'tool',
      runId: i % 3 === 0 ? millraceRunId : undefined,
    })
    const acks = await Promise.all(Array.from({ length: 3000 }, (_, i) => flooding.send('tool_result', result(i))))
    expect(new Set(acks.map(({ error }) => error?.code))).toEqual(new Set(['unknown-call']))
    expect(reads).toBe(before)
    expect(server.sockets.counts()).toMatchObject({ runs: 1, waiting: 0 })
    const counted = { messageId: 'm', toolCallId: 'c1', content: '1', role: 'tool' }
    expect(await owner.send('tool_result', counted)).toMatchObject({ ok: true, duplicate: false })
    const events = await owner.ended('r')
    await judged(events)
    expect(events.filter(({ type }) => type === 'TOOL_CALL_RESULT')).toMatchObject([{ content: '1' }])
  })
})
