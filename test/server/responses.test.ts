/** `POST /v1/responses` over a real socket, with the `openai` package as client: answers, client tools, branches, histories, the way back. */
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { createTold, type Told } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'
import type { EngineOptions } from '../support/engine.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const path = '/v1/responses'
const weather = {
  type: 'function' as const,
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
}

async function start(
  model: Told | ReturnType<typeof createScriptedModel>,
  options: Partial<EngineOptions> = {},
  handler: Partial<HandlerOptions> = {},
) {
  server = await startServer({ agents: { a: agent() }, scripts: { m: model }, ...options }, handler)
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
  return { server, client, post: server.post }
}

/** Says how many messages it was told, and the last of them. */
const echoing = () =>
  createTold((prompt) => {
    const last = prompt.at(-1)!
    const said = Array.isArray(last.content)
      ? last.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
      : last.content
    return [text(`${prompt.length}: ${said}`), finish()]
  })

const textsOf = (prompt: Told['prompts'][number]) =>
  prompt.map(({ role, content }) =>
    typeof content === 'string'
      ? `${role}: ${content}`
      : `${role}: ${content
          .map((part) => {
            if (part.type === 'text') return part.text
            if (part.type === 'tool-call') return `call ${part.toolName}`
            if (part.type === 'tool-result')
              return `result ${JSON.stringify('value' in part.output ? part.output.value : '')}`
            return part.type
          })
          .join('|')}`,
  )

