/** A store that breaks under a run: clients are told at once, nothing hangs, and the log is ended when it works again. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { agent, entriesOf, only, taken, until } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const messages = [{ role: 'user', content: 'Hi' }]
const body = { agentId: 'a', messages, id: 'c' }

/** Refuses every append while it is broken, or from the first batch on that `breaksAt` knows. */
function breakable({ breaksAt, reads = false }: { breaksAt?: (entry: Entry) => boolean; reads?: boolean } = {}) {
  const state = { broken: false, refused: 0 }
  const refuse = () => {
    state.refused++
    return Promise.reject(new Error('SQLITE_IOERR: /var/lib/secret-path'))
  }
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      append(run, epoch, given) {
        const entries = taken(given)
        state.broken ||= breaksAt !== undefined && entries.some(breaksAt)
        return state.broken ? refuse() : store.log.append(run, epoch, entries)
      },
    },
    runs: {
      ...store.runs,
      get: (run) => (state.broken && reads ? refuse() : store.runs.get(run)),
      list: (query) => (state.broken && reads ? refuse() : store.runs.list(query)),
    },
  })
  return { state, wrapStore }
}

const heldAfterHalf = (gate: ReturnType<typeof latch>) =>
  createScriptedModel([
    [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'half' },
      gate,
      { type: 'text-delta', id: 't', delta: ' whole' },
      { type: 'text-end', id: 't' },
      finish(),
    ],
  ])

describe('chat: store failures', () => {
  test.each([
    ['ui', '/api/chat', false],
    ['text', '/api/beddel/chat', false],
    ['ui, and nothing can be read either', '/api/chat', true],
  ])('%s: the store breaks mid-run', async (_, path, reads) => {
    const gate = latch()
    const { state, wrapStore } = breakable({ reads })
    const failed: unknown[] = []
    const callbacks = {
      failed: (event: unknown) => void failed.push(event),
      never: () => void failed.push('finished or aborted'),
    }
    const model = heldAfterHalf(gate)
    server = await startServer({
      agents: { a: agent('onError: failed\nonFinish: never\nonAbort: never') },
      callbacks,
      scripts: { m: model },
      wrapStore,
    })
    const response = await server.post(path, body)
    const id = response.headers.get('x-millrace-run-id')!
    const client = readBody(response)
    const monitor = readBody(await fetch(`${server.url}/api/runs/${id}/events?follow=1`))
    await Promise.all([client.until('half'), monitor.until('half')])
    const result = server.runtime.handle(id, 'c').result
    state.broken = true
    gate.open()
    if (path === '/api/chat') {
      const frames = framesOf(await client.rest())
      expect(frames.at(-2)).toEqual({ type: 'error', errorText: 'The run could not be recorded.' })
      expect(frames.at(-1)).toBe('done')
    } else await expect(client.rest()).rejects.toThrow('terminated')
    expect(client.text).not.toContain('whole')
    expect((await monitor.rest()).trimEnd().split('\n').at(-1)).toContain('"store-failed"')
    expect(await result).toMatchObject({ outcome: 'failed' })
    expect(failed).toMatchObject([{ error: { code: 'store-failed' } }])
    expect(model.calls[0]!.aborted).toBe(true)
    expect(server.runtime.active).toBe(0)

    // Who comes while it is broken is told as well, and does not wait for ever.
    const late = await fetch(`${server.url}/api/chat/c/stream`)
    expect(late.status === 200 ? await late.text() : String(late.status)).toMatch(/could not be recorded|^50\d/u)

    const before = state.refused
    await expect.poll(() => state.refused).toBeGreaterThan(before)
    state.broken = false
    await until(server.store, id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(server.store, id)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'failed' }])
    expect(only(entries, 'text-delta').map(({ delta }) => delta)).toEqual(['half'])
    expect((await fetch(`${server.url}/api/chat/c/stream`)).status).toBe(204)
  })

  test('a store that refuses the first entry is a 503, without what the disk said', async () => {
    const { wrapStore } = breakable({ breaksAt: () => true })
    server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel([]) }, wrapStore })
    const answers = await Promise.all(
      [1, 2].map(() => server.post('/api/chat', { ...body, messages: [{ id: 'm', role: 'user', content: 'Hi' }] })),
    )
    for (const answer of answers) {
      expect(answer.status).toBe(503)
      expect(await answer.text()).not.toContain('SQLITE')
    }
  })

  test('a store that breaks before the model has spoken is a 503 as well, for JSON agents too', async () => {
    const breaksAt = ({ type }: Entry) => type === 'text-start' || type === 'finish'
    const { state, wrapStore } = breakable({ breaksAt })
    const json = agent().replace('stream: true', 'stream: false')
    const model = createScriptedModel([
      [text('Hi'), finish()],
      [text('Hi'), finish()],
    ])
    server = await startServer({ agents: { a: agent(), b: json }, scripts: { m: model }, wrapStore })
    for (const agentId of ['a', 'b']) {
      state.broken = false
      const answer = await server.post('/api/chat', { agentId, messages })
      expect(answer.status).toBe(503)
      expect(await answer.json()).toMatchObject({ error: { code: 'store-failed' } })
    }
  })

  test('a tool does not run when its call could not be recorded', async () => {
    let ran = false
    const breaksAt = (entry: Entry) => entry.type === 'step-start' && entry.toolCallId !== undefined
    const { wrapStore } = breakable({ breaksAt })
    const model = createScriptedModel([[text('Let me.'), toolCall('c1', 'act'), finish('tool-calls')]])
    const act = { parameters: { type: 'object', properties: {} }, execute: () => (ran = true) }
    server = await startServer({
      agents: { a: agent('tools: [act]') },
      tools: { act },
      scripts: { m: model },
      wrapStore,
    })
    const answer = await server.post('/api/chat', body)
    // A status or a frame, depending on what had been stored by then.
    expect(await answer.text()).toContain('The run could not be recorded.')
    expect(ran).toBe(false)
  })
})
