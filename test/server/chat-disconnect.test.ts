/** What it means that a client leaves: `cancel`, `{cancelAfter}`, `detach`, and when it means nothing. */
import { describe, expect, test, onTestFinished } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, until } from '../support/engine.ts'
import { framesOf, readBody, startServer } from '../support/server.ts'
import { messages, begun, ended, resume } from './leaving-client.ts'

describe('chat: disconnect', () => {
  test('cancel: the run ends when its only client leaves', async () => {
    const { server, id, client, model } = await begun('cancel')
    await client.leave()
    expect(await ended(server, id)).toMatchObject({
      outcome: 'aborted',
      error: { message: 'All readers of the answer have disconnected.' },
    })
    expect(model.calls[0]!.aborted).toBe(true)
  })

  test('cancel: one of two clients leaves and the run goes on; followers of the log are no clients', async () => {
    const { server, id, client, gate } = await begun('cancel')
    const second = await resume(server)
    await second.until('half')
    await client.leave()
    const monitor = readBody(await fetch(`${server.url}/api/runs/${id}/events?follow=1`))
    await monitor.until('half')
    await monitor.leave()
    gate.open()
    expect(framesOf(await second.rest()).at(-1)).toBe('done')
    expect(await ended(server, id)).toMatchObject({ outcome: 'completed' })
  })

  test('cancel: a follower of the log does not keep a run alive', async () => {
    const { server, id, client } = await begun('cancel')
    const monitor = readBody(await fetch(`${server.url}/api/runs/${id}/events?follow=1`))
    await monitor.until('half')
    await client.leave()
    expect(await monitor.rest()).toContain('"outcome":"aborted"')
    expect(await ended(server, id)).toMatchObject({ outcome: 'aborted' })
  })

  test('cancelAfter: nobody comes back in time, and the run ends', async () => {
    const { server, id, client } = await begun('{ cancelAfter: 50ms }')
    const left = performance.now()
    await client.leave()
    expect(await ended(server, id)).toMatchObject({ outcome: 'aborted' })
    expect(performance.now() - left).toBeGreaterThan(45)
  })

  test('who looks at a run that no chat started, and leaves, does not stop it', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'half' },
        gate,
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    const server = await startServer({ agents: { a: agent('', 'onDisconnect: cancel') }, scripts: { m: model } })
    onTestFinished(() => server.close())
    const { id } = await server.runtime.start('a', { messages }, { protocol: 'api', threadId: 'c' })
    const passer = await resume(server)
    await passer.until('half')
    await passer.leave()
    await new Promise((resolve) => setTimeout(resolve, 50))
    gate.open()
    expect(await ended(server, id)).toMatchObject({ outcome: 'completed' })
  })

  test('detach: the run goes on alone, and a client that comes later sees all of it', async () => {
    const { server, id, client, gate } = await begun('detach')
    await client.leave()
    const later = await resume(server)
    await later.until('half')
    await later.leave()
    gate.open()
    expect(await ended(server, id)).toMatchObject({ outcome: 'completed' })
    expect(await server.runtime.open(id).then((run) => run!.result)).toMatchObject({ text: 'half whole' })
  })

  test('a client that leaves after the answer’s end, but before it has read it, stops nothing', async () => {
    const gate = latch()
    let signal: AbortSignal | undefined
    const steps = {
      slow: async (_: unknown, context: { signal: AbortSignal }) => {
        signal = context.signal
        await gate.opened
        return 'kept'
      },
    }
    const yaml = `${agent('', 'onDisconnect: cancel')}after:\n  - { id: slow, type: slow, result: slow }\n`
    const model = createScriptedModel([[text('Done.'), finish()]])
    const server = await startServer({ agents: { a: yaml }, steps, scripts: { m: model } })
    onTestFinished(() => server.close())
    // In process, because a socket would have read ahead: this body is never pulled.
    const { createHandler } = await import('../../src/server/handler.ts')
    const handler = createHandler({ runtime: server.runtime })
    const response = await handler(
      new Request('http://test/api/chat', {
        method: 'POST',
        body: JSON.stringify({ agentId: 'a', messages }),
        headers: { 'content-type': 'application/json' },
      }),
    )
    const id = response.headers.get('x-millrace-run-id')!
    await until(server.store, id, ({ type }) => type === 'answer-end')
    await response.body!.cancel()
    await until(server.store, id, (entry) => entry.type === 'step-start' && entry.step === 'after/slow')
    // A stop would have been posted by now: what is asked of the store is answered in order.
    for (const key of ['one', 'two']) await server.store.log.post(id, key, {})
    const posted: string[] = []
    for await (const { key } of server.store.log.inbox(id)) posted.push(key)
    // Where several processes share the store, the readers' policy is posted, for every owner.
    expect(posted.filter((key) => key !== 'disconnect-policy')).toEqual(['one', 'two'])
    expect(signal?.aborted).toBe(false)
    gate.open()
    await ended(server, id)
    const entries = await entriesOf(server.store, id)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
    expect(entries.find((entry) => entry.type === 'step-finish' && entry.step === 'after/slow')).toMatchObject({
      result: 'kept',
    })
  })

  test('an agent that answers JSON: a client that does not wait for it counts as gone', async () => {
    const started = latch()
    let signal: AbortSignal | undefined
    const steps = {
      slow: (_: unknown, context: { signal: AbortSignal }) => {
        signal = context.signal
        started.open()
        return new Promise(() => undefined)
      },
    }
    const yaml = 'onDisconnect: cancel\nworkflow:\n  - { id: slow, type: slow }\n'
    const server = await startServer({ agents: { a: yaml }, steps })
    onTestFinished(() => server.close())
    const leave = new AbortController()
    const answer = server.post('/api/chat', { agentId: 'a', messages }, { signal: leave.signal })
    await started.opened
    leave.abort()
    await expect(answer).rejects.toThrow('aborted')
    let id: string | undefined
    await expect.poll(async () => (id = (await server.store.runs.list())[0]?.id)).toBeTruthy()
    expect(await ended(server, id!)).toMatchObject({ outcome: 'aborted' })
    expect(signal?.aborted).toBe(true)
  })
})
