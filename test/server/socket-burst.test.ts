/** A client of Socket.IO that sends everything at once: the others wait no longer, and it is told when it must wait. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Admission } from '../../src/server/http/admission.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, transports } from '../support/socket.ts'

let server: TestServer
describe('Socket.IO: bursts', () => {
  afterEach(() => server.close())

  test.each(transports)(
    '%s: a turn of the event loop takes a few of many messages, and all are answered',
    async (transport) => {
      let turn = 0
      let isOver = false
      const next = () => {
        turn++
        if (!isOver) setImmediate(next)
      }
      const perTurn = new Map<number, number>()
      // Asked while a message is handled.
      const authorize = () => {
        perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1)
        return true
      }
      server = await startServer({ agents: { a: agent() } }, { authorize })
      const { send } = await connectSocket(server.url, transport)
      next()
      const acks = await Promise.all(
        Array.from({ length: 240 }, (_, n) => send('request', { id: `${n}`, path: '/api/x' })),
      )
      isOver = true
      expect(acks.map((ack) => [ack['id'], ack['status']])).toEqual(acks.map((_, n) => [`${n}`, 404]))
      // 20 when they come, and 20 that waited.
      expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(40)
    },
  )

  test('of more than a thousand messages that nobody has answered yet the rest is refused, unless they end something', async () => {
    const gate = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const admission: Admission = {
      async start() {
        begun.resolve()
        await gate.promise
        return undefined
      },
      stream: async () => ({ leave: () => undefined }),
    }
    server = await startServer({ agents: { a: agent() } }, { admission })
    const { run, send } = await connectSocket(server.url)
    const started = run({})
    await begun.promise
    // They wait to know the run that begins before them.
    const results = Array.from({ length: 1001 }, (_, n) => send('tool_result', { toolCallId: `c${n}`, content: '1' }))
    const refused = { ok: false, error: { code: 'too-many', message: expect.stringContaining('1000 messages') } }
    expect(await results[999]).toEqual(refused)
    expect(await results[1000]).toEqual(refused)
    expect(await send('cancel_request', { id: 'none' })).toMatchObject({ ok: true })
    gate.resolve()
    expect((await started).ok).toBe(true)
    expect(await results[998]).toMatchObject({ error: { code: 'unknown-call' } })
  })
})
