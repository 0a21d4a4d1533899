/** Starting, stopping, answering and listing runs over HTTP. */
import { afterEach, describe, expect, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const say = (content: string) => ({ agentId: 'a', input: { messages: [{ role: 'user', content }] } })
const idOf = async (response: Response) => ((await response.json()) as { id: string }).id
const list = async (search = '') =>
  ((await (await fetch(`${server.url}/api/runs${search}`)).json()) as { runs: RunRow[] }).runs
const ended = (run: string) => until(server.store, run, ({ type }) => type === 'run-end')

describe('run routes', () => {
  test('a start answers 202 with the id before the run has ended; the run needs no reader', async () => {
    const gate = latch()
    server = await startServer({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[text('a'), gate, text('b'), finish()]]) },
    })
    const response = await server.post('/api/runs', say('Hi'))
    expect(response.status).toBe(202)
    const id = await idOf(response)
    expect(response.headers.get('x-millrace-run-id')).toBe(id)
    expect(await (await fetch(`${server.url}/api/runs/${id}`)).json()).toMatchObject({ id, status: 'running' })
    gate.open()
    await ended(id)
    expect(await (await fetch(`${server.url}/api/runs/${id}`)).json()).toMatchObject({
      id,
      status: 'completed',
      text: 'ab',
      usage: { inputTokens: 10 },
    })
  })

  test('twenty starts at once with one Idempotency-Key are one run, which all of them can read at once', async () => {
    const model = createScriptedModel([
      [text('once'), finish()],
      [text('other'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const headers = { 'idempotency-key': 'order-1' }
    const responses = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const response = await server.post('/api/runs', say('Hi'), { headers })
        const id = await idOf(response)
        const shown = await fetch(`${server.url}/api/runs/${id}`)
        return [response.status, id, shown.status]
      }),
    )
    const [, id] = responses[0]!
    expect(responses).toEqual(Array.from({ length: 20 }, () => [202, id, 200]))
    await ended(String(id))
    // Long after: still the same one.
    expect(await idOf(await server.post('/api/runs', say('Hi'), { headers }))).toBe(id)
    const other = await idOf(await server.post('/api/runs', say('Hi'), { headers: { 'idempotency-key': 'order-2' } }))
    expect(other).not.toBe(id)
    await ended(other)
    expect(model.calls).toHaveLength(2)
    expect(await list()).toHaveLength(2)
  })

  test('in a thread runs queue, and the second sees what the first answered', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [text('Nice to meet you, '), gate, text('Ada.'), finish()],
      [text('Ada'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const first = await idOf(await server.post('/api/runs', { ...say('I am Ada'), threadId: 't' }))
    await gate.reached
    const second = await idOf(await server.post('/api/runs', { ...say('Who am I?'), threadId: 't' }))
    expect(model.calls).toHaveLength(1)
    gate.open()
    const end = await ended(second)
    expect((await ended(first)).timestamp).toBeLessThanOrEqual(end.timestamp)
    expect(model.calls[1]!.options.prompt.map(({ role, content }) => [role, JSON.stringify(content)])).toEqual([
      ['user', expect.stringContaining('I am Ada')],
      ['assistant', expect.stringMatching(/Nice to meet you, .*Ada\./)],
      ['user', expect.stringContaining('Who am I?')],
    ])
    const prompt = only(await entriesOf(server.store, second), 'prompt')[0]!
    expect(prompt.timestamp).toBeGreaterThanOrEqual((await ended(first)).timestamp)
  })

  test('stopping ends the run within a second, as often as it is asked for; an unknown run is 404', async () => {
    const gate = latch()
    server = await startServer({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[text('a'), gate, finish()]]) },
    })
    const id = await idOf(await server.post('/api/runs', say('Hi')))
    await gate.reached
    const stop = () => server.post(`/api/runs/${id}/stop`, {})
    expect((await Promise.all([stop(), stop(), stop()])).map(({ status }) => status)).toEqual([202, 202, 202])
    expect(await ended(id)).toMatchObject({ outcome: 'aborted' })
    expect((await stop()).status).toBe(202)
    expect(only(await entriesOf(server.store, id), 'run-end')).toHaveLength(1)
    expect((await server.post('/api/runs/run_none/stop', {})).status).toBe(404)
  })

  test('a queued run can be stopped before its turn has come', async () => {
    const gate = latch()
    const model = createScriptedModel([[text('a'), gate, finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const first = await idOf(await server.post('/api/runs', { ...say('1'), threadId: 't' }))
    await gate.reached
    const second = await idOf(await server.post('/api/runs', { ...say('2'), threadId: 't' }))
    await server.post(`/api/runs/${second}/stop`, {})
    expect(await ended(second)).toMatchObject({ outcome: 'aborted' })
    gate.open()
    expect(await ended(first)).toMatchObject({ outcome: 'completed' })
    expect(model.calls).toHaveLength(1)
  })

  test('requests: listed, answered once; the same again is a duplicate, another answer a conflict', async () => {
    server = await startServer({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: { parameters: { type: 'object', properties: {} } } },
      scripts: {
        m: createScriptedModel([
          [toolCall('c1', 'ask', { q: 1 }), finish('tool-calls')],
          [text('ok'), finish()],
        ]),
      },
    })
    const id = await idOf(await server.post('/api/runs', say('Hi')))
    await until(server.store, id, ({ type }) => type === 'suspend')
    const url = `/api/runs/${id}/requests`
    const { requests } = (await (await fetch(server.url + url)).json()) as {
      requests: { requestId: string; toolCallId: string }[]
    }
    expect(requests).toMatchObject([{ toolCallId: 'c1' }])
    const { requestId } = requests[0]!
    const answer = async (body: unknown, at = requestId) => {
      const response = await server.post(`${url}/${encodeURIComponent(at)}`, body)
      const said = (await response.json()) as Record<string, unknown>
      return { ...said, status: response.status } as Record<string, unknown>
    }

    expect(await answer({})).toMatchObject({ status: 400, error: { code: 'bad-input' } })
    // A yes is no result of a tool: the run must not take it for one.
    expect(await answer({ approved: true })).toMatchObject({
      status: 400,
      error: {
        code: 'bad-input',
        message: expect.stringContaining('must be answered with the result of a tool (output)'),
      },
    })
    expect(await answer({ output: 1 }, 'nothing')).toMatchObject({ status: 404, error: { code: 'unknown-request' } })
    const both = await Promise.all([answer({ output: { n: 7 } }), answer({ output: { n: 7 } })])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    expect(both.filter(({ duplicate }) => duplicate === true)).toHaveLength(1)
    await ended(id)
    expect(await answer({ output: { n: 7 } })).toMatchObject({
      status: 200,
      duplicate: true,
      answer: { kind: 'tool', output: { n: 7 } },
    })
    expect(await answer({ output: { n: 8 } })).toMatchObject({ status: 409, error: { code: 'answer-conflict' } })
    expect(await (await fetch(server.url + url)).json()).toEqual({ requests: [] })
    expect((await fetch(`${server.url}/api/runs/run_none/requests`)).status).toBe(404)
    expect((await server.post(`/api/runs/run_none/requests/${requestId}`, { output: 1 })).status).toBe(404)
    expect(only(await entriesOf(server.store, id), 'response')).toHaveLength(1)
  })

  test('runs are listed newest first, by agent, thread, status and words, page by page', async () => {
    const model = createScriptedModel(Array.from({ length: 7 }, () => [text('x'), finish()]))
    server = await startServer({ agents: { a: agent(), b: agent() }, scripts: { m: model } })
    const ids: string[] = []
    for (let i = 0; i < 7; i++) {
      const threadId = `t${i % 3}`
      const body = { ...say(`Word${i} about 100% _Möwen_`), agentId: i < 5 ? 'a' : 'b', threadId }
      const id = await idOf(await server.post('/api/runs', body))
      await ended(id)
      ids.unshift(id)
    }
    const found = async (search: string) => (await list(search)).map(({ id }) => id)
    expect(await found('')).toEqual(ids)
    expect(await found('?agent=b')).toEqual(ids.slice(0, 2))
    expect(await found('?thread=t0')).toEqual([ids[0], ids[3], ids[6]])
    expect(await found('?status=completed&agent=a')).toEqual(ids.slice(2))
    expect(await found('?status=running')).toEqual([])
    expect(await found('?q=word3')).toEqual([ids[3]])
    expect(await found('?q=%25')).toEqual(ids)
    expect(await found(`?q=${encodeURIComponent('MÖWEN 100%')}`)).toEqual(ids)
    const pages: string[][] = []
    for (let before = ''; ;) {
      const page = await found(`?limit=3${before}`)
      if (page.length === 0) break
      pages.push(page)
      before = `&before=${page.at(-1)}`
    }
    expect(pages).toEqual([ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)])
    expect((await fetch(`${server.url}/api/runs?before=run_none`)).status).toBe(404)
    expect(await found(`?q=${'x'.repeat(200)}`)).toEqual([])
    for (const [bad, message] of [
      ['limit=0', 'limit must be a whole number from 1 to 1000.'],
      ['limit=1001', 'limit must be a whole number from 1 to 1000.'],
      ['limit=x', 'limit must be a whole number from 1 to 1000.'],
      ['limit=', 'limit must be a whole number from 1 to 1000.'],
      ['limit=1&limit=2', 'limit must be given once.'],
      [`limit=${'1'.repeat(1000)}`, 'limit must be at most 20 characters long.'],
      ['before=', 'before must be the id of a run.'],
      [`before=${'r'.repeat(257)}`, 'before must be at most 256 characters long.'],
      ['status=runing', 'interrupted (did you mean "running"?).'],
      [`q=${'x'.repeat(201)}`, 'q must be at most 200 characters long.'],
      [`agent=${'x'.repeat(257)}`, 'agent must be at most 256 characters long.'],
      [`thread=${'x'.repeat(2049)}`, 'thread must be at most 2048 characters long.'],
      ['statsu=running', 'Unknown parameter "statsu" (did you mean "status"?). Known: agent, thread, status,'],
      ['threadId=t0', 'Unknown parameter "threadId"'],
      ['__proto__=x', 'Unknown parameter "__proto__"'],
    ] as const) {
      const response = await fetch(`${server.url}/api/runs?${bad}`)
      const { error } = (await response.json()) as { error: { code: string; message: string } }
      expect([bad, response.status, error.code]).toEqual([bad, 400, 'bad-input'])
      expect(error.message).toContain(message)
    }
  })

  test.each([
    ['the reason that it is given', '{"reason": "Wrong page."}', 'Wrong page.'],
    ['at most 500 characters of it', JSON.stringify({ reason: 'x'.repeat(600) }), 'x'.repeat(500)],
    ['words of its own without one', '', 'Stopped by request.'],
    ['words of its own for a reason that is none', '{"reason": 5}', 'Stopped by request.'],
    ['words of its own for a body that is no JSON', 'nonsense', 'Stopped by request.'],
  ])('a stop records %s', async (_, body, message) => {
    server = await startServer({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[text('a'), latch(), finish()]]) },
    })
    const id = await idOf(await server.post('/api/runs', say('Hi')))
    await until(server.store, id, ({ type }) => type === 'text-delta')
    const headers = { 'content-type': 'application/json' }
    const stopped = await fetch(`${server.url}/api/runs/${id}/stop`, { method: 'POST', headers, body })
    expect(stopped.status).toBe(202)
    await ended(id)
    expect(await (await fetch(`${server.url}/api/runs/${id}`)).json()).toMatchObject({
      status: 'aborted',
      error: { message },
    })
  })
})
