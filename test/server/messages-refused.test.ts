/** What `POST /v1/messages` refuses, each with its place; what it ignores; the limits; keys; the forms of errors. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { MillraceError } from '../../src/part/error.ts'
import { finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'

const path = '/v1/messages'
let server: TestServer
const model = createTold(() => [text('Hello'), finish()])

beforeAll(async () => {
  const claude = agent().replace('workflow:', 'metadata: { aliases: ["claude-*", helper] }\nworkflow:')
  server = await startServer({ agents: { a: agent(), claude }, scripts: { m: model } }, { apiKey: 'secret-key' })
})
afterAll(() => server.close())

const key = { authorization: 'Bearer secret-key' }
const post = (body: unknown, headers: Record<string, string> = key, to = path) => server.post(to, body, { headers })
const hi = [{ role: 'user', content: 'Hi' }]
const asks = (fields: object) => ({ model: 'a', max_tokens: 9, messages: hi, ...fields })
const says = (...content: object[]) => asks({ messages: [{ role: 'user', content }] })
const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }
const tool = { name: 'f', input_schema: { type: 'object' } }

interface Refusal {
  type: string
  error: { type: string; message: string }
}

/** The body and the place. */
const refused: [object, string][] = [
  [{ messages: hi }, 'model'],
  [{ model: 'a' }, 'messages'],
  [asks({ messages: 'Hi' }), 'messages'],
  [asks({ pipeline: agent() }), 'pipeline'],
  [asks({ messages: [] }), 'messages'],
  [asks({ messages: ['x'] }), 'messages[0]'],
  [asks({ messages: [{ role: 'tool', content: 'x' }] }), 'messages[0].role'],
  [asks({ messages: [{ role: 'user' }] }), 'messages[0].content'],
  [asks({ messages: [{ role: 'user', content: [] }] }), 'messages[0].content'],
  [says({ text: 'x' }), 'messages[0].content[0].type'],
  [says({ type: 'text' }), 'messages[0].content[0].text'],
  [says({ type: 'image' }), 'messages[0].content[0].source'],
  [says({ type: 'image', source: { type: 'file', file_id: 'f' } }), 'messages[0].content[0].source.file_id'],
  [says({ type: 'image', source: { type: 'url', url: 'ftp://x' } }), 'messages[0].content[0].source.url'],
  [
    says({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: '#' } }),
    'messages[0].content[0].source.data',
  ],
  [
    says({ type: 'image', source: { type: 'base64', media_type: 'png', data: 'AAAA' } }),
    'messages[0].content[0].source.media_type',
  ],
  [says({ type: 'document', source: { type: 'x' } }), 'messages[0].content[0].source.type'],
  [says(result), 'messages[0].content[0].tool_use_id'],
  [says({ ...result, tool_use_id: 7 }), 'messages[0].content[0].tool_use_id'],
  [asks({ messages: [...hi, { role: 'assistant', content: [{ ...call, id: '' }] }] }), 'messages[1].content[0].id'],
  [asks({ messages: [...hi, { role: 'assistant', content: [{ ...call, name: 7 }] }] }), 'messages[1].content[0].name'],
  [
    asks({ messages: [...hi, { role: 'assistant', content: [{ ...call, input: 7 }] }] }),
    'messages[1].content[0].input',
  ],
  [
    asks({
      messages: [...hi, { role: 'assistant', content: [call] }, { role: 'user', content: [{ ...result, content: 7 }] }],
    }),
    'messages[2].content[0].content',
  ],
  [asks({ system: 7 }), 'system'],
  [asks({ system: [{ type: 'text' }] }), 'system[0].text'],
  [asks({ stream: 'yes' }), 'stream'],
  [asks({ max_tokens: 0 }), 'max_tokens'],
  [asks({ temperature: 3 }), 'temperature'],
  [asks({ top_p: 2 }), 'top_p'],
  [asks({ top_k: 1.5 }), 'top_k'],
  [asks({ stop_sequences: 'x' }), 'stop_sequences'],
  [asks({ stop_sequences: [7] }), 'stop_sequences[0]'],
  [asks({ metadata: [] }), 'metadata'],
  [asks({ thinking: { type: 'enabled', budget_tokens: 0 } }), 'thinking.budget_tokens'],
  [asks({ output_config: { effort: 'huge' } }), 'output_config.effort'],
  [asks({ output_config: { format: { type: 'xml' } } }), 'output_config.format.type'],
  [asks({ output_format: { type: 'json_schema' } }), 'output_format.schema'],
  [asks({ tools: {} }), 'tools'],
  [asks({ tools: [{ ...tool, type: 7 }] }), 'tools[0].type'],
  [asks({ tools: [{ ...tool, name: 'a b' }] }), 'tools[0].name'],
  [asks({ tools: [{ name: 'f' }] }), 'tools[0].input_schema'],
  [asks({ tools: [{ ...tool, description: 7 }] }), 'tools[0].description'],
  [asks({ tools: [tool, tool] }), 'tools[1].name'],
  [asks({ tools: [{ ...tool, input_schema: { x: 'y'.repeat(70_000) } }] }), 'tools[0].input_schema'],
  [asks({ tools: Array.from({ length: 513 }, (_, i) => ({ ...tool, name: `f${i}` })) }), 'tools'],
  [says(...Array.from({ length: 10_001 }, () => ({ type: 'text', text: 'x' }))), 'messages'],
  [asks({ tool_choice: 'any' }), 'tool_choice'],
  [asks({ tool_choice: { type: 'always' } }), 'tool_choice.type'],
  [asks({ tool_choice: { type: 'any' } }), 'tool_choice'],
  [asks({ tools: [tool], tool_choice: { type: 'tool', name: 'g' } }), 'tool_choice.name'],
  [
    asks({
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'tool', name: 'web_search' },
    }),
    'tool_choice.name',
  ],
]

