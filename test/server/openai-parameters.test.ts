/** What an OpenAI request asks: whom it reaches, what is refused by name, and that the agent's file has the last word. */
import OpenAI from 'openai'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { messages } from '../support/openai.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'

let server: TestServer
afterEach(() => server.close())

const chat = '/v1/chat/completions'
const says = (times = 1, words = 'ok') =>
  createScriptedModel(Array.from({ length: times }, () => [text(words), finish()]))
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const tool = (name: string, more: object = {}) => {
  return { type: 'function', function: { name, description: 'Picks.', parameters: schema, ...more } }
}
const asked = {
  temperature: 0.3,
  top_p: 0.9,
  max_completion_tokens: 77,
  stop: ['END', 'STOP'],
  seed: 42,
  presence_penalty: 0.1,
  frequency_penalty: 0.2,
  reasoning_effort: 'low',
  response_format: { type: 'json_schema', json_schema: { name: 'place', description: 'Where.', schema } },
  tools: [tool('pick', { strict: true }), tool('drop')],
  tool_choice: { type: 'function', function: { name: 'pick' } },
  user: 'me',
  metadata: { team: 'blue' },
}

/** The answer's error; the status comes first. */
async function refused(body: object, path = chat) {
  const response = await server.post(path, { model: 'a', messages, ...body })
  const { error } = (await response.json()) as { error: { param: string; message: string } }
  return [response.status, error.param, error.message]
}

describe('what is served', () => {
  test('each parameter is $input.… under its own name, and the answering model’s option', async () => {
    const model = says(1, '{"city":"Paris"}')
    const yaml = agent('system: "T$input.temperature S$input.seed U$input.user M$input.metadata.team"')
    server = await startServer({ agents: { a: yaml }, scripts: { m: model } })
    const response = await server.post(chat, { model: 'a', messages, ...asked })
    expect(response.status).toBe(200)
    const [start] = only(await entriesOf(server.store, response.headers.get('x-millrace-run-id')!), 'run-start')
    expect(start!.input).toEqual({ ...asked, messages })
    const { options } = model.calls[0]!
    expect(options.prompt[0]).toMatchObject({ role: 'system', content: 'T0.3 S42 Ume Mblue' })
    expect(options).toMatchObject({
      temperature: 0.3,
      topP: 0.9,
      maxOutputTokens: 77,
      stopSequences: ['END', 'STOP'],
      seed: 42,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      reasoning: 'low',
      responseFormat: { type: 'json', name: 'place', description: 'Where.', schema },
      toolChoice: { type: 'tool', toolName: 'pick' },
      tools: [
        { type: 'function', name: 'pick', description: 'Picks.', inputSchema: schema, strict: true },
        { type: 'function', name: 'drop', inputSchema: schema },
      ],
    })
  })

  test.each([
    ['openai-chat', true, { parallel_tool_calls: false, prompt_cache_retention: '24h' }],
    ['openai-chat', false, { prompt_cache_retention: '24h' }],
    ['openai-responses', true, { parallel_tool_calls: false, prompt_cache_retention: '24h', prompt_cache_key: 'k' }],
    ['anthropic', true, { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }],
  ] as const)('what the server of a model gets: %s, with tools %s', async (protocol, withTools, sent) => {
    const upstream = await startUpstream((reply) => reply.refuse(400, { error: { message: 'seen' } }))
    onTestFinished(() => upstream.close())
    const endpoints = [{ name: 'local', baseURL: upstream.baseURL, protocol }]
    server = await startServer({ agents: { a: agent().replace('script:m', 'local:m') }, models: { endpoints } })
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const hints = { parallel_tool_calls: false, prompt_cache_retention: '24h', prompt_cache_key: 'k' } as const
    const tools = withTools ? { tools: [tool('pick')] as OpenAI.ChatCompletionTool[] } : {}
    await expect(client.chat.completions.create({ model: 'a', messages, ...hints, ...tools })).rejects.toThrow('seen')
    const { parallel_tool_calls: single, ...rest } = upstream.requests[0]!.body as Record<string, unknown>
    expect({ ...rest, ...(single !== undefined && { parallel_tool_calls: single }) }).toMatchObject(sent)
    if (protocol === 'openai-chat' && !withTools) expect(single).toBeUndefined()
  })

  test.each([
    [{ max_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_tokens: 5, max_completion_tokens: 6 }, { maxOutputTokens: 6 }],
    [{ stop: 'END' }, { stopSequences: ['END'] }],
    [{ response_format: { type: 'json_object' } }, { responseFormat: { type: 'json' } }],
    [{ tools: [tool('pick')], tool_choice: 'required' }, { toolChoice: { type: 'required' } }],
    [{ tool_choice: 'none' }, { toolChoice: { type: 'none' } }],
  ])('%j', async (body, options) => {
    const model = says(1, '{"city":"Paris"}')
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    expect((await server.post(chat, { model: 'a', messages, ...body })).status).toBe(200)
    expect(model.calls[0]!.options).toMatchObject(options)
  })

  test('neutral values, and null, of what is not served are taken; they change nothing', async () => {
    const model = says()
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const neutral = {
      n: 1,
      logprobs: false,
      top_logprobs: 0,
      parallel_tool_calls: true,
      logit_bias: {},
      modalities: ['text'],
      service_tier: 'auto',
      store: false,
      response_format: { type: 'text' },
      stream_options: null,
      temperature: null,
      tools: null,
      audio: null,
    }
    expect((await server.post(chat, { model: 'a', messages, ...neutral })).status).toBe(200)
    const { prompt: _, abortSignal: __, ...options } = model.calls[0]!.options
    expect(Object.entries(options).filter(([, value]) => value !== undefined && value !== false)).toEqual([
      ['toolChoice', { type: 'auto' }],
    ])
  })

  test('what the agent’s file says itself stands', async () => {
    const model = createScriptedModel([[text('{"mine":"x"}'), finish()]])
    const own = 'temperature: 0.1\ntopP: 0.2\nmaxOutputTokens: 7\nstopSequences: [MINE]\nseed: 1\nreasoning: high\n'
    const more = 'toolChoice: none\noutput: { schema: { type: object, properties: { mine: string } } }'
    server = await startServer({ agents: { a: agent(own + more) }, scripts: { m: model } })
    expect((await server.post(chat, { model: 'a', messages, ...asked })).status).toBe(200)
    expect(model.calls[0]!.options).toMatchObject({
      temperature: 0.1,
      topP: 0.2,
      maxOutputTokens: 7,
      stopSequences: ['MINE'],
      seed: 1,
      reasoning: 'high',
      toolChoice: { type: 'none' },
      responseFormat: { type: 'json', schema: { properties: { mine: {} } } },
      // What the file does not say is the client's.
      presencePenalty: 0.1,
    })
  })

  test('router → response: settings and the client’s tools are the answering step’s only', async () => {
    const [router, answers] = [
      createScriptedModel([[toolCall('call_1', 'respond', {}), finish('tool-calls')]]),
      createScriptedModel([[toolCall('call_2', 'pick', { city: 'Rome' }), finish('tool-calls')]]),
    ]
    const first = says()
    const yaml = `
workflow:
  - { id: first, type: llm, config: { model: "script:first" } }
  - { id: route, type: router, config: { model: "script:r" }, result: found }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, messages: "$found.messages" } }
`
    server = await startServer({ agents: { a: yaml }, scripts: { first, r: router, m: answers } })
    const response = await server.post(chat, { model: 'a', messages, ...asked, response_format: undefined })
    expect(await response.json()).toMatchObject({
      choices: [
        {
          finish_reason: 'tool_calls',
          message: { content: null, tool_calls: [{ id: 'call_2', function: { name: 'pick' } }] },
        },
      ],
    })
    const options = router.calls[0]!.options
    expect(first.calls[0]!.options).not.toHaveProperty('temperature')
    expect(first.calls[0]!.options.tools).toBe(undefined)
    expect(options.tools!.map(({ name }) => name)).toEqual(['respond'])
    expect([options.temperature, options.seed, options.toolChoice]).toEqual([undefined, undefined, { type: 'auto' }])
    expect(answers.calls[0]!.options).toMatchObject({
      temperature: 0.3,
      toolChoice: { type: 'tool', toolName: 'pick' },
    })
  })
})