describe('POST /v1/responses', () => {
  test('one JSON: the whole response object', async () => {
    const { client } = await start(createScriptedModel([[reasoning('Hm'), text('Hel', 'lo'), finish()]]))
    const response = await client.responses.create({
      model: 'a',
      input: 'Hi',
      instructions: 'Be brief',
      metadata: { a: 'b' },
      tools: [weather],
      temperature: 0.5,
      max_output_tokens: 100,
      store: true,
    })
    const run = response.id.slice('resp_'.length)
    expect(response.output_text).toBe('Hello')
    expect(response).toMatchObject({
      id: `resp_${run}`,
      object: 'response',
      status: 'completed',
      error: null,
      incomplete_details: null,
      model: 'a',
      instructions: 'Be brief',
      metadata: { a: 'b' },
      temperature: 0.5,
      top_p: 1,
      max_output_tokens: 100,
      max_tool_calls: null,
      previous_response_id: null,
      parallel_tool_calls: true,
      tool_choice: 'auto',
      truncation: 'disabled',
      store: true,
      background: false,
      tools: [{ ...weather, description: null }],
      output: [
        { id: `rs_${run}_0`, type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm' }] },
        {
          id: `msg_${run}_1`,
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Hello', annotations: [], logprobs: [] }],
        },
      ],
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 15,
      },
    })
    expect(typeof response.created_at).toBe('number')
    const row = await server!.store.runs.get(run)
    expect(row).toMatchObject({ agent: 'a', protocol: 'responses', status: 'completed' })
  })

  test('a stream comes while the model writes', async () => {
    const gate = latch()
    const { client } = await start(createScriptedModel([[text('Hel'), gate, text('lo'), finish()]]))
    const stream = await client.responses.create({ model: 'a', input: 'Hi', stream: true })
    const types: string[] = []
    let said = ''
    for await (const event of stream) {
      types.push(event.type)
      if (event.type === 'response.output_text.delta') said += event.delta
      // The second text is not written before the first has come.
      if (said === 'Hel') gate.open()
    }
    expect(said).toBe('Hello')
    expect(types.slice(0, 4)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
    ])
    expect(types.at(-1)).toBe('response.completed')
  })

  test('the stream begins before the model has answered', async () => {
    const gate = latch()
    const { client } = await start(createScriptedModel([[gate, text('Late'), finish()]]))
    const stream = await client.responses.create({ model: 'a', input: 'Hi', stream: true })
    for await (const event of stream) if (event.type === 'response.in_progress') gate.open()
  })

  test('stream and JSON are equal, but for ids and times', async () => {
    const script = () => [[reasoning('Hm'), text('Hello'), finish()]]
    const { client } = await start(createScriptedModel([...script(), ...script()]))
    const whole = await client.responses.create({ model: 'a', input: 'Hi' })
    const streamed = await client.responses.stream({ model: 'a', input: 'Hi' }).finalResponse()
    const plain = (response: OpenAI.Responses.Response) =>
      JSON.parse(
        JSON.stringify({ ...response, created_at: 0, completed_at: 0, output_parsed: undefined })
          .replaceAll(response.id.slice('resp_'.length), 'run')
          .replaceAll(',"parsed":null', ''),
      ) as object
    expect(plain(streamed)).toEqual(plain(whole))
  })

  test('a client’s tool: two calls at once, their outputs by the id of the response', async () => {
    const model = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool'
        ? [text('Sunny.'), finish()]
        : [
            text('Let me look.'),
            toolCall('call_1', 'get_weather', { city: 'Rome' }),
            toolCall('call_2', 'get_weather', { city: 'Oslo' }),
            finish('tool-calls'),
          ],
    )
    const { client } = await start(model)
    const first = await client.responses.create({ model: 'a', input: 'Weather?', tools: [weather] })
    const calls = first.output.filter((item) => item.type === 'function_call')
    expect(calls.map(({ call_id, name, arguments: json, status }) => [call_id, name, json, status])).toEqual([
      ['call_1', 'get_weather', '{"city":"Rome"}', 'completed'],
      ['call_2', 'get_weather', '{"city":"Oslo"}', 'completed'],
    ])
    const second = await client.responses.create({
      model: 'a',
      previous_response_id: first.id,
      tools: [weather],
      input: calls.map(({ call_id }) => ({ type: 'function_call_output' as const, call_id, output: `of ${call_id}` })),
    })
    expect(second.output_text).toBe('Sunny.')
    expect(second.previous_response_id).toBe(first.id)
    expect(textsOf(model.prompts[1]!)).toEqual([
      'user: Weather?',
      'assistant: Let me look.|call get_weather|call get_weather',
      'tool: result "of call_1"|result "of call_2"',
    ])
  })

  test('a namespaced tool, and a custom one: the model gets one name, the client its own fields', async () => {
    const model = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool'
        ? [text('Done.'), finish()]
        : [
            toolCall('call_1', 'agents__spawn', { goal: 'x' }),
            toolCall('call_2', 'apply_patch', { input: '*** Begin Patch' }),
            finish('tool-calls'),
          ],
    )
    const { post } = await start(model)
    const tools = [
      {
        type: 'namespace',
        name: 'agents',
        description: 'Others',
        tools: [{ type: 'function', name: 'spawn', parameters: {} }],
      },
      { type: 'custom', name: 'apply_patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
      { type: 'web_search', external_web_access: false },
    ]
    const first = (await (
      await post(path, { model: 'a', input: 'Go', tools, store: false })
    ).json()) as OpenAI.Responses.Response
    expect(model.calls[0]!.tools!.map(({ name }) => name)).toEqual(['agents__spawn', 'apply_patch'])
    expect(first.output).toMatchObject([
      { type: 'function_call', name: 'spawn', namespace: 'agents', arguments: '{"goal":"x"}', call_id: 'call_1' },
      { type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin Patch', call_id: 'call_2' },
    ])
    const input = [
      { role: 'user', content: 'Go' },
      ...first.output,
      { type: 'function_call_output', call_id: 'call_1', output: 'spawned' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'patched' }] },
    ]
    const second = await post(path, { model: 'a', input, tools, store: false })
    expect(await second.json()).toMatchObject({ status: 'completed', store: false })
    expect(textsOf(model.prompts[1]!)).toEqual([
      'user: Go',
      'assistant: call agents__spawn|call apply_patch',
      'tool: result "spawned"|result "patched"',
    ])
    const run = await newest()
    expect(run.previousRunId).toBe(first.id.slice('resp_'.length))
    expect(run.input['ignored']).toEqual(['tools[2] (web_search)'])
  })

  test('a server’s tool is an item while it runs', async () => {
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
    const stream = await client.responses.create({ model: 'a', input: 'Go', stream: true })
    let last: OpenAI.Responses.Response | undefined
    for await (const event of stream) {
      types.push(event.type)
      if (event.type === 'response.mcp_call.in_progress') running.open()
      if (event.type === 'response.completed') last = event.response
    }
    expect(types.indexOf('response.mcp_call.in_progress')).toBeLessThan(types.indexOf('response.mcp_call.completed'))
    expect(last!.output).toMatchObject([
      {
        type: 'mcp_call',
        server_label: 'a',
        name: 'slow',
        arguments: '{"n":1}',
        output: 'done',
        error: null,
        status: 'completed',
      },
      { type: 'message' },
    ])
  })

  test('the server’s tools can be hidden', async () => {
    const model = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool' ? [text('Done.'), finish()] : [toolCall('c1', 'fast'), finish('tool-calls')],
    )
    const fast = { description: 'Fast', parameters: z.object({}), execute: () => 1 }
    const agents = { a: agent('tools: [fast]') }
    const { client } = await start(model, { agents, tools: { fast } }, { responses: { serverTools: 'hidden' } })
    const { output } = await client.responses.create({ model: 'a', input: 'Go' })
    expect(output.map(({ type }) => type)).toEqual(['message'])
  })

  test('structured output: text.format, and the helper parses it', async () => {
    const { client } = await start(createScriptedModel([[text('{"answer":"42"}'), finish()]]))
    const format = {
      type: 'json_schema' as const,
      name: 'answer',
      strict: true,
      schema: {
        type: 'object',
        properties: { answer: { type: 'string' } },
        required: ['answer'],
        additionalProperties: false,
      },
    }
    const response = await client.responses.parse({ model: 'a', input: 'What?', text: { format } })
    expect(response.output_parsed).toEqual({ answer: '42' })
    expect(response.text).toMatchObject({ format })
  })

  test('an answer that is not the requested JSON: response.failed, and nothing of it', async () => {
    const wrong = () => [text('{"other":1}'), finish()]
    const { post } = await start(createTold(wrong))
    const schema = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] }
    const format = { type: 'json_schema', name: 'answer', schema }
    const body = { model: 'a', input: 'What?', text: { format } }
    const streamed = await (await post(path, { ...body, stream: true })).text()
    expect(streamed).toContain('event: response.failed')
    expect(streamed).not.toContain('output_text.delta')
    expect((await post(path, body)).status).toBe(502)
  })

  test('a failure: a status that no client repeats, and in a stream the last event', async () => {
    const refuse = () => Promise.reject(new Error('never'))
    const broken = { ...createScriptedModel([]), doStream: refuse, doGenerate: refuse }
    const { post, client } = await start(broken as never)
    const response = await post(path, { model: 'a', input: 'Hi' })
    expect(response.status).toBeGreaterThanOrEqual(500)
    expect(response.headers.get('x-should-retry')).toBe('false')
    const events = await client.responses.create({ model: 'a', input: 'Hi', stream: true })
    const types: string[] = []
    for await (const event of events) {
      types.push(event.type)
      if (event.type === 'response.failed') expect(event.response.error?.code).toBe('server_error')
    }
    expect(types.at(-1)).toBe('response.failed')
  })
})

