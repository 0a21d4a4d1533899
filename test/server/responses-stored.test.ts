/** The routes of a response that is there: as JSON, its events from any number, cancelled, deleted, its input; and in the background. */
import OpenAI from 'openai'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createScriptedModel, finish, latch, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { compactRuns } from '../../src/record/upkeep.ts'
import { agent, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const path = '/v1/responses'

async function start(script: ScriptStep[][], handler: Partial<HandlerOptions> = {}) {
  server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel(script) } }, handler)
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
  return { server, client }
}

const framesOf = (body: string) => body.split(/(?<=\n\n)/u)
const numberOf = (frame: string) => Number(/"sequence_number":(\d+)/u.exec(frame)?.[1])
const at = (id: string, query = '') => fetch(`${server!.url}${path}/${id}${query}`)

describe('GET /v1/responses/:id', () => {
  test('the JSON is that of the answer; as events it is the stream, byte by byte, from every number', async () => {
    const { server, client } = await start([[text('Hel', 'lo'), finish()]])
    const whole = await (await server.post(path, { model: 'a', input: 'Hi', stream: true })).text()
    const { id } = (await client.responses.retrieve(/resp_[^"]+/u.exec(whole)![0])) as { id: string }
    const last = JSON.parse(framesOf(whole).at(-2)!.split('data: ')[1]!) as { response: object }
    expect(await (await at(id)).json()).toEqual(last.response)
    expect(await (await at(id, '?stream=true')).text()).toBe(whole)
    const frames = framesOf(whole)
    for (const [i, frame] of frames.slice(0, -1).entries()) {
      const rest = await (await at(id, `?stream=true&starting_after=${numberOf(frame)}`)).text()
      expect(frames.slice(0, i + 1).join('') + rest).toBe(whole)
    }
  })

  test('while the run goes on: the events so far and those to come', async () => {
    const gate = latch()
    const { server, client } = await start([[text('Hel'), gate, text('lo'), finish()]])
    const live = await server.post(path, { model: 'a', input: 'Hi', stream: true })
    const run = live.headers.get('x-millrace-run-id')!
    await until(server.store, run, ({ type }) => type === 'text-delta')
    expect(await client.responses.retrieve(`resp_${run}`)).toMatchObject({
      status: 'in_progress',
      output: [{ content: [{ text: 'Hel' }] }],
    })
    const followed = await at(`resp_${run}`, '?stream=true&starting_after=65')
    gate.open()
    const [whole, rest] = await Promise.all([live.text(), followed.text()])
    expect(framesOf(whole).slice(0, 2).join('') + rest).toBe(whole)
  })

  test('the helper of openai reads a response that is there, and one from the middle', async () => {
    const { client } = await start([[text('Hel', 'lo'), finish()]])
    const { id } = await client.responses.create({ model: 'a', input: 'Hi' })
    const stream = client.responses.stream({ response_id: id })
    expect((await stream.finalResponse()).output_text).toBe('Hello')
    const later: string[] = []
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: 65 })) {
      later.push(event.type)
    }
    expect(later).not.toContain('response.created')
    expect(later.at(-1)).toBe('response.completed')
  })

  test('a run that was started elsewhere is a response, too', async () => {
    const { server, client } = await start([[text('Hello'), finish()]])
    const run = await server.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] }, { protocol: 'cli' })
    await run.result
    const response = await client.responses.retrieve(`resp_${run.id}`)
    expect([response.output_text, response.status, response.model]).toEqual(['Hello', 'completed', 'a'])
  })

  test('a wrong id, a number beyond the end, a wrong parameter', async () => {
    const { client } = await start([[text('Hello'), finish()]])
    const { id } = await client.responses.create({ model: 'a', input: 'Hi' })
    for (const wrong of ['resp_nosuch', 'nosuch', id.slice(5)]) {
      const response = await at(wrong)
      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error', code: 'not-found' } })
    }
    for (const query of [
      '?stream=true&starting_after=1000000',
      '?stream=true&starting_after=x',
      '?stream=maybe',
      '?strem=true',
    ]) {
      expect([query, (await at(id, query)).status]).toEqual([query, 400])
    }
  })

  test('where nobody is asked who they are, no response is shown', async () => {
    const { server } = await start([[text('Hello'), finish()]], { authorize: undefined } as never)
    const { id } = (await (await server.post(path, { model: 'a', input: 'Hi' })).json()) as { id: string }
    expect((await at(id)).status).toBe(403)
    expect((await at(id, '/input_items')).status).toBe(403)
  })
})