describe('through the provider’s package', () => {
  const wire = { ...asked, max_completion_tokens: undefined, metadata: undefined, user: undefined }
  const expected = {
    'openai-chat': {
      temperature: 0.3,
      top_p: 0.9,
      max_tokens: 77,
      stop: ['END', 'STOP'],
      seed: 42,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      reasoning_effort: 'low',
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'place', description: 'Where.', schema, strict: false },
      },
      tools: wire.tools,
      tool_choice: wire.tool_choice,
      messages: [{ role: 'user', content: 'Hi' }],
    },
    'openai-responses': {
      temperature: 0.3,
      max_output_tokens: 77,
      text: { format: { type: 'json_schema', name: 'place', schema, strict: false } },
      tools: [
        { type: 'function', name: 'pick', strict: true },
        { type: 'function', name: 'drop', strict: false },
      ],
      tool_choice: { type: 'function', name: 'pick' },
    },
    google: {
      generationConfig: {
        temperature: 0.3,
        maxOutputTokens: 77,
        stopSequences: ['END', 'STOP'],
        seed: 42,
        responseMimeType: 'application/json',
        responseJsonSchema: schema,
      },
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['pick'] } },
    },
  }
  test.each(Object.entries(expected))('%s: the upstream is asked what the client asked', async (protocol, body) => {
    const upstream = await startUpstream((reply) => reply.refuse(400, { error: { message: 'Enough.' } }))
    onTestFinished(() => upstream.close())
    server = await startServer({
      agents: { a: agent('retries: 0').replace('script:m', 'up:m') },
      models: { endpoints: [{ name: 'up', baseURL: upstream.baseURL, protocol: protocol as keyof typeof expected }] },
    })
    expect((await server.post(chat, { model: 'a', messages, ...asked })).status).toBe(502)
    expect(upstream.requests[0]!.body).toMatchObject(body)
  })
})

describe('what an agent declares', () => {
  const declares = `input:\n  topic: string\n  tone: { type: string, enum: [dry, warm], default: dry }\n`

  test('reaches it beside the parameters; what is left out has its default', async () => {
    const model = says()
    const yaml = `${declares}${agent('system: "$input.topic, $input.tone, $input.temperature"')}`
    server = await startServer({ agents: { a: yaml }, scripts: { m: model } })
    const response = await server.post(chat, { model: 'a', messages, topic: 'rain', temperature: 1, user: 'me' })
    expect(response.status).toBe(200)
    expect(model.calls[0]!.options.prompt[0]).toMatchObject({ content: 'rain, dry, 1' })
  })

  test('faults are 400 with the parameter', async () => {
    const strict = { openai: { strict: true } }
    server = await startServer({ agents: { a: declares + agent() }, scripts: { m: says() } }, strict)
    expect(await refused({})).toEqual([400, 'topic', expect.stringContaining('$input.topic is missing')])
    expect(await refused({ topic: 'x', tone: 'wram' })).toEqual([
      400,
      'tone',
      expect.stringContaining('did you mean "warm"?'),
    ])
    expect(await refused({ topik: 'x' })).toEqual([400, 'topik', expect.stringContaining('did you mean "topic"?')])
  })
})
