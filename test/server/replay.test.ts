/** Replay, export and import of runs over HTTP. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text, throws } from '../../src/models/testing/scripted-model.ts'
import { MillraceError } from '../../src/part/error.ts'
import { MillraceClient } from '../../src/client/client.ts'
import { agent, entriesOf } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

const body = { agentId: 'a', messages: [{ role: 'user', content: 'Hi' }] }
const hello = () => createScriptedModel([[text('Hel', 'lo'), finish()]])

async function answered(model = hello()) {
  server = await startServer({ agents: { a: agent('retries: 0') }, scripts: { m: model } })
  const live = await server.post('/api/chat', body)
  const run = live.headers.get('x-millrace-run-id')!
  return { server, live, run, get: (path: string) => fetch(`${server!.url}/api/runs/${run}/${path}`) }
}

describe('replay route', () => {
  test('a run is replayed as it was sent, with the headers of its wire; exported it is its log', async () => {
    const { live, run, get, server } = await answered()
    const sent = await live.text()
    const again = await get('replay?format=ui&speed=max')
    expect(await again.text()).toBe(sent)
    for (const name of ['content-type', 'x-vercel-ai-ui-message-stream', 'x-millrace-run-id', 'cache-control']) {
      expect(again.headers.get(name), name).toBe(live.headers.get(name))
    }
    expect(await (await get('replay?format=text&speed=max&to=99')).json()).toMatchObject({
      error: { code: 'bad-input' },
    })
    expect(await (await get('replay?format=text&speed=max')).text()).toBe('Hello')
    const lines = (await entriesOf(server.store, run)).map((entry) => `${JSON.stringify(entry)}\n`)
    expect(await (await get('replay?speed=max&to=3')).text()).toBe(lines.slice(0, 3).join(''))
    const exported = await get('export')
    expect(await exported.text()).toBe(lines.join(''))
    expect(exported.headers.get('content-type')).toContain('application/x-ndjson')
    expect(exported.headers.get('content-disposition')).toBe(`attachment; filename="${run}.ndjson"`)
  })

  test('an answer that failed fails again: in-band, or as a body that breaks', async () => {
    const refused = createScriptedModel([[text('Hel'), throws(new MillraceError('model-failed', 'It broke.'))]])
    const { live, get } = await answered(refused)
    const sent = await live.text()
    expect(sent).toContain('It broke.')
    expect(await (await get('replay?format=ui&speed=max')).text()).toBe(sent)
    const plain = await get('replay?format=text&speed=max')
    await expect(plain.text()).rejects.toThrow()
  })

  test('of a run that goes on, what is recorded so far is replayed, and the wire says so; a client may leave', async () => {
    const gate = latch()
    const model = createScriptedModel([[text('Hel'), gate, text('lo'), finish()]])
    const { get, run, server, live } = await answered(model)
    await gate.reached
    const far = await (await get('replay?format=ui&speed=max')).text()
    expect(far).toContain(`Run ${run} has not ended: its recording stops here.`)
    expect(far.trimEnd().endsWith('[DONE]')).toBe(true)
    const slow = await get('replay?format=ui&speed=0.1')
    await slow.body!.cancel()
    gate.open()
    await live.text()
    expect(server.reported).toEqual([])
  })

  test.each([
    ['replay?speed=0', 'speed must be a number from 0.1 on, or max.'],
    ['replay?speed=fast', 'speed must be a number from 0.1 on, or max.'],
    [
      'replay?format=uy',
      'format must be one of text, ui, openai, responses, messages, ag-ui, parts, parts-sse (did you mean "ui"?).',
    ],
    ['replay?from=0', 'from must be a whole number from 1 to'],
    ['replay?from=3&to=2', '"to" must be at least 3'],
    ['replay?sped=1', 'Unknown parameter "sped" (did you mean "speed"?)'],
  ])('%s is refused', async (path, message) => {
    const { live, get } = await answered()
    await live.text()
    const refused = await get(path)
    expect(refused.status).toBe(400)
    expect(((await refused.json()) as { error: { message: string } }).error.message).toContain(message)
  })

  test('an export is imported elsewhere once; another run of its id, and what is none, are refused', async () => {
    const { live, get, run } = await answered()
    await live.text()
    const lines = await (await get('export')).text()
    const other = await startServer({ agents: { a: agent() } })
    try {
      const post = (content: string, type = 'application/x-ndjson') =>
        fetch(`${other.url}/api/runs/import`, { method: 'POST', body: content, headers: { 'content-type': type } })
      const first = await post(lines)
      expect([first.status, await first.json()]).toEqual([
        201,
        { id: run, agent: 'a', status: 'completed', lastSeq: lines.split('\n').length - 1 },
      ])
      expect((await post(lines)).status).toBe(200)
      expect(await (await fetch(`${other.url}/api/runs/${run}/export`)).text()).toBe(lines)
      expect(await (await fetch(`${other.url}/api/runs/${run}`)).json()).toEqual(
        await (await fetch(`${server!.url}/api/runs/${run}`)).json(),
      )
      const changed = await post(lines.replace('Hel', 'Hal'))
      expect([changed.status, await changed.json()]).toMatchObject([409, { error: { code: 'run-exists' } }])
      const cut = await post(lines.split('\n').slice(0, 4).join('\n'))
      expect(cut.status).toBe(409)
      const damaged = await post(lines.replace('"seq":2', '"seq":3'))
      expect([damaged.status, await damaged.json()]).toMatchObject([400, { error: { code: 'invalid-recording' } }])
      expect((await post('')).status).toBe(400)
      // A page of another site can send this without being asked.
      expect((await post(lines, 'text/plain')).status).toBe(415)
    } finally {
      await other.close()
    }
  })

  test('a fork is a run of its own; the same key is the same fork; a bad place names good ones', async () => {
    const model = createScriptedModel([
      [text('Hello'), finish()],
      [text('Again'), finish()],
      [text('Other'), finish()],
    ])
    const { live, run, server } = await answered(model)
    await live.text()
    const post = (content: object, headers = {}) => server.post(`/api/runs/${run}/fork`, content, { headers })
    const first = await post({ at: 1 }, { 'Idempotency-Key': 'k' })
    const { id, threadId } = (await first.json()) as { id: string; threadId: string }
    expect([first.status, threadId]).toEqual([201, `thread_${id.slice(4)}`])
    const again = await post({ at: 1 }, { 'Idempotency-Key': 'k' })
    expect([again.status, await again.json()]).toEqual([200, { id, threadId }])
    expect((await post({ at: 2 }, { 'Idempotency-Key': 'k' })).status).toBe(422)
    expect(await (await fetch(`${server.url}/api/runs/${id}/events?follow=1`)).text()).toContain('"Again"')
    const client = new MillraceClient({ url: server.url })
    const other = await client.fork(run, {
      at: 1,
      input: { messages: [{ role: 'user', parts: [{ type: 'text', text: 'Bye' }] }] },
    })
    expect(await (await fetch(`${server.url}/api/runs/${other.id}/events?follow=1`)).text()).toContain('"Other"')
    expect(JSON.stringify(model.calls.at(-1)!.options.prompt)).toContain('Bye')
    for (const [content, message] of [
      [{}, 'at must be the seq of an entry.'],
      [{ at: 99 }, 'Complete steps near it end at 1,'],
      [{ at: 1, input: [] }, 'input must be an object.'],
      [{ at: 1, inptu: {} }, 'did you mean "input"'],
    ] as const) {
      const refused = await post(content)
      expect([refused.status, await refused.text()]).toEqual([
        400,
        expect.stringContaining(JSON.stringify(message).slice(1, -1)),
      ])
    }
    expect((await server.post('/api/runs/none/fork', { at: 1 })).status).toBe(404)
  })

  test('two runs are compared; without ids it is said what is missing', async () => {
    const { live, run, server } = await answered(
      createScriptedModel([
        [text('Hello'), finish()],
        [text('Hello'), finish()],
      ]),
    )
    await live.text()
    const second = await server.post('/api/chat', body)
    await second.text()
    const other = second.headers.get('x-millrace-run-id')!
    const found = await fetch(`${server.url}/api/diff?a=${run}&b=${other}`)
    expect(await found.json()).toMatchObject({ same: true, a: { id: run, text: 'Hello' }, b: { id: other } })
    expect((await fetch(`${server.url}/api/diff?a=${run}`)).status).toBe(400)
    expect((await fetch(`${server.url}/api/diff?a=${run}&b=none`)).status).toBe(404)
  })

  test('what is imported is stored without the secrets of the server, wherever they stand', async () => {
    const { live, get } = await answered()
    await live.text()
    const canary = 'canary-7f3a9c'
    const said = (await (await get('export')).text()).replace('"Hi"', `"${canary}"`)
    const lines = said.replace('"delta":"Hel"', '"delta":"It is cana"').replace('"delta":"lo"', '"delta":"ry-7f3a9c."')
    const other = await startServer({ agents: { a: agent() }, environment: { MY_API_KEY: canary } })
    try {
      const headers = { 'content-type': 'application/x-ndjson' }
      const post = () => fetch(`${other.url}/api/runs/import`, { method: 'POST', body: lines, headers })
      const { id } = (await (await post()).json()) as { id: string }
      expect((await post()).status).toBe(200)
      const stored = await (await fetch(`${other.url}/api/runs/${id}/export`)).text()
      const shown = await (await fetch(`${other.url}/api/runs/${id}`)).text()
      expect(stored + shown).not.toContain(canary)
      expect(shown).toContain('It is [redacted].')
      const { rows } = await other.store.records!.query('SELECT * FROM agent_stream_events')
      expect(JSON.stringify(rows)).not.toContain('canary')
    } finally {
      await other.close()
    }
  })
})
