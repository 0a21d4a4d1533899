/** What `POST /v1/responses` refuses, each with its place; what it ignores; the limits; the names of agents; keys. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'

const path = '/v1/responses'
let server: TestServer

beforeAll(async () => {
  const m = createTold(() => [text('Hello'), finish()])
  const gpt = agent().replace('workflow:', 'metadata: { aliases: ["gpt-*", helper] }\nworkflow:')
  server = await startServer({ agents: { a: agent(), gpt }, scripts: { m } }, { apiKey: 'secret-key' })
})
afterAll(() => server.close())

const key = { authorization: 'Bearer secret-key' }
const post = (body: unknown, headers: Record<string, string> = key) => server.post(path, body, { headers })

const call = { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' }
const tool = { type: 'function', name: 'f', parameters: { type: 'object' } }

/** The body, the place, the code. */
const refused: [object, string | null, string?][] = [
  [{ input: 'Hi' }, 'model'],
  [{ model: 'a' }, 'input'],
  [{ model: 'a', input: 7 }, 'input'],
  [{ model: 'a', input: 'Hi', pipeline: agent() }, 'pipeline'],
  [{ model: 'a', input: ['x'] }, 'input[0]'],
  [{ model: 'a', input: [{}] }, 'input[0].type'],
  [{ model: 'a', input: [{ role: 'tool', content: 'x' }] }, 'input[0].role'],
  [{ model: 'a', input: [{ role: 'user' }] }, 'input[0].content'],
  [{ model: 'a', input: [{ role: 'user', content: [] }] }, 'input[0].content'],
  [{ model: 'a', input: [{ role: 'user', content: [{ type: 'audio' }] }] }, 'input[0].content[0].type'],
  [{ model: 'a', input: [{ role: 'user', content: [{ type: 'input_text' }] }] }, 'input[0].content[0].text'],
  [
    { model: 'a', input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
    'input[0].content[0].file_id',
  ],
  [
    { model: 'a', input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'ftp://x' }] }] },
    'input[0].content[0].image_url',
  ],
  [{ model: 'a', input: [{ ...call, call_id: 7 }] }, 'input[0].call_id'],
  [{ model: 'a', input: [{ ...call, name: '' }] }, 'input[0].name'],
  [{ model: 'a', input: [{ type: 'function_call_output', call_id: 'c1', output: 'x' }] }, 'input[0].call_id'],
  [
    {
      model: 'a',
      input: [{ type: 'function_call_output', call_id: 'c1', output: 'x' }, { role: 'user', content: 'x' }, call],
    },
    'input[0].call_id',
  ],
  [{ model: 'a', input: [call, { type: 'function_call_output', call_id: 'c1', output: 7 }] }, 'input[1].output'],
  [{ model: 'a', input: 'Hi', instructions: 7 }, 'instructions'],
  [{ model: 'a', input: 'Hi', stream: 'yes' }, 'stream'],
  [{ model: 'a', input: 'Hi', store: 1 }, 'store'],
  [{ model: 'a', input: 'Hi', background: 1 }, 'background'],
  [{ model: 'a', input: 'Hi', temperature: 3 }, 'temperature'],
  [{ model: 'a', input: 'Hi', max_output_tokens: 0 }, 'max_output_tokens'],
  [{ model: 'a', input: 'Hi', metadata: [] }, 'metadata'],
  [{ model: 'a', input: 'Hi', reasoning: { effort: 'huge' } }, 'reasoning.effort'],
  [{ model: 'a', input: 'Hi', text: { format: { type: 'xml' } } }, 'text.format.type'],
  [{ model: 'a', input: 'Hi', text: { format: { type: 'json_schema' } } }, 'text.format.name'],
  [{ model: 'a', input: 'Hi', tools: {} }, 'tools'],
  [{ model: 'a', input: 'Hi', tools: [{}] }, 'tools[0].type'],
  [{ model: 'a', input: 'Hi', tools: [{ ...tool, name: 'a b' }] }, 'tools[0].name'],
  [{ model: 'a', input: 'Hi', tools: [tool, tool] }, 'tools[1].name'],
  [{ model: 'a', input: 'Hi', tools: [{ ...tool, parameters: 'x' }] }, 'tools[0].parameters'],
  [{ model: 'a', input: 'Hi', tools: [{ ...tool, parameters: { x: 'y'.repeat(70_000) } }] }, 'tools[0].parameters'],
  [{ model: 'a', input: 'Hi', tools: [{ type: 'namespace', name: 'n' }] }, 'tools[0].tools'],
  [
    { model: 'a', input: 'Hi', tools: [{ type: 'namespace', name: 'n', tools: [tool, tool] }] },
    'tools[0].tools[1].name',
  ],
  [{ model: 'a', input: 'Hi', tools: Array.from({ length: 513 }, (_, i) => ({ ...tool, name: `f${i}` })) }, 'tools'],
  [
    {
      model: 'a',
      input: 'Hi',
      tools: [
        tool,
        { type: 'namespace', name: 'n', tools: Array.from({ length: 512 }, (_, i) => ({ ...tool, name: `f${i}` })) },
      ],
    },
    'tools',
  ],
  [{ model: 'a', input: Array.from({ length: 10_001 }, () => ({ role: 'user', content: 'x' })) }, 'input'],
  [{ model: 'a', input: 'Hi', tool_choice: 'always' }, 'tool_choice'],
  [{ model: 'a', input: 'Hi', tool_choice: 'required' }, 'tool_choice'],
  [{ model: 'a', input: 'Hi', tools: [tool], tool_choice: { type: 'function', name: 'g' } }, 'tool_choice.name'],
  [{ model: 'a', input: 'Hi', tool_choice: { type: 'web_search' } }, 'tool_choice', 'unsupported_parameter'],
  [{ model: 'a', input: 'Hi', n: 2 }, 'n', 'unsupported_parameter'],
  [{ model: 'a', input: 'Hi', top_logprobs: 3 }, 'top_logprobs', 'unsupported_parameter'],
  [{ model: 'a', input: 'Hi', logprobs: true }, 'logprobs', 'unsupported_parameter'],
  [{ model: 'a', input: 'Hi', prompt: { id: 'p' } }, 'prompt', 'unsupported_parameter'],
  [{ model: 'a', input: 'Hi', conversation: 'c' }, 'conversation', 'unsupported_parameter'],
  [
    { model: 'a', input: 'Hi', previous_response_id: 'resp_nosuch' },
    'previous_response_id',
    'previous_response_not_found',
  ],
  [{ model: 'a', input: 'Hi', previous_response_id: 'x' }, 'previous_response_id', 'previous_response_not_found'],
]

