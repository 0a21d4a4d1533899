/**
 * Where an answer can be when it is stopped × how it is stopped. Always: the model's signal (or the tool's, or the
 * step's) fires within a second, the run ends once, `onAbort` is told the partial text once, and each wire tells its
 * client the truth.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, until, type EngineOptions } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'

let server: TestServer
afterEach(() => server?.close())

const unhandled: unknown[] = []
const note = (reason: unknown) => void unhandled.push(reason)
beforeAll(() => void process.on('unhandledRejection', note))
afterAll(async () => {
  // Rejections are reported once the microtasks are done.
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})

const messages = [{ role: 'user', content: 'Hi' }]

interface Place {
  options: EngineOptions
  /** Resolves when the run has come there. */
  reached(run: string): Promise<unknown>
  /** Whether whoever was at work there has been told. */
  told(): boolean
  partial: string
}

const onAbort = () => {
  const events: unknown[] = []
  return { events, callbacks: { note: (event: unknown) => void events.push(event) } }
}

const top = 'onDisconnect: cancel'
const busy = () => Object.assign(new Error('overloaded'), { statusCode: 503, responseHeaders: {} })

const places: Record<string, () => Place> = {
  'before the first token'() {
    const gate = latch()
    const model = createScriptedModel([[gate, text('never'), finish()]])
    return {
      options: { agents: { a: agent('onAbort: note', top) }, scripts: { m: model } },
      reached: () => gate.reached,
      told: () => model.calls[0]!.aborted,
      partial: '',
    }
  },
  'in the middle of the text'() {
    const gate = latch()
    const model = createScriptedModel([
      [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'half' }, gate, finish()],
    ])
    return {
      options: { agents: { a: agent('onAbort: note', top) }, scripts: { m: model } },
      reached: () => gate.reached,
      told: () => model.calls[0]!.aborted,
      partial: 'half',
    }
  },
  'inside a server tool'() {
    const started = latch()
    let signal: AbortSignal | undefined
    const slow = {
      parameters: z.object({}),
      execute: (_: unknown, context: { signal: AbortSignal }) => {
        signal = context.signal
        started.open()
        return new Promise(() => undefined)
      },
    }
    const model = createScriptedModel([[text('half'), toolCall('c1', 'slow'), finish('tool-calls')]])
    return {
      options: {
        agents: { a: agent('onAbort: note\ntools: [slow]', top) },
        tools: { slow },
        scripts: { m: model },
      },
      reached: () => started.opened,
      told: () => signal?.aborted === true,
      partial: 'half',
    }
  },
  'in the pause before another try'() {
    const model = createScriptedModel([[throws(busy())], [throws(busy())], [throws(busy())], [throws(busy())]])
    let asked = 0
    return {
      options: { agents: { a: agent('onAbort: note\nretries: 20', top) }, scripts: { m: model } },
      async reached(run) {
        await until(server.store, run, (entry) => entry.type === 'retry' && entry.delay >= 1000)
        asked = model.calls.length
      },
      // No call is under way that could be aborted: none may follow.
      told: () => model.calls.length === asked,
      partial: '',
    }
  },
  'in a slow step of one’s own before the answer'() {
    const started = latch()
    let signal: AbortSignal | undefined
    const yaml = `${top}
workflow:
  - { id: slow, type: slow }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, onAbort: note } }
`
    return {
      options: {
        agents: { a: yaml },
        steps: {
          slow: (_: unknown, context: { signal: AbortSignal }) => {
            signal = context.signal
            started.open()
            return new Promise(() => undefined)
          },
        },
        scripts: { m: createScriptedModel([]) },
      },
      reached: () => started.opened,
      told: () => signal?.aborted === true,
      partial: 'not asked',
    }
  },
}

const wires = {
  text: { path: '/api/beddel/chat', accept: 'text/plain' },
  ui: { path: '/api/chat', accept: '*/*' },
}

async function begin(place: Place, wire: keyof typeof wires, callbacks: EngineOptions['callbacks']) {
  server = await startServer({ ...place.options, callbacks: callbacks! })
  const leave = new AbortController()
  const { path, accept } = wires[wire]
  const answer = server.post(path, { agentId: 'a', messages, id: 'c' }, { headers: { accept }, signal: leave.signal })
  // A request whose client leaves rejects; who waits for it is told below.
  answer.catch(() => undefined)
  let id: string | undefined
  await expect.poll(async () => (id = (await server.store.runs.list())[0]?.id)).toBeTruthy()
  await place.reached(id!)
  return { id: id!, answer, leave }
}

async function expectAborted(id: string, place: Place, events: unknown[]) {
  await until(server.store, id, ({ type }) => type === 'run-end')
  expect(place.told()).toBe(true)
  const entries = await entriesOf(server.store, id)
  expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'aborted', error: { code: 'aborted' } }])
  expect(only(entries, 'answer-end')).toEqual([])
  if (place.partial === 'not asked') expect(events).toEqual([])
  else expect(events).toMatchObject([{ text: place.partial, reason: expect.any(String) }])
  expect(server.reported).toEqual([])
}

