/** Whose conversation a request of `/v1/responses` goes on with, and which run answers it: callers, retries, approvals, busy threads. */
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { callers, createTestAccess, headersFor } from '../support/callers.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'

const path = '/v1/responses'

async function start(options: EngineOptions, handler: Partial<HandlerOptions> = {}) {
  const server = await startServer(options, handler)
  onTestFinished(() => server.close())
  const ask = async (body: object, headers: Record<string, string> = {}) => {
    const response = await server.post(path, { model: 'a', ...body }, { headers })
    return {
      status: response.status,
      json: (await response.json()) as OpenAI.Responses.Response & { error: { code: string } },
    }
  }
  return { server, ask }
}

const hello = () => createTold((prompt) => [text(`${prompt.length} messages`), finish()])
const user = (content: string) => ({ role: 'user', content })

describe('whose conversation', () => {
  test('a response of another caller is not found, and the same thread name is another thread', async () => {
    const { server, ask } = await start({ agents: { a: agent() }, scripts: { m: hello() } }, {
      access: createTestAccess(),
      authorize: undefined,
    } as never)
    const thread = { 'thread-id': 'shared-name' }
    const as = (caller: keyof typeof callers) => ({ ...headersFor(caller), ...thread })
    const first = await ask({ input: [user('One')] }, as('alice'))
    expect(first.status).toBe(200)
    const { id } = first.json
    for (const caller of ['bob', 'alice of beta', 'operator'] as const) {
      const stolen = await ask({ input: 'Two', previous_response_id: id }, as(caller))
      expect([caller, stolen.status, stolen.json.error.code]).toEqual([caller, 400, 'previous_response_not_found'])
    }
    // Nor by the ids of its items, or by its words.
    const history = [user('One'), ...first.json.output, user('Two')]
    const bob = await ask({ input: history }, as('bob'))
    expect(bob.status).toBe(200)
    const alice = await ask({ input: history }, as('alice'))
    const startOf = async (response: OpenAI.Responses.Response) => {
      for await (const [entry] of server.store.log.read(response.id.slice(5), { limit: 1 })) {
        if (entry?.type === 'run-start') return entry
      }
      throw new Error('No start.')
    }
    const [bobs, alices] = [await startOf(bob.json), await startOf(alice.json)]
    expect(bobs.previousRunId).toBeUndefined()
    expect(alices.previousRunId).toBe(id.slice(5))
    expect(bobs.threadId).not.toBe(alices.threadId)
  })

  test('instructions go back to their sender alone', async () => {
    const { server, ask } = await start({ agents: { a: agent() }, scripts: { m: hello() } }, {
      access: createTestAccess(),
      authorize: undefined,
    } as never)
    const { json } = await ask({ input: 'Hi', instructions: 'A secret of mine' }, headersFor('alice'))
    const read = async (caller: keyof typeof callers) =>
      (
        (await (
          await fetch(`${server.url}${path}/${json.id}`, { headers: headersFor(caller) })
        ).json()) as OpenAI.Responses.Response
      ).instructions
    expect(await read('alice')).toBe('A secret of mine')
    expect(await read('operator')).toBeNull()
  })
})

describe('the agent’s own prompt', () => {
  test('is in nothing that a client gets', async () => {
    const prompt = 'You are a pirate of this house.'
    const { server, ask } = await start({ agents: { a: agent(`system: "${prompt}"`) }, scripts: { m: hello() } })
    const { json } = await ask({ input: 'Hi', instructions: 'Be brief.' })
    const read = async (rest: string) => (await fetch(`${server.url}${path}/${json.id}${rest}`)).text()
    const stream = await (await server.post(path, { model: 'a', input: 'Hi', stream: true })).text()
    const all = [JSON.stringify(json), stream, ...(await Promise.all(['', '?stream=true', '/input_items'].map(read)))]
    for (const text of all) {
      expect(text).toContain('"type"')
      expect(text).not.toContain('pirate')
    }
    expect(all[0]).toContain('Be brief.')
  })
})