describe('what /v1/messages refuses', () => {
  test.each(refused.map(([body, place], i) => [`${i + 1}: ${place}`, body, place] as const))(
    '%s',
    async (_name, body, place) => {
      for (const to of [path, `${path}/count_tokens`]) {
        const response = await post(body, key, to)
        const { type, error } = (await response.json()) as Refusal
        // Which calls were made is known to the log alone.
        if (place.endsWith('tool_use_id') && to !== path && response.status === 200) continue
        expect(response.status, to).toBe(400)
        expect(type).toBe('error')
        expect(error.type).toBe('invalid_request_error')
        expect(error.message.startsWith(`${place} `), error.message).toBe(true)
      }
    },
  )

  test('nothing is started by what is refused', async () => {
    const before = (await server.store.runs.list({ limit: 1000 })).length
    for (const [body] of refused.slice(0, 10)) await post(body)
    expect((await server.store.runs.list({ limit: 1000 })).length).toBe(before)
  })

  test('a body that is no JSON, or none, or too deep', async () => {
    const send = (body: string) =>
      fetch(server.url + path, { method: 'POST', body, headers: { ...key, 'content-type': 'application/json' } })
    for (const body of ['', '{', '[]', '"x"', `{"a":${'['.repeat(289)}${']'.repeat(289)}}`]) {
      const response = await send(body)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
    }
  })

  test('an unknown model, with the one that is meant', async () => {
    const response = await post(asks({ model: 'helpr' }))
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { type: 'not_found_error', message: expect.stringContaining('helper') },
    })
  })

  test('a wrong key, at each route; the right one in either header', async () => {
    for (const headers of [{}, { 'x-api-key': 'wrong' }] as Record<string, string>[]) {
      for (const to of [path, `${path}/count_tokens`]) {
        const response = await post(asks({}), headers, to)
        expect(response.status).toBe(401)
        expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'authentication_error' } })
      }
      const models = await fetch(`${server.url}/v1/models`, { headers: { ...headers, 'anthropic-version': '1' } })
      expect(models.status).toBe(401)
      expect(await models.json()).toMatchObject({ type: 'error', error: { type: 'authentication_error' } })
    }
    expect((await post(asks({}), { 'x-api-key': 'secret-key' })).status).toBe(200)
  })

  test('a body above 4 MiB is read, and one above 32 MiB is not', async () => {
    expect((await post(says({ type: 'text', text: 'x'.repeat(5 * 1024 * 1024) }))).status).toBe(200)
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { ...key, 'content-type': 'application/json' },
      body: JSON.stringify(says({ type: 'text', text: 'x'.repeat(33 * 1024 * 1024) })),
    }).catch(() => undefined)
    // The connection may end before the client has sent everything.
    if (response === undefined) return
    expect(response.status).toBe(413)
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'request_too_large' } })
  })

  test('a route or a method that is not there, in the same form', async () => {
    const batches = await post({}, key, `${path}/batches`)
    expect([batches.status, ((await batches.json()) as Refusal).error.type]).toEqual([404, 'not_found_error'])
    const got = await fetch(server.url + path, { headers: key })
    expect([got.status, ((await got.json()) as Refusal).type]).toEqual([405, 'error'])
  })

  test('each answer has its own request-id', async () => {
    const ids = new Set<string>()
    for (const body of [asks({}), asks({ stream: true }), {}]) {
      const response = await post(body)
      const id = response.headers.get('request-id')!
      expect(id).toMatch(/^req_/u)
      ids.add(id)
      await response.text()
    }
    expect(ids.size).toBe(3)
  })
})

