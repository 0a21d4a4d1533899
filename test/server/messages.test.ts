/** `POST /v1/messages` over a real socket, with `@anthropic-ai/sdk` as client: answers, client tools, the server's tools, thoughts, failures. */
import Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import {
  createScriptedModel,
  errorPart,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const weather = {
  name: 'get_weather',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } } },
}
const asks = (content: string) => ({
  model: 'a',
  max_tokens: 1000,
  messages: [{ role: 'user' as const, content }],
})

async function start(
  model: Told | ReturnType<typeof createScriptedModel>,
  options: Partial<EngineOptions> = {},
  handler: Partial<HandlerOptions> = {},
) {
  server = await startServer({ agents: { a: agent() }, scripts: { m: model }, ...options }, handler)
  const client = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 })
  return { server, client, post: (body: object) => server!.post('/v1/messages', body) }
}

const textsOf = (prompt: Told['prompts'][number]) =>
  prompt.map(({ role, content }) =>
    typeof content === 'string'
      ? `${role}: ${content}`
      : `${role}: ${content
          .map((part) => {
            if (part.type === 'text') return part.text
            if (part.type === 'tool-call') return `call ${part.toolName}`
            if (part.type === 'tool-result')
              return `${part.output.type} ${JSON.stringify('value' in part.output ? part.output.value : '')}`
            return part.type
          })
          .join('|')}`,
  )