describe('retries of a coding CLI', () => {
  const turn = { client_metadata: { turn_id: 'turn-1' }, store: false }
  const headers = { 'thread-id': 'codex-1' }

  test('a run that is open is joined: its whole answer, and the model is asked once', async () => {
    const gate = latch()
    const m = createScriptedModel([[text('Hel'), gate, text('lo'), finish()]])
    const { server } = await start({ agents: { a: agent() }, scripts: { m } })
    const body = { model: 'a', input: [user('Go')], stream: true, ...turn }
    const leave = new AbortController()
    const first = await server.post(path, body, { headers, signal: leave.signal })
    const run = first.headers.get('x-millrace-run-id')!
    await until(server.store, run, ({ type }) => type === 'text-delta')
    leave.abort()
    const again = await server.post(
      path,
      { ...body, input: [user('Go'), { role: 'assistant', content: 'Hel' }] },
      { headers },
    )
    expect(again.headers.get('x-millrace-run-id')).toBe(run)
    gate.open()
    const said = await again.text()
    expect(said).toContain('event: response.created')
    expect(said.match(/"delta":"[^"]*"/gu)).toEqual(['"delta":"Hel"', '"delta":"lo"'])
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  const upstreams: [status: number, message: string, code: string, headers?: Record<string, string>][] = [
    [429, 'slow down', 'rate_limit_exceeded', { 'retry-after': '17' }],
    [400, 'This model has a maximum context length of 10 tokens.', 'context_length_exceeded'],
    [400, 'The prompt is odd.', 'invalid_prompt'],
    [500, 'Broken.', 'server_error'],
  ]

  test.each(upstreams)('a provider answers %d, %s: the code %s', async (status, message, code, sent = {}) => {
    const upstream = await startUpstream((reply) => reply.refuse(status, { error: { message } }, sent))
    onTestFinished(() => upstream.close())
    const endpoints = [{ name: 'local', baseURL: upstream.baseURL }]
    const yaml = agent('retries: 0').replace('script:m', 'local:m')
    const { server } = await start({ agents: { a: yaml }, models: { endpoints } })
    const body = { model: 'a', input: [user('Go')], stream: true, ...turn }
    const first = await (await server.post(path, body, { headers })).text()
    expect(first).toContain('event: response.failed')
    expect(first).toContain(`"code":"${code}"`)
    if (status === 429) expect(first).toContain('Please try again in 17s.')
    const again = await server.post(path, body, { headers })
    await again.text()
    // Nothing has happened before a rate limit, so another run does no harm.
    expect(again.status).toBe(status === 429 ? 200 : 400)
    expect(await server.store.runs.list()).toHaveLength(status === 429 ? 2 : 1)
  })

  test('another turn, another thread or another question is another run', async () => {
    const { ask, server } = await start({ agents: { a: agent() }, scripts: { m: hello() } })
    await ask({ input: [user('Go')], ...turn }, headers)
    await ask({ input: [user('Go')], client_metadata: { turn_id: 'turn-2' } }, headers)
    await ask({ input: [user('Go')], ...turn }, { 'thread-id': 'codex-2' })
    await ask({ input: [user('Stop')], ...turn }, headers)
    await ask({ input: [user('Go')] }, headers)
    expect(await server.store.runs.list()).toHaveLength(5)
  })

  test('an Idempotency-Key joins its run', async () => {
    const { ask, server } = await start({ agents: { a: agent() }, scripts: { m: hello() } })
    const key = { 'idempotency-key': 'k1' }
    const first = await ask({ input: 'Go' }, key)
    const again = await ask({ input: 'Go' }, key)
    expect(again.json.id).toBe(first.json.id)
    expect((await ask({ input: 'Other' }, key)).status).toBe(422)
    expect(await server.store.runs.list()).toHaveLength(1)
  })
})

describe('approvals', () => {
  test('the answer says so; once it is given, the conversation’s next request gets the rest', async () => {
    const m = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [text('I pay.'), toolCall('c1', 'pay', { sum: 5 }), finish('tool-calls')]
        : [text('Paid.'), finish()],
    )
    let paid = 0
    const pay = { description: 'Pays', parameters: z.object({ sum: z.number() }), execute: () => `receipt ${++paid}` }
    const { ask, server } = await start({
      agents: { a: agent('tools: [{ name: pay, approval: true }]') },
      scripts: { m },
      tools: { pay },
    })
    const first = await ask({ input: [user('Pay 5')] })
    expect(first.json.status).toBe('completed')
    expect(JSON.stringify(first.json.output)).toContain('waits for approval')
    const run = first.json.id.slice(5)
    const open = await fetch(`${server.url}/api/runs/${run}/requests`)
    const { requests } = (await open.json()) as { requests: { requestId: string }[] }
    await server.post(`/api/runs/${run}/requests/${requests[0]!.requestId}`, { approved: true })
    const rest = await ask({ input: [user('Pay 5'), ...first.json.output] })
    expect(rest.json.id).toBe(first.json.id)
    expect(rest.json.output.at(-1)).toMatchObject({ type: 'message', content: [{ text: 'Paid.' }] })
    expect(JSON.stringify(rest.json.output)).not.toContain('waits for approval')
    expect(paid).toBe(1)
    expect(await server.store.runs.list()).toHaveLength(1)
  })
})

describe('approvals as items', () => {
  const server = { type: 'mcp', server_label: 'a', server_url: 'http://127.0.0.1/unused', require_approval: 'always' }

  async function paying(calls: { id: string; sum: number }[] = [{ id: 'c1', sum: 5 }]) {
    const m = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [...calls.map(({ id, sum }) => toolCall(id, 'pay', { sum })), finish('tool-calls')]
        : [text(`Paid: ${JSON.stringify([...resultsIn(prompt).values()])}`), finish()],
    )
    let paid = 0
    const pay = { description: 'Pays', parameters: z.object({ sum: z.number() }), execute: () => `receipt ${++paid}` }
    const agents = { a: agent('tools: [{ name: pay, approval: true }]'), b: agent() }
    const started = await start({ agents, scripts: { m }, tools: { pay } })
    return { ...started, paid: () => paid }
  }

  const requestsIn = ({ output }: OpenAI.Responses.Response) =>
    output.flatMap((item) => (item.type === 'mcp_approval_request' ? [item] : []))
  const answer = (id: string, approve: boolean, more: object = {}) => ({
    type: 'mcp_approval_response',
    approval_request_id: id,
    approve,
    ...more,
  })

  test('only for a client that names the agent as a server, with the words behind it', async () => {
    const { ask } = await paying()
    for (const tools of [[], [{ ...server, server_label: 'b' }], [{ ...server, server_label: 'unknown' }]]) {
      const { json } = await ask({ input: 'Pay 5', tools })
      expect(requestsIn(json)).toEqual([])
      expect(JSON.stringify(json.output)).toContain('waits for approval')
    }
    const { json } = await ask({ input: 'Pay 5', tools: [server] })
    expect(json.output.map(({ type }) => type)).toEqual(['mcp_call', 'mcp_approval_request', 'message'])
    const run = json.id.slice(5)
    expect(requestsIn(json)).toEqual([
      {
        type: 'mcp_approval_request',
        id: expect.stringMatching(new RegExp(`^mcpr_${run}\\.`, 'u')),
        server_label: 'a',
        name: 'pay',
        arguments: '{"sum":5}',
      },
    ])
  })

  test.each(['the whole history', 'the response before'])('an answer gets the rest, with %s', async (way) => {
    const {
      ask,
      server: { store },
      paid,
    } = await paying()
    const first = await ask({ input: [user('Pay 5')], tools: [server] })
    const given = answer(requestsIn(first.json)[0]!.id, true)
    const isWhole = way === 'the whole history'
    const body = isWhole
      ? { input: [user('Pay 5'), ...first.json.output, given] }
      : { input: [given], previous_response_id: first.json.id }
    for (const again of [false, true]) {
      const rest = await ask({ ...body, tools: [server] })
      expect([again, rest.status, rest.json.id]).toEqual([again, 200, first.json.id])
      expect(rest.json.output).toMatchObject([
        { type: 'mcp_call', status: 'completed', name: 'pay', output: 'receipt 1' },
        { type: 'message', content: [{ text: expect.stringContaining('receipt 1') }] },
      ])
    }
    expect(paid()).toBe(1)
    expect(await store.runs.list()).toHaveLength(1)
    // Another answer comes too late.
    const late = await ask({ ...body, input: [answer(given.approval_request_id, false)], tools: [server] })
    expect([late.status, late.json.error.code]).toEqual([409, 'answer-conflict'])
  })

  test('one that is denied is told to the model with its reason', async () => {
    const { ask, paid } = await paying()
    const { json } = await ask({ input: 'Pay 5', tools: [server] })
    const no = answer(requestsIn(json)[0]!.id, false, { reason: 'Too much.' })
    const rest = await ask({ input: [no], previous_response_id: json.id, tools: [server] })
    expect(JSON.stringify(rest.json.output.at(-1))).toContain('Too much.')
    expect(paid()).toBe(0)
  })

  test('several at once', async () => {
    const { ask, paid } = await paying([
      { id: 'c1', sum: 5 },
      { id: 'c2', sum: 6 },
    ])
    const { json } = await ask({ input: 'Pay both', tools: [server] })
    const [one, two] = requestsIn(json)
    const input = [answer(one!.id, true), answer(two!.id, false)]
    const rest = await ask({ input, previous_response_id: json.id, tools: [server] })
    expect(rest.json.status).toBe('completed')
    expect(rest.json.output.map((item) => ('status' in item ? item.status : ''))).toEqual([
      'completed',
      'failed',
      'completed',
    ])
    expect(paid()).toBe(1)
  })

  test.each(['the whole history', 'the response before'])('beside a call of the client, with %s', async (way) => {
    const m = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [toolCall('c1', 'look'), toolCall('c2', 'pay', { sum: 5 }), finish('tool-calls')]
        : [text(`Done: ${JSON.stringify([...resultsIn(prompt).values()])}`), finish()],
    )
    let paid = 0
    const pay = { description: 'Pays', parameters: z.object({ sum: z.number() }), execute: () => `receipt ${++paid}` }
    const agents = { a: agent('tools: [{ name: pay, approval: true }]') }
    const { ask } = await start({ agents, scripts: { m }, tools: { pay } })
    const tools = [server, { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }]
    const first = await ask({ input: [user('Both')], tools })
    expect(first.json.output.map(({ type }) => type)).toEqual([
      'function_call',
      'mcp_call',
      'mcp_approval_request',
      'message',
    ])
    const output = { type: 'function_call_output', call_id: 'c1', output: 'a view' }
    const given = answer(requestsIn(first.json)[0]!.id, true)
    const before = way === 'the whole history' ? [user('Both'), ...first.json.output] : []
    const more = way === 'the whole history' ? {} : { previous_response_id: first.json.id }
    // In whatever order.
    const second = await ask({ input: [...before, given, output], tools, ...more })
    expect(second.json.status).toBe('completed')
    const said = JSON.stringify(second.json.output)
    for (const each of ['a view', 'receipt 1']) expect(said).toContain(each)
    expect(paid).toBe(1)
  })

  test('a call that the client has had already: the rest is complete without it', async () => {
    const m = createTold(() => [toolCall('c1', 'look'), toolCall('c2', 'pay', { sum: 5 }), finish('tool-calls')])
    const pay = { description: 'Pays', parameters: z.object({ sum: z.number() }), execute: () => 'receipt' }
    const agents = { a: agent('tools: [{ name: pay, approval: true }]') }
    const { ask } = await start({ agents, scripts: { m }, tools: { pay } })
    const tools = [server, { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }]
    const first = await ask({ input: 'Both', tools })
    const given = answer(requestsIn(first.json)[0]!.id, true)
    const rest = await ask({ input: [given], previous_response_id: first.json.id, tools })
    expect([rest.json.status, rest.json.output.map(({ type }) => type)]).toEqual(['completed', ['mcp_call']])
  })

  test('what the page has answered is not asked again, and a next turn has all of it', async () => {
    const {
      ask,
      server: { url, post },
      paid,
    } = await paying()
    const first = await ask({ input: [user('Pay 5')], tools: [server] })
    const [asked] = requestsIn(first.json)
    const run = first.json.id.slice(5)
    await post(`/api/runs/${run}/requests/${asked!.id.slice('mcpr_'.length)}`, { approved: true })
    const history = [user('Pay 5'), ...first.json.output, answer(asked!.id, true)]
    const rest = await ask({ input: history, tools: [server] })
    expect(rest.json.id).toBe(first.json.id)
    expect(requestsIn(rest.json)).toEqual([])
    expect(paid()).toBe(1)
    const next = await ask({ input: [...history, ...rest.json.output, user('And now?')], tools: [server] })
    expect([next.status, next.json.status]).toEqual([200, 'completed'])
    expect(next.json.id).not.toBe(first.json.id)
    expect(JSON.stringify(next.json.output)).toContain('receipt 1')
    expect(paid()).toBe(1)
    expect((await fetch(`${url}/api/runs/${next.json.id.slice(5)}`)).status).toBe(200)
  })

  test('an answer to nothing is refused with its place, and one of another caller too', async () => {
    const { ask } = await paying()
    const { json } = await ask({ input: 'Pay 5', tools: [server] })
    const [asked] = requestsIn(json)
    for (const id of ['mcpr_none', 'mcpr_none.1.1', `mcpr_${json.id.slice(5)}.1.9999`]) {
      const { status, json: refused } = await ask({ input: [answer(id, true)] })
      expect([id, status, refused.error]).toEqual([
        id,
        400,
        expect.objectContaining({ param: 'input[0].approval_request_id' }),
      ])
    }
    const other = await ask({ model: 'b', input: [answer(asked!.id, true)] })
    expect(other.status).toBe(400)
    const wrong = await ask({ input: [{ ...answer(asked!.id, true), approve: 'yes' }] })
    expect(wrong.json.error).toMatchObject({ param: 'input[0].approve' })
  })
})