describe('a server that has too much to do', () => {
  const full = async (code: string, on: 'start' | 'stream') => {
    const refusal = new MillraceError(code, 'Too many.', { retryAfter: 7 })
    const other = await startServer(
      { agents: { a: agent() }, scripts: { m: model } },
      {
        admission: {
          start: async () => (on === 'start' ? refusal : undefined),
          stream: async () => (on === 'stream' ? refusal : { leave: () => undefined }),
        } as never,
      },
    )
    onTestFinished(() => other.close())
    const response = await other.post(path, asks({}))
    return [response.status, response.headers.get('retry-after'), ((await response.json()) as Refusal).error.type]
  }

  test('rate limit: 429; too many streams: 529; both say when to come back', async () => {
    expect(await full('rate-limited', 'start')).toEqual([429, '7', 'rate_limit_error'])
    expect(await full('too-many-streams', 'stream')).toEqual([529, '7', 'overloaded_error'])
  })

  test.each([true, false])('shutting down: 529, which clients try again; stream: %s', async (stream) => {
    const gate = latch()
    const slow = createTold(() => [gate, text('Late'), finish()])
    const other = await startServer({ agents: { a: agent() }, scripts: { m: slow } })
    onTestFinished(() => other.close())
    const asked = other.post(path, asks({ stream }))
    await gate.reached
    await other.runtime.close(0)
    const response = await asked
    const said = await response.text()
    expect(response.status).toBe(stream ? 200 : 529)
    expect(said).toContain('"type":"overloaded_error"')
    expect(response.headers.get('x-should-retry')).toBeNull()
    const later = await other.post(path, asks({ stream }))
    expect(later.status).toBe(529)
    expect(await later.json()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
  })

  test('a busy thread of an agent that refuses: 429', async () => {
    const gate = latch()
    const slow = createTold(() => [gate, text('Late'), finish()])
    const other = await startServer({ agents: { a: agent('', 'onBusy: reject') }, scripts: { m: slow } })
    onTestFinished(() => other.close())
    const headers = { 'x-thread-id': 'named' }
    const first = other.post(path, asks({}), { headers })
    await gate.reached
    const second = await other.post(path, asks({}), { headers })
    expect([second.status, ((await second.json()) as Refusal).error.type]).toEqual([429, 'rate_limit_error'])
    expect(second.headers.get('retry-after')).toBe('1')
    gate.open()
    await first
  })
})

describe('what /v1/messages accepts', () => {
  test('hints of other servers, typed tools, unknown blocks: ignored, and named in $input.ignored', async () => {
    const body = {
      ...asks({
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'Hi' },
              { type: 'container_upload', file_id: 'f' },
            ],
          },
        ],
      }),
      container: 'c',
      inference_geo: 'us',
      mcp_servers: [{ type: 'url', url: 'https://x', name: 'x' }],
      context_management: { edits: [] },
      safeguards: [{ type: 'dangerous_tool_use' }],
      cache_control: { type: 'ephemeral' },
      service_tier: 'auto',
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    }
    const response = await post(body, key, `${path}?beta=true`)
    expect(response.status).toBe(200)
    const [row] = await server.store.runs.list({ limit: 1 })
    for await (const [entry] of server.store.log.read(row!.id, { limit: 1 })) {
      if (entry?.type !== 'run-start') throw new Error('No start.')
      expect(entry.input['ignored']).toEqual([
        'messages[0].content[1] (container_upload)',
        'tools[0] (web_search_20250305)',
        'container',
        'inference_geo',
        'mcp_servers',
      ])
    }
  })

  test('null is as if a field were not there', async () => {
    const names = ['system', 'tools', 'tool_choice', 'thinking', 'output_config', 'metadata', 'temperature', 'stream']
    expect((await post(asks(Object.fromEntries(names.map((name) => [name, null]))))).status).toBe(200)
  })

  test('settings, where the agent sets none', async () => {
    await post(
      asks({
        temperature: 0.5,
        top_p: 0.9,
        stop_sequences: ['END'],
        output_config: { effort: 'low' },
        tools: [tool],
        tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
        metadata: { user_id: 'u1' },
      }),
    )
    expect(model.calls.at(-1)).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      maxOutputTokens: 9,
      stopSequences: ['END'],
      reasoning: 'low',
      toolChoice: { type: 'tool', toolName: 'f' },
      providerOptions: { anthropic: { disableParallelToolUse: true }, openai: { parallelToolCalls: false } },
    })
    const [row] = await server.store.runs.list({ limit: 1 })
    for await (const [entry] of server.store.log.read(row!.id, { limit: 1 })) {
      if (entry?.type === 'run-start') expect(entry.input).toMatchObject({ user: 'u1', metadata: { user_id: 'u1' } })
    }
  })

  test('an alias with * stands for many names; models are listed in the form of the client', async () => {
    const response = await post(asks({ model: 'claude-opus-5-5' }))
    expect(await response.json()).toMatchObject({ model: 'claude-opus-5-5', stop_reason: 'end_turn' })
    const get = async (more: string, headers = {}) =>
      (await (await fetch(`${server.url}/v1/models${more}`, { headers: { ...key, ...headers } })).json()) as object
    const version = { 'anthropic-version': '2023-06-01' }
    expect(await get('?limit=1000', version)).toEqual({
      data: ['a', 'claude', 'helper'].map((id) => ({
        type: 'model',
        id,
        display_name: id,
        created_at: '2026-01-01T00:00:00.000Z',
      })),
      first_id: 'a',
      last_id: 'helper',
      has_more: false,
    })
    expect(await get('/helper', version)).toMatchObject({ type: 'model', id: 'helper' })
    expect(await get('/nosuch', version)).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
    expect(await get('')).toMatchObject({ object: 'list', data: [{ id: 'a', object: 'model' }, {}, {}] })
    expect(await get('/nosuch')).toMatchObject({ error: { code: 'model_not_found' } })
  })

  test('counting: a quarter of the bytes, 1,500 for each file; no run, no model, 26 at once', async () => {
    const [runs, calls] = [(await server.store.runs.list({ limit: 1000 })).length, model.calls.length]
    const count = async (body: object) =>
      ((await (await post(body, key, `${path}/count_tokens`)).json()) as { input_tokens: number }).input_tokens
    expect(await count(asks({ messages: [{ role: 'user', content: 'x'.repeat(4000) }] }))).toBe(1000)
    expect(
      await count(asks({ system: 'é'.repeat(1000), messages: [{ role: 'user', content: 'x'.repeat(4000) }] })),
    ).toBe(1500)
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA'.repeat(9000) } }
    expect(await count(says(image, { type: 'text', text: 'abcd' }))).toBe(1501)
    expect(await count(asks({ tools: [{ ...tool, description: 'x'.repeat(4000) }] }))).toBeGreaterThan(1000)
    const many = await Promise.all(Array.from({ length: 26 }, () => count(asks({}))))
    expect(new Set(many)).toEqual(new Set([1]))
    expect([(await server.store.runs.list({ limit: 1000 })).length, model.calls.length]).toEqual([runs, calls])
  })

  test('HEAD /api/hello needs no key', async () => {
    expect((await fetch(`${server.url}/api/hello`, { method: 'HEAD' })).status).toBe(404)
  })
})