describe('POST /v1/messages', () => {
  test('one JSON: the whole message', async () => {
    const { client } = await start(createScriptedModel([[reasoning('Hm'), text('Hel', 'lo'), finish()]]))
    const message = await client.messages.create({ ...asks('Hi'), system: 'Be brief' })
    const run = message.id.slice('msg_'.length)
    expect(message).toEqual({
      id: `msg_${run}`,
      type: 'message',
      role: 'assistant',
      model: 'a',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: expect.stringMatching(/^mrthought_[\w-]+\.0$/u) },
        { type: 'text', text: 'Hello' },
      ],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    })
    expect(message._request_id).toMatch(/^req_/u)
    expect(await server!.store.runs.get(run)).toMatchObject({ agent: 'a', protocol: 'messages', status: 'completed' })
  })

  test('a stream comes while the model writes', async () => {
    const gate = latch()
    const { client } = await start(createScriptedModel([[text('Hel'), gate, text('lo'), finish()]]))
    let said = ''
    const stream = client.messages.stream(asks('Hi')).on('text', (delta) => {
      said += delta
      // The second text is not written before the first has come.
      if (said === 'Hel') gate.open()
    })
    await stream.finalMessage()
    expect(said).toBe('Hello')
  })

  test('the stream begins before the model has answered', async () => {
    const gate = latch()
    const { client } = await start(createScriptedModel([[gate, text('Late'), finish()]]))
    const stream = await client.messages.create({ ...asks('Hi'), stream: true })
    for await (const event of stream) if (event.type === 'message_start') gate.open()
  })

  test('stream and JSON are equal, but for ids', async () => {
    const script = () => [[reasoning('Hm'), text('Hello'), finish()]]
    const { client } = await start(createScriptedModel([...script(), ...script()]))
    const whole = await client.messages.create(asks('Hi'))
    const streamed = await client.messages.stream(asks('Hi')).finalMessage()
    const plain = ({ content, ...message }: Anthropic.Message) =>
      JSON.parse(
        JSON.stringify({
          ...message,
          parsed_output: undefined,
          id: '',
          content: content.map((block) => (block.type === 'thinking' ? { ...block, signature: '' } : block)),
        }),
      ) as object
    expect(plain(streamed)).toEqual(plain(whole))
  })

  test('a client’s tool: two calls at once, results with an error and an image, and the model sees all of it', async () => {
    const model = createTold((prompt) =>
      prompt.some(({ role }) => role === 'tool')
        ? [text('Sunny.'), finish()]
        : [
            text('Let me look.'),
            toolCall('call_1', 'get_weather', { city: 'Rome' }),
            toolCall('functions.get_weather:0', 'get_weather', { city: 'Oslo' }),
            finish('tool-calls'),
          ],
    )
    const { client } = await start(model)
    const tools = [weather]
    const first = await client.messages.stream({ ...asks('Weather?'), tools }).finalMessage()
    expect(first.stop_reason).toBe('tool_use')
    const calls = first.content.filter((block) => block.type === 'tool_use')
    expect(calls.map(({ name, input }) => [name, input])).toEqual([
      ['get_weather', { city: 'Rome' }],
      ['get_weather', { city: 'Oslo' }],
    ])
    expect(calls.every(({ id }) => /^[\w-]+$/u.test(id))).toBe(true)
    const image = {
      type: 'image' as const,
      source: { type: 'base64' as const, media_type: 'image/png' as const, data: 'iVBORw0KGgo=' },
    }
    const second = await client.messages.create({
      ...asks('Weather?'),
      tools,
      messages: [
        ...asks('Weather?').messages,
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: calls[1]!.id, is_error: true, content: 'No such city' },
            { type: 'tool_result', tool_use_id: calls[0]!.id, content: [{ type: 'text', text: 'Sun' }, image] },
            { type: 'text', text: 'Well?' },
          ],
        },
      ],
    })
    expect(second.content).toEqual([{ type: 'text', text: 'Sunny.' }])
    expect(textsOf(model.prompts[1]!)).toEqual([
      'user: Weather?',
      'assistant: Let me look.|call get_weather|call get_weather',
      'tool: text "Sun"|error-text "No such city"',
      'user: file|Well?',
    ])
    // The provider's own ids.
    expect([...resultsIn(model.prompts[1]!).keys()]).toEqual(['call_1', 'functions.get_weather:0'])
  })

  test('a server’s tool is a block while it runs, and no client runs it', async () => {
    const running = latch()
    const model = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool'
        ? [text('It is 84.'), finish()]
        : [toolCall('c1', 'slow', { n: 1 }), finish('tool-calls')],
    )
    const slow = {
      description: 'Slow',
      parameters: z.looseObject({}),
      execute: async () => {
        await running.opened
        return 'done'
      },
    }
    const { client } = await start(model, { agents: { a: agent('tools: [slow]') }, tools: { slow } })
    const types: string[] = []
    const stream = client.messages.stream(asks('Go')).on('streamEvent', (event) => {
      if (event.type !== 'content_block_start') return
      const { type } = event.content_block as { type: string }
      types.push(type)
      if (type === 'mcp_tool_use') running.open()
    })
    const { content, id, stop_reason: reason } = await stream.finalMessage()
    expect(types).toEqual(['mcp_tool_use', 'mcp_tool_result', 'text'])
    const call = `mcptoolu_${id.slice(4)}_0`
    expect([reason, content]).toMatchObject([
      'end_turn',
      [
        { type: 'mcp_tool_use', id: call, server_name: 'a', name: 'slow', input: { n: 1 } },
        { type: 'mcp_tool_result', tool_use_id: call, is_error: false, content: [{ type: 'text', text: 'done' }] },
        { type: 'text', text: 'It is 84.' },
      ],
    ])
  })

  test('the server’s tools can be hidden', async () => {
    const model = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool' ? [text('Done.'), finish()] : [toolCall('c1', 'fast'), finish('tool-calls')],
    )
    const fast = { description: 'Fast', parameters: z.object({}), execute: () => 1 }
    const agents = { a: agent('tools: [fast]') }
    const { client } = await start(model, { agents, tools: { fast } }, { messages: { serverTools: 'hidden' } })
    const { content } = await client.messages.create(asks('Go'))
    expect(content.map(({ type }) => type)).toEqual(['text'])
  })

  test('a deferred tool is offered once a result names it, and the placeholder never', async () => {
    const model = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool'
        ? [text('Loaded.'), finish()]
        : [toolCall('call_1', 'ToolSearch', { query: 'x' }), finish('tool-calls')],
    )
    const { post } = await start(model)
    const later = { defer_loading: true, input_schema: { type: 'object' } }
    const tools = [
      { name: 'ToolSearch', input_schema: { type: 'object' } },
      { name: 'WebFetch', ...later },
      { name: 'Other', ...later },
      { name: 'DeferredToolPlaceholder', ...later },
    ]
    const first = (await (await post({ ...asks('Go'), tools })).json()) as Anthropic.Message
    expect(model.calls[0]!.tools!.map(({ name }) => name)).toEqual(['ToolSearch'])
    const found = ['WebFetch', 'DeferredToolPlaceholder'].map((name) => ({ type: 'tool_reference', tool_name: name }))
    const messages = [
      ...asks('Go').messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: found }] },
    ]
    expect((await post({ ...asks('Go'), tools, messages })).status).toBe(200)
    expect(model.calls[1]!.tools!.map(({ name }) => name)).toEqual(['ToolSearch', 'WebFetch'])
    expect(textsOf(model.prompts[1]!).at(-1)).toContain('The tool WebFetch can be used now.')
  })

  test('thinking that is not shown has a token all the same, and none at all if it is off', async () => {
    const script = () => [[reasoning('Hm'), text('Hello'), finish()]]
    const { post } = await start(createScriptedModel([...script(), ...script()]))
    const content = async (thinking: object) =>
      ((await (await post({ ...asks('Hi'), thinking })).json()) as Anthropic.Message).content
    expect(await content({ type: 'adaptive', display: 'omitted' })).toMatchObject([
      { type: 'thinking', thinking: '', signature: expect.stringMatching(/^mrthought_/u) },
      { type: 'text' },
    ])
    expect(await content({ type: 'disabled' })).toEqual([{ type: 'text', text: 'Hello' }])
  })

  test('an answer without any text is not empty, and is none for the model', async () => {
    const model = createTold(() => [finish()])
    const { client, post } = await start(model)
    const first = await client.messages.create(asks('Hi'))
    expect(first).toMatchObject({ content: [{ type: 'text', text: '(no text)' }], stop_reason: 'end_turn' })
    const messages = [
      ...asks('Hi').messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: 'Go' },
    ]
    expect((await post({ ...asks(''), messages })).status).toBe(200)
    expect(JSON.stringify(model.prompts[1])).not.toContain('(no text)')
  })
})