describe('an approval that nobody gives', () => {
  test('a new message closes the call, which never runs, and the model is told', async () => {
    const m = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [toolCall('c1', 'pay', { sum: 5 }), finish('tool-calls')]
        : [text('As you wish.'), finish()],
    )
    let paid = 0
    const pay = { description: 'Pays', parameters: z.object({ sum: z.number() }), execute: () => `receipt ${++paid}` }
    const { ask, server } = await start({
      agents: { a: agent('tools: [{ name: pay, approval: true }]') },
      scripts: { m },
      tools: { pay },
    })
    const first = await ask({ input: 'Pay 5' })
    const second = await ask({ input: 'Rather not', previous_response_id: first.json.id })
    expect(second.json).toMatchObject({ status: 'completed', output: [{ content: [{ text: 'As you wish.' }] }] })
    expect(paid).toBe(0)
    expect((await server.store.runs.get(first.json.id.slice(5)))!.status).toBe('aborted')
  })
})

describe('busy threads', () => {
  test('runs of a named thread wait for each other; those of a session do not', async () => {
    const gates = [latch(), latch()]
    const m = createScriptedModel([
      [gates[0]!, text('One'), finish()],
      [text('Two'), finish()],
      [gates[1]!, text('Three'), finish()],
      [text('Four'), finish()],
    ])
    const { ask, server } = await start({ agents: { a: agent() }, scripts: { m } })
    const named = { 'x-thread-id': 'named' }
    const first = ask({ input: 'One' }, named)
    await gates[0]!.reached
    const second = ask({ input: 'Two' }, named)
    await expect.poll(async () => (await server.store.runs.list()).length).toBe(2)
    gates[0]!.open()
    await Promise.all([first, second])
    const session = { 'thread-id': 'session' }
    const third = ask({ input: 'Three' }, session)
    await gates[1]!.reached
    expect((await ask({ input: 'Four' }, session)).json.status).toBe('completed')
    gates[1]!.open()
    await third
  })

  test('an agent that refuses: 429', async () => {
    const gate = latch()
    const m = createScriptedModel([[gate, finish()]])
    const { ask } = await start({ agents: { a: agent('', 'onBusy: reject') }, scripts: { m } })
    const headers = { 'x-thread-id': 'named' }
    const first = ask({ input: 'One' }, headers)
    await gate.reached
    const second = await ask({ input: 'Two' }, headers)
    expect([second.status, second.json.error.code]).toEqual([429, 'thread-busy'])
    gate.open()
    await first
  })
})