describe('what /v1/responses refuses', () => {
  test.each(refused.map(([body, param, code], i) => [`${i + 1}: ${param ?? 'body'}`, body, param, code] as const))(
    '%s',
    async (_name, body, param, code = 'bad-input') => {
      const response = await post(body)
      expect(response.status).toBe(400)
      const { error } = (await response.json()) as { error: { message: string } }
      expect(error).toMatchObject({ type: 'invalid_request_error', param, code })
      if (param !== null) expect(error.message).toContain(param)
    },
  )

  test('a body that is no JSON, or none', async () => {
    const send = (body: string) =>
      fetch(server.url + path, { method: 'POST', body, headers: { ...key, 'content-type': 'application/json' } })
    for (const body of ['', '{', '[]', '"x"']) expect((await send(body)).status).toBe(400)
  })

  test('an unknown model, with the one that is meant', async () => {
    const response = await post({ model: 'helpr', input: 'Hi' })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({
      error: { code: 'model_not_found', param: 'model', message: expect.stringContaining('helper') },
    })
  })

  test('a body of more than 288 levels', async () => {
    const nested = (levels: number) =>
      `{"model":"a","input":"Hi","metadata":${'{"a":'.repeat(levels - 1)}1${'}'.repeat(levels)}`
    const send = (body: string) =>
      fetch(server.url + path, { method: 'POST', headers: { ...key, 'content-type': 'application/json' }, body })
    const refused = await send(nested(289))
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('288 levels')
    expect((await send(nested(100))).status).toBe(200)
  })

  test('nothing is started by what is refused', async () => {
    const before = (await server.store.runs.list({ limit: 1000 })).length
    for (const [body] of refused.slice(0, 10)) await post(body)
    expect((await server.store.runs.list({ limit: 1000 })).length).toBe(before)
  })

  test('a body above 4 MiB is read here, and one above 32 MiB nowhere', async () => {
    const { status } = await post({ model: 'a', input: 'x'.repeat(5 * 1024 * 1024) })
    expect(status).toBe(200)
    const chat = await server.post(
      '/v1/chat/completions',
      { model: 'a', messages: [{ role: 'user', content: 'x'.repeat(5 * 1024 * 1024) }] },
      { headers: key },
    )
    expect(chat.status).toBe(413)
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { ...key, 'content-type': 'application/json' },
      body: `{"model":"a","input":"${'x'.repeat(33 * 1024 * 1024)}"}`,
    }).catch(() => undefined)
    // The connection may end before the client has sent everything.
    if (response !== undefined) expect(response.status).toBe(413)
  })
})