describe('structured output', () => {
  const format = {
    type: 'json_schema' as const,
    schema: {
      type: 'object',
      properties: { answer: { type: 'string' } },
      required: ['answer'],
      additionalProperties: false,
    },
  }

  test.each([true, false])('the JSON in one piece; stream: %s', async (stream) => {
    const { client } = await start(createScriptedModel([[text('{"ans', 'wer":"42"}'), finish()]]))
    const body = { ...asks('What?'), output_config: { format } }
    const message = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body)
    expect(message.content).toMatchObject([{ type: 'text', text: '{"answer":"42"}' }])
  })

  test('an answer that is not the requested JSON: an error, and nothing of it', async () => {
    const bad = () => createTold(() => [text('{"ans'), finish()])
    const { post } = await start(bad())
    const body = { ...asks('What?'), output_config: { format } }
    const streamed = await (await post({ ...body, stream: true })).text()
    expect(streamed).toContain('event: error')
    expect(streamed).toContain('"type":"run_failed"')
    expect(streamed).not.toContain('{\\"ans')
    expect(streamed).not.toContain('content_block_start')
    const whole = await post(body)
    expect([whole.status, whole.headers.get('x-should-retry')]).toEqual([500, 'false'])
    expect(await whole.json()).toMatchObject({ type: 'error', error: { type: 'api_error' } })
  })
})