describe('chat: abort', () => {
  test.each(Object.keys(places).flatMap((name) => ['text', 'ui'].map((wire) => [name, wire] as const)))(
    'the stop route, %s, told in %s and in NDJSON',
    async (name, wire) => {
      const place = places[name]!()
      const { events, callbacks } = onAbort()
      const { id, answer } = await begin(place, wire as 'ui', callbacks)
      const log = readBody(await fetch(`${server.url}/api/runs/${id}/events?follow=1`))
      expect((await server.post(`/api/runs/${id}/stop`, {})).status).toBe(202)
      const response = await answer
      if (wire === 'ui') {
        expect(response.status).toBe(200)
        const frames = framesOf(await response.text())
        expect(frames.slice(-2)).toEqual([{ type: 'abort' }, 'done'])
        expect(
          frames.filter((frame) => frame !== 'done' && ['abort', 'finish', 'error'].includes(String(frame['type']))),
        ).toHaveLength(1)
      } else if (response.ok) {
        const body = readBody(response)
        await expect(body.rest()).rejects.toThrow('terminated')
        expect(body.text).toBe(place.partial === 'not asked' ? '' : place.partial)
      } else {
        // Nothing had been sent: then a status tells more than a broken transfer.
        expect(response.status).toBe(409)
        expect(await response.json()).toMatchObject({ error: { code: 'aborted' } })
      }
      await expectAborted(id, place, events)
      const lines = (await log.rest())
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { type: string })
      expect(lines.filter(({ type }) => type === 'run-end')).toHaveLength(1)
      expect(lines.at(-1)).toMatchObject({ type: 'run-end', outcome: 'aborted' })
    },
  )

  test.each(Object.keys(places).flatMap((name) => ['text', 'ui'].map((wire) => [name, wire] as const)))(
    'the client leaves, %s, reading %s',
    async (name, wire) => {
      const place = places[name]!()
      const { events, callbacks } = onAbort()
      const { id, leave } = await begin(place, wire as 'ui', callbacks)
      leave.abort()
      await expectAborted(id, place, events)
    },
  )

  const pick = { name: 'pick', parameters: { type: 'object', properties: {} } }

  async function suspended() {
    const { events, callbacks } = onAbort()
    const model = createScriptedModel([[text('half'), toolCall('c1', 'pick'), finish('tool-calls')]])
    server = await startServer({ agents: { a: agent('onAbort: note', top) }, callbacks, scripts: { m: model } })
    const response = await server.post('/api/chat', { agentId: 'a', messages, id: 'c', tools: [pick] })
    const id = response.headers.get('x-millrace-run-id')!
    return { id, events, response }
  }

  test('the stop route while the run waits for its client: ended at once, `onAbort` is told', async () => {
    const { id, events, response } = await suspended()
    expect(framesOf(await response.text()).at(-2)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' })
    const stops = await Promise.all([1, 2, 3].map(() => server.post(`/api/runs/${id}/stop`, {})))
    expect(stops.map(({ status }) => status)).toEqual([202, 202, 202])
    await until(server.store, id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(server.store, id)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'aborted' }])
    expect(only(entries, 'tool-result')).toMatchObject([{ toolCallId: 'c1', outcome: 'aborted' }])
    expect(only(entries, 'response')).toMatchObject([{ outcome: 'closed' }])
    expect(events).toMatchObject([{ text: 'half' }])
  })

  test('a client that leaves a suspended run changes nothing: it waits as long as its deadline says', async () => {
    const { id, events, response } = await suspended()
    const body = readBody(response)
    await body.until('half')
    await until(server.store, id, ({ type }) => type === 'suspend')
    await body.leave()
    const stream = await fetch(`${server.url}/api/runs/${id}/requests`)
    expect(await stream.json()).toMatchObject({ requests: [{ toolCallId: 'c1' }] })
    expect((await server.store.runs.get(id))?.status).toBe('suspended')
    expect(events).toEqual([])
  })

  test('a real model server’s socket closes within a second of a stop, and of a disconnect', async () => {
    const upstream = await startUpstream((reply) => reply.say('half'))
    const models = { endpoints: [{ name: 'local', baseURL: upstream.baseURL }] }
    server = await startServer({ agents: { a: agent('', top).replace('script:m', 'local:m') }, models })
    for (const how of ['stop', 'leave']) {
      const response = await server.post('/api/beddel/chat', { agentId: 'a', messages })
      const body = readBody(response)
      await body.until('half')
      if (how === 'leave') await body.leave()
      else await server.post(`/api/runs/${response.headers.get('x-millrace-run-id')}/stop`, {})
      await upstream.requests.at(-1)!.left
      if (how === 'stop') await expect(body.rest()).rejects.toThrow('terminated')
    }
    await upstream.close()
  })

  test('a model that is deaf to its signal holds nobody up', async () => {
    const { events, callbacks } = onAbort()
    const gate = latch()
    const script = [
      { type: 'text-start' as const, id: 't' },
      { type: 'text-delta' as const, id: 't', delta: 'half' },
      gate,
    ]
    const model = createScriptedModel([script], { deaf: true })
    server = await startServer({ agents: { a: agent('onAbort: note') }, callbacks, scripts: { m: model } })
    const response = await server.post('/api/chat', { agentId: 'a', messages })
    const body = readBody(response)
    await body.until('half')
    await server.post(`/api/runs/${response.headers.get('x-millrace-run-id')}/stop`, {})
    expect(framesOf(await body.rest()).slice(-2)).toEqual([{ type: 'abort' }, 'done'])
    expect(events).toMatchObject([{ text: 'half' }])
    gate.open()
  })
})