describe('what /v1/responses accepts', () => {
  test('hints of other servers: ignored, and named in $input.ignored', async () => {
    const response = await post({
      model: 'a',
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'strange_item', x: 1 },
      ],
      include: ['reasoning.encrypted_content'],
      truncation: 'auto',
      service_tier: 'flex',
      prompt_cache_key: 'k',
      client_metadata: { a: 'b' },
      stream_options: { include_obfuscation: false },
      top_logprobs: 0,
      verbosity: 'low',
      tools: [{ type: 'web_search' }],
    })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ tools: [], prompt_cache_key: 'k', service_tier: 'flex' })
    const [row] = await server.store.runs.list({ limit: 1 })
    for await (const [entry] of server.store.log.read(row!.id, { limit: 1 })) {
      if (entry?.type !== 'run-start') throw new Error('No start.')
      expect(entry.input['ignored']).toEqual(['input[1] (strange_item)', 'tools[0] (web_search)', 'verbosity'])
    }
  })

  test('a call without an output is unavailable to the model', async () => {
    const response = await post({
      model: 'a',
      input: [{ role: 'user', content: 'Hi' }, call, { role: 'user', content: 'Go on' }],
    })
    expect(response.status).toBe(200)
  })

  test('null is as if a field were not there', async () => {
    const fields = [
      'instructions',
      'tools',
      'tool_choice',
      'text',
      'reasoning',
      'metadata',
      'temperature',
      'previous_response_id',
      'stream',
      'store',
      'n',
      'prompt',
    ]
    const nulls = Object.fromEntries(fields.map((name) => [name, null]))
    expect((await post({ model: 'a', input: 'Hi', ...nulls })).status).toBe(200)
  })

  test('allowed_tools: the others are not offered', async () => {
    const tools = [tool, { ...tool, name: 'g' }]
    const choice = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'g' }] }
    const response = await post({ model: 'a', input: 'Hi', tools, tool_choice: choice })
    expect(await response.json()).toMatchObject({ tools: [{ name: 'g' }], tool_choice: choice })
  })
})

describe('names and keys', () => {
  test('an alias with * stands for many names, and is no model of the list', async () => {
    const response = await post({ model: 'gpt-5.9-codex', input: 'Hi' })
    expect(await response.json()).toMatchObject({ model: 'gpt-5.9-codex', status: 'completed' })
    expect((await server.store.runs.list({ limit: 1 }))[0]).toMatchObject({ agent: 'gpt' })
    const models = await fetch(`${server.url}/v1/models`, { headers: key })
    const { data } = (await models.json()) as { data: { id: string }[] }
    expect(data.map(({ id }) => id)).toEqual(['a', 'gpt', 'helper'])
    expect((await fetch(`${server.url}/v1/models/gpt-4`, { headers: key })).status).toBe(200)
  })

  test('the key may be in X-API-Key', async () => {
    const body = { model: 'a', input: 'Hi' }
    expect((await post(body, { 'x-api-key': 'secret-key' })).status).toBe(200)
    for (const headers of [{}, { 'x-api-key': 'wrong' }, { authorization: 'Bearer none', 'x-api-key': 'secret-key' }]) {
      const response = await post(body, headers as Record<string, string>)
      expect(response.status).toBe(401)
      expect(await response.json()).toMatchObject({ error: { code: 'invalid_api_key' } })
    }
  })

  test('HEAD /api/hello needs no key, and counts for nothing', async () => {
    const response = await fetch(`${server.url}/api/hello`, { method: 'HEAD' })
    expect(response.status).toBe(404)
    const { status } = await fetch(`${server.url}/api/hello`)
    expect(status).toBe(401)
  })
})