describe('how an answer ends', () => {
  const counted = (prompt: Told['prompts'][number], then: object[]) =>
    resultsIn(prompt).has('c1') ? then : [toolCall('c1', 'fast'), finish('tool-calls')]
  const fast = { description: 'Fast', parameters: z.object({}), execute: () => 1 }

  test('a run that fails: a type that no client repeats, and 500 without a retry', async () => {
    const model = createTold((prompt) => counted(prompt, [errorPart({ message: 'It broke.' })]) as never)
    const { post, client } = await start(model, { agents: { a: agent('tools: [fast]') }, tools: { fast } })
    await expect(client.messages.stream(asks('Go')).finalMessage()).rejects.toThrow('It broke.')
    const streamed = await (await post({ ...asks('Go'), stream: true })).text()
    expect(streamed).toMatch(
      /event: error\ndata: \{"type":"error","error":\{"type":"run_failed","message":".*It broke/u,
    )
    expect(streamed).not.toContain('message_stop')
    const whole = await post(asks('Go'))
    expect([whole.status, whole.headers.get('x-should-retry')]).toEqual([500, 'false'])
    expect(await whole.json()).toMatchObject({
      type: 'error',
      error: { type: 'api_error', message: expect.stringContaining('It broke.') },
    })
  })

  test('a budget: its own type', async () => {
    const model = createTold(() => [text(...Array.from({ length: 400 }, () => 'x '.repeat(50))), finish()])
    const { post } = await start(model, { agents: { a: agent('', 'budget: { tokens: 1000 }') } })
    expect(await (await post({ ...asks('Go'), stream: true })).text()).toContain('"type":"budget_exceeded"')
    const whole = await post(asks('Go'))
    expect([whole.status, whole.headers.get('x-should-retry')]).toEqual([500, 'false'])
    expect(await whole.json()).toMatchObject({ error: { type: 'budget_exceeded' } })
  })

  test('the client’s own limit is max_tokens; another’s is an error, after which nobody spends more', async () => {
    const model = createTold(() => [text('Cut o'), finish('length')])
    const { post } = await start(model)
    const message = (limit: number) => post({ ...asks('Go'), max_tokens: limit })
    // The scripted model reports 5 tokens.
    expect(await (await message(5)).json()).toMatchObject({ stop_reason: 'max_tokens' })
    const other = await message(1000)
    expect(other.status).toBe(500)
    expect(await other.json()).toMatchObject({ error: { type: 'max_output_tokens' } })
  })

  test('a filter: refusal', async () => {
    const { client } = await start(createTold(() => [text('I must not'), finish('content-filter')]))
    expect(await client.messages.create(asks('Go'))).toMatchObject({ stop_reason: 'refusal' })
  })

  test('a provider’s rate limit: 429, and its wait', async () => {
    const upstream = await startUpstream((reply) =>
      reply.refuse(429, { error: { message: 'slow down' } }, { 'retry-after': '17' }),
    )
    const yaml = agent('retries: 0').replace('script:m', 'local:m')
    const endpoints = [{ name: 'local', baseURL: upstream.baseURL }]
    try {
      server = await startServer({ agents: { a: yaml }, models: { endpoints } })
      const whole = await server.post('/v1/messages', asks('Go'))
      expect([whole.status, whole.headers.get('retry-after')]).toEqual([429, '17'])
      expect(await whole.json()).toMatchObject({ error: { type: 'rate_limit_error' } })
      const streamed = await (await server.post('/v1/messages', { ...asks('Go'), stream: true })).text()
      expect(streamed).toContain('"type":"rate_limit_error"')
    } finally {
      await upstream.close()
    }
  })

  test('a stop', async () => {
    const gate = latch()
    const { server: running, post } = await start(createScriptedModel([[text('Hel'), gate, finish()]]))
    const response = await post({ ...asks('Go'), stream: true })
    await gate.reached
    await running.runtime.stop(response.headers.get('x-millrace-run-id')!)
    expect(await response.text()).toContain('"type":"aborted"')
    gate.open()
  })

  test('silence: a ping', async () => {
    const gate = latch()
    const { post } = await start(createScriptedModel([[gate, text('Late'), finish()]]), {}, { keepAliveMs: 20 })
    const response = await post({ ...asks('Go'), stream: true })
    let said = ''
    for await (const piece of response.body!) {
      said += Buffer.from(piece).toString()
      if (said.includes('event: ping\ndata: {"type":"ping"}\n\n')) gate.open()
    }
    expect(said).toContain('Late')
  })

  test('usage: the sum of all calls, without those from the cache', async () => {
    const { post } = await start(
      createTold((prompt) => counted(prompt, [text('Done'), finish()]) as never),
      { agents: { a: agent('tools: [fast]') }, tools: { fast } },
    )
    const { usage } = (await (await post(asks('Go'))).json()) as Anthropic.Message
    expect(usage).toMatchObject({ input_tokens: 20, output_tokens: 10 })
  })
})