async function newest() {
  const [row] = await server!.store.runs.list({ limit: 1 })
  for await (const [entry] of server!.store.log.read(row!.id, { limit: 1 }))
    if (entry?.type === 'run-start') return entry
  throw new Error('No run.')
}

describe('conversations of /v1/responses', () => {
  test('previous_response_id: two branches of one response, each with its own past; instructions are not inherited', async () => {
    const model = echoing()
    const { client } = await start(model)
    const first = await client.responses.create({ model: 'a', input: 'One', instructions: 'Old rules' })
    const ask = (input: string, previous: string, instructions?: string) =>
      client.responses.create({
        model: 'a',
        input,
        previous_response_id: previous,
        ...(instructions && { instructions }),
      })
    const left = await ask('Left', first.id, 'New rules')
    await ask('Right', first.id)
    await ask('More', left.id)
    expect(model.prompts.slice(1).map(textsOf)).toEqual([
      ['system: New rules', 'user: One', 'assistant: 2: One', 'user: Left'],
      ['user: One', 'assistant: 2: One', 'user: Right'],
      ['user: One', 'assistant: 2: One', 'user: Left', 'assistant: 4: Left', 'user: More'],
    ])
    const threads = new Set((await server!.store.runs.list()).map(({ threadId }) => threadId))
    expect(threads.size).toBe(1)
  })

  test('a client that sends the whole history: one chain, and each run records only what is new', async () => {
    const model = echoing()
    const { client } = await start(model)
    const history: OpenAI.Responses.ResponseInput = [{ role: 'developer', content: 'Rules' }]
    const runs: (string | undefined)[] = []
    for (const words of ['One', 'Two', 'Three']) {
      history.push({ role: 'user', content: words })
      const response = await client.responses.create({ model: 'a', input: history, store: false })
      history.push(...(response.output as OpenAI.Responses.ResponseInputItem[]))
      const start = await newest()
      runs.push(start.previousRunId)
      expect((start.input['messages'] as unknown[]).length).toBe(words === 'One' ? 2 : 1)
    }
    const ids = (await server!.store.runs.list()).toReversed().map(({ id }) => id)
    expect(runs).toEqual([undefined, ids[0], ids[1]])
    expect(textsOf(model.prompts[2]!)).toEqual([
      'system: Rules',
      'user: One',
      'assistant: 2: One',
      'user: Two',
      'assistant: 4: Two',
      'user: Three',
    ])
  })

  test('without ids the thread’s runs are compared by content; a changed message is another conversation', async () => {
    const { post } = await start(echoing())
    const headers = { 'thread-id': 'codex-thread-1' }
    const ask = async (...input: object[]) => {
      await (await post(path, { model: 'a', input }, { headers })).json()
      return newest()
    }
    const user = (content: string) => ({ role: 'user', content })
    const said = (content: string) => ({ role: 'assistant', content })
    const first = await ask(user('One'))
    const second = await ask(user('One'), said('1: One'), user('Two'))
    expect(second.previousRunId).toBe(first.runId)
    expect(second.threadId).toBe(first.threadId)
    const changed = await ask(user('One!'), said('1: One'), user('Two'))
    expect(changed.previousRunId).toBeUndefined()
    expect(changed.threadId).toBe(first.threadId)
    const branch = await ask(user('One'), said('1: One'), user('Other'))
    expect(branch.previousRunId).toBe(first.runId)
  })

  test('thoughts come back to their provider with its signature, though the client has none', async () => {
    const thought: ScriptStep[] = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm' },
      { type: 'reasoning-end', id: 'r', providerMetadata: { anthropic: { signature: 'sig-of-provider' } } },
    ]
    const model = createTold(() => [thought, text('Hello'), finish()])
    const { client } = await start(model)
    const first = await client.responses.create({ model: 'a', input: 'One', store: false })
    expect(JSON.stringify(first)).not.toContain('sig-of-provider')
    const said = first.output.filter(({ type }) => type === 'message') as OpenAI.Responses.ResponseInputItem[]
    const input = [{ role: 'user' as const, content: 'One' }, ...said, { role: 'user' as const, content: 'Two' }]
    await client.responses.create({ model: 'a', input, store: false })
    const [, assistant] = model.prompts[1]!
    expect(assistant).toMatchObject({
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm', providerOptions: { anthropic: { signature: 'sig-of-provider' } } },
        {},
      ],
    })
  })

  test('a run before it was deleted: the client’s whole history counts', async () => {
    const model = echoing()
    const { client } = await start(model)
    const first = await client.responses.create({ model: 'a', input: 'One' })
    const history: OpenAI.Responses.ResponseInput = [
      { role: 'user', content: 'One' },
      ...(first.output as OpenAI.Responses.ResponseInputItem[]),
      { role: 'user', content: 'Two' },
    ]
    const second = await client.responses.create({ model: 'a', input: history })
    await client.responses.delete(first.id)
    history.push(...(second.output as OpenAI.Responses.ResponseInputItem[]), { role: 'user', content: 'Three' })
    await client.responses.create({ model: 'a', input: history })
    expect(textsOf(model.prompts.at(-1)!)).toEqual([
      'user: One',
      'assistant: 1: One',
      'user: Two',
      'assistant: 3: Two',
      'user: Three',
    ])
  })

  test('item_reference stands for what the run has recorded', async () => {
    const model = echoing()
    const { client } = await start(model)
    const first = await client.responses.create({ model: 'a', input: 'One' })
    const [item] = first.output
    await client.responses.create({
      model: 'a',
      input: [
        { role: 'user', content: 'One' },
        { type: 'item_reference', id: item!.id! },
        { type: 'item_reference', id: 'msg_nosuch_0' },
        { role: 'user', content: 'Two' },
      ],
    })
    expect(textsOf(model.prompts[1]!)).toEqual(['user: One', 'assistant: 1: One', 'user: Two'])
  })

  test('store: false: GET while it is fresh, and no previous_response_id', async () => {
    const { client } = await start(echoing())
    const first = await client.responses.create({ model: 'a', input: 'One', store: false })
    expect((await client.responses.retrieve(first.id)).output_text).toBe('1: One')
    const refused = client.responses.create({ model: 'a', input: 'Two', previous_response_id: first.id })
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
  })

  test('a request that Codex repeats joins its run; one that goes on does not', async () => {
    const model = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool'
        ? [text('Done.'), finish()]
        : [text('Let me look.'), toolCall('call_1', 'get_weather', {}), finish('tool-calls')],
    )
    const { post } = await start(model)
    const body = (input: object[]) => ({
      model: 'a',
      input,
      tools: [weather],
      store: false,
      client_metadata: { turn_id: 'turn-1', thread_id: 't-1' },
    })
    const headers = { 'thread-id': 't-1' }
    const ask = async (...input: object[]) => {
      const response = await post(path, body(input), { headers })
      return (await response.json()) as OpenAI.Responses.Response
    }
    const question = { role: 'user', content: 'Go' }
    const first = await ask(question)
    // The connection broke after a part of the answer.
    const again = await ask(question, { type: 'message', role: 'assistant', content: 'Let me' })
    expect(again.id).toBe(first.id)
    expect(again.output).toEqual(first.output)
    const next = await ask(question, ...first.output, { type: 'function_call_output', call_id: 'call_1', output: 'ok' })
    expect(next.id).not.toBe(first.id)
    expect(next.status).toBe('completed')
    expect(model.calls).toHaveLength(2)
    expect((await newest()).previousRunId).toBe(first.id.slice('resp_'.length))
  })

  test('a run that has failed is not run again by a CLI that asks again', async () => {
    let calls = 0
    const doStream = () => {
      calls++
      return Promise.reject(new Error('broken'))
    }
    const { post } = await start({ ...createScriptedModel([]), doStream } as never)
    const body = {
      model: 'a',
      input: [{ role: 'user', content: 'Go' }],
      stream: true,
      client_metadata: { turn_id: 'turn-9' },
    }
    const headers = { 'thread-id': 't-9' }
    const first = await post(path, body, { headers })
    expect(await first.text()).toContain('response.failed')
    const before = calls
    const again = await post(path, body, { headers })
    expect(again.status).toBe(400)
    expect(await again.json()).toMatchObject({ error: { type: 'invalid_request_error', code: 'run-failed' } })
    expect(calls).toBe(before)
    expect(await server!.store.runs.list()).toHaveLength(1)
  })
})