describe('a compacted run', () => {
  test('has the same items and numbers; a number inside of merged deltas is 410', async () => {
    const { server } = await start([[text('Hel', 'lo', ' you', '.'), finish()]])
    const whole = await (await server.post(path, { model: 'a', input: 'Hi', stream: true })).text()
    const id = /resp_[^"]+/u.exec(whole)![0]
    const before = (await (await at(id)).json()) as object
    await compactRuns(server.store.upkeep!, { endedBefore: Infinity })
    expect(await (await at(id)).json()).toEqual(before)
    const frames = framesOf(whole)
    const deltas = frames.filter((frame) => frame.includes('output_text.delta'))
    const inside = await at(id, `?stream=true&starting_after=${numberOf(deltas[1]!)}`)
    expect(inside.status).toBe(410)
    expect(await inside.json()).toMatchObject({ error: { code: 'compacted' } })
    const behind = frames.indexOf(deltas.at(-1)!) + 1
    const rest = await (await at(id, `?stream=true&starting_after=${numberOf(deltas.at(-1)!)}`)).text()
    expect(rest).toBe(frames.slice(behind).join(''))
  })
})

describe('what is not to be stored', () => {
  test('ten minutes after its end it is not found', async () => {
    const { client } = await start([[text('Hello'), finish()]])
    const { id } = await client.responses.create({ model: 'a', input: 'Hi', store: false })
    expect((await at(id)).status).toBe(200)
    const real = Date.now.bind(Date)
    const later = (minutes: number) => vi.spyOn(Date, 'now').mockImplementation(() => real() + minutes * 60_000)
    onTestFinished(() => void vi.restoreAllMocks())
    later(9)
    expect((await at(id)).status).toBe(200)
    later(11)
    expect((await at(id)).status).toBe(404)
  })
})

describe('the background', () => {
  test('it answers before the first token, goes on without its client, and is polled', async () => {
    const gate = latch()
    const { client, server } = await start([[gate, text('Done'), finish()]])
    const first = await client.responses.create({ model: 'a', input: 'Hi', background: true })
    expect(['queued', 'in_progress']).toContain(first.status)
    expect(first).toMatchObject({ background: true, output: [] })
    gate.open()
    await until(server.store, first.id.slice(5), ({ type }) => type === 'run-end')
    expect(await client.responses.retrieve(first.id)).toMatchObject({ status: 'completed', output_text: 'Done' })
  })

  test('cancel ends it, and is answered again', async () => {
    const gate = latch()
    const { client } = await start([[text('Half'), gate, finish()]])
    const { id } = await client.responses.create({ model: 'a', input: 'Hi', background: true })
    const cancelled = await client.responses.cancel(id)
    expect(cancelled).toMatchObject({ status: 'cancelled', error: null })
    expect(await client.responses.cancel(id)).toEqual(cancelled)
    expect((await client.responses.retrieve(id)).status).toBe('cancelled')
    // Its stream has no such end.
    expect(await (await at(id, '?stream=true')).text()).toContain('event: response.incomplete')
  })

  test('a stream in the background: leaving changes nothing', async () => {
    const gate = latch()
    const { server, client } = await start([[text('Hel'), gate, text('lo'), finish()]])
    const leave = new AbortController()
    const live = await server.post(
      path,
      { model: 'a', input: 'Hi', background: true, stream: true },
      { signal: leave.signal },
    )
    const run = live.headers.get('x-millrace-run-id')!
    await until(server.store, run, ({ type }) => type === 'text-delta')
    leave.abort()
    gate.open()
    await until(server.store, run, ({ type }) => type === 'run-end')
    expect((await client.responses.retrieve(`resp_${run}`)).output_text).toBe('Hello')
  })
})

describe('the rest of a response', () => {
  test('its input items, by pages and order', async () => {
    const { client } = await start([[text('Hello'), finish()]])
    const { id } = await client.responses.create({
      model: 'a',
      instructions: 'Rules',
      input: [
        { role: 'developer', content: 'Be brief' },
        { role: 'user', content: 'One' },
        { role: 'assistant', content: 'Two' },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output: 'three' },
        { role: 'user', content: [{ type: 'input_text', text: 'Four' }] },
      ],
    })
    const kinds = async (query: OpenAI.Responses.InputItemListParams) => {
      const found: string[] = []
      for await (const item of client.responses.inputItems.list(id, query)) {
        found.push('role' in item ? String(item.role) : String(item.type))
      }
      return found
    }
    const all = ['system', 'user', 'assistant', 'function_call', 'function_call_output', 'user']
    expect(await kinds({ order: 'asc', limit: 2 })).toEqual(all)
    expect(await kinds({})).toEqual(all.toReversed())
    expect((await at(id, '/input_items?after=nosuch')).status).toBe(400)
  })

  test('it is deleted with its run; one that goes on is not', async () => {
    const gate = latch()
    const { client } = await start([
      [text('Hello'), finish()],
      [gate, finish()],
    ])
    const { id } = await client.responses.create({ model: 'a', input: 'Hi' })
    const deleted = await fetch(`${server!.url}${path}/${id}`, { method: 'DELETE' })
    expect(await deleted.json()).toEqual({ id, object: 'response', deleted: true })
    expect((await at(id)).status).toBe(404)
    const { id: open } = await client.responses.create({ model: 'a', input: 'Hi', background: true })
    expect((await fetch(`${server!.url}${path}/${open}`, { method: 'DELETE' })).status).toBe(409)
    gate.open()
  })

  test('tokens are counted without a run or a model', async () => {
    const { server, client } = await start([])
    const counts = await Promise.all(
      Array.from({ length: 26 }, () => client.responses.inputTokens.count({ model: 'a', input: 'x'.repeat(400) })),
    )
    expect(counts[0]).toEqual({ object: 'response.input_tokens', input_tokens: 100 })
    expect(await server.store.runs.list()).toEqual([])
    const image = [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://example.com/a.png' }] }]
    const more = await server.post(`${path}/input_tokens`, { model: 'a', input: image })
    expect(await more.json()).toMatchObject({ input_tokens: 1500 })
  })

  test('compaction is not there, and says so', async () => {
    const { server } = await start([])
    const response = await server.post(`${path}/compact`, { model: 'a', input: 'Hi' })
    expect(response.status).toBe(404)
    expect(await response.text()).toContain('not supported')
  })
})
