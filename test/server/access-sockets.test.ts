/** Who may do what over Socket.IO: each message by everyone, for a run of alice. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/scripted.ts'
import { messageActions } from '../../src/server/socket/message-effects.ts'
import { messageTypes } from '../../src/server/socket/message.ts'
import { runUserOf } from '../../src/part/principal.ts'
import { agent, until } from '../support/engine.ts'
import { callers, createTestAccess, everyone, tokenOf, type Caller } from '../support/callers.ts'
import { startServer } from '../support/server.ts'
import { connectSocket, transports, type Ack } from '../support/socket.ts'

const canary = 'canary-83bc'
const names = Object.keys(callers) as (keyof typeof callers)[]
/** Who sees the runs of alice. */
const sees: ReadonlySet<Caller> = new Set(['alice', 'operator', 'admin of acme', 'admin', 'other agents'])

async function start() {
  const gate = latch()
  const m = createScriptedModel(({ options }) => {
    const asked = JSON.stringify(options.prompt.at(-1))
    return asked.includes(canary) ? [text(`I say ${canary}`), gate, finish()] : [text('Hello.'), finish()]
  })
  const server = await startServer(
    { agents: { a: agent('', 'onDisconnect: detach'), other: agent() }, scripts: { m } },
    { access: createTestAccess() },
  )
  onTestFinished(async () => {
    gate.open()
    await server.close()
  })
  const run = await server.runtime.start(
    'a',
    { messages: [{ role: 'user', content: canary }] },
    { threadId: 'chat@@acme/alice', user: runUserOf(callers.alice)!, protocol: 'socket.io' },
  )
  await until(server.store, run.id, ({ type }) => type === 'text-delta')
  const as = (caller: Caller) =>
    connectSocket(server.url, 'websocket', { auth: caller === 'no one' ? {} : { token: tokenOf(caller) } })
  return { server, run, as }
}

const input = (runId: string, threadId = 'chat') => ({
  runId,
  threadId,
  messages: [{ id: 'm', role: 'user', content: 'Hi' }],
  tools: [],
  context: [],
  state: null,
  protocolVersion: '1.0',
  forwardedProps: { agent: 'a' },
})

const withoutId = ({ error, ...ack }: Ack, id: string) => {
  return { ...ack, error: error && { ...error, message: error.message.replaceAll(id, '<id>') } }
}

describe('who may do what over Socket.IO', () => {
  test('every message has its action', () => {
    expect(Object.keys(messageActions).toSorted()).toEqual([...messageTypes].toSorted())
  })

  test.each(transports)('%s: without a credential that counts nobody connects', async (transport) => {
    const { server } = await start()
    for (const auth of [{}, { token: 'expired' }, { token: 'Bearer alice' }, { token: ['alice'] }]) {
      await expect(connectSocket(server.url, transport, { auth })).rejects.toMatchObject({
        data: { code: 'unauthorized' },
      })
    }
  })

  test.each(names)('%s', async (caller) => {
    const { server, run, as } = await start()
    const client = await as(caller)
    const isSeen = sees.has(caller)
    const asked = (type: string, id: string) =>
      client.send(type, { runId: id, toolCallId: id, isError: false, data: 1 })

    // Reading.
    const watched = await client.send('watch_run', { runId: run.id, after: { seq: 0 } })
    expect(watched.ok).toBe(isSeen)
    if (isSeen) await client.until(({ event }) => JSON.stringify(event).includes(canary))
    else {
      const unknown = await client.send('watch_run', { runId: 'run_nobodys', after: { seq: 0 } })
      expect(withoutId(watched, run.id)).toEqual(withoutId(unknown, 'run_nobodys'))
    }

    // Starting: in a thread of its own, whatever its name.
    const started = await client.run(input('mine'))
    expect(started.ok).toBe(caller !== 'other agents')
    if (started.ok) {
      expect(started['threadId']).toBe('chat')
      await client.ended('mine')
      const row = (await server.store.runs.get(started['millraceRunId'] as string))!
      const { id, ...rest } = callers[caller]
      const owner = { owner: id === '' ? undefined : id, tenant: 'tenant' in rest ? rest.tenant : undefined }
      expect({ owner: row.owner, tenant: row.tenant }).toEqual(owner)
      if (caller !== 'alice') expect(row.threadId).not.toBe('chat@@acme/alice')
    }

    // The routes decide for themselves.
    const listed = await client.send('request', { id: 'q', path: '/api/runs?limit=200' })
    expect((listed['body'] as string).includes(run.id)).toBe(isSeen)

    // A result for a call that it does not follow, and a stop.
    expect((await asked('tool_result', 'nobodys')).ok).toBe(false)
    const stopped = await asked('abort_run', run.id)
    expect(stopped.ok).toBe(isSeen)
    if (isSeen) await until(server.store, run.id, ({ type }) => type === 'run-end')
    else {
      expect(withoutId(stopped, run.id)).toEqual(withoutId(await asked('abort_run', 'run_nobodys'), 'run_nobodys'))
      expect(JSON.stringify([client.sent, client.agents])).not.toContain(canary)
      expect((await server.store.runs.get(run.id))?.status).toBe('running')
    }
  })

  test('a client is told of the agents that are open to it', async () => {
    const { as } = await start()
    const told = async (caller: Caller) => JSON.stringify((await as(caller)).agents)
    expect(await told('alice')).toContain('"id":"a"')
    expect(await told('other agents')).not.toContain('"id":"a"')
    expect(everyone).toContain('other agents')
  })
})
