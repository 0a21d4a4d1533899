/** Model servers of one's own, by flag, environment and config: all four protocols through the real provider packages. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { composedFixtures, protocolOf, recordedFixtures } from '../../src/models/testing/provider-fixtures.ts'
import {
  startRecordedProvider,
  type Protocol,
  type RecordedProvider,
  type Reply,
} from '../../src/models/testing/recorded-provider.ts'
import { parseEndpoint } from '../../src/project/project.ts'
import { serve, type Served } from '../../src/server/serve.ts'
import { folder, serving } from '../support/cli.ts'
import { entriesOf, only } from '../support/engine.ts'

const protocols: Protocol[] = ['openai-chat', 'openai-responses', 'anthropic', 'google']
const keyHeaders = ['authorization', 'x-api-key', 'x-goog-api-key']
/** What the protocol's clients send a key in. */
const keyHeader: Record<Protocol, Record<string, string>> = {
  'openai-chat': { authorization: 'Bearer box-secret' },
  'openai-responses': { authorization: 'Bearer box-secret' },
  anthropic: { 'x-api-key': 'box-secret' },
  google: { 'x-goog-api-key': 'box-secret' },
}
/** Keys of the providers themselves: none of them is a box's. */
const otherKeys = { OPENAI_API_KEY: 'their-o', ANTHROPIC_API_KEY: 'their-a', GOOGLE_GENERATIVE_AI_API_KEY: 'their-g' }

let provider: RecordedProvider | undefined
afterEach(() => provider?.close())

const json = (chunks: object[]) => chunks.map((chunk) => JSON.stringify(chunk))
const item = (type: string, more: object) => ({ type: `response.output_item.${type}`, output_index: 0, ...more })
const started = {
  type: 'message_start',
  message: {
    id: 'm',
    model: 'm',
    role: 'assistant',
    content: [],
    stop_reason: null,
    usage: { input_tokens: 5, output_tokens: 0 },
  },
}
const stopped = (stop_reason: string) => [
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 3 } },
  { type: 'message_stop' },
]
const completed = { type: 'response.completed', response: { usage: { input_tokens: 5, output_tokens: 3 } } }
const counted = { usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3, totalTokenCount: 8 } }

/** An answer in words, in two pieces. */
const says: Record<Protocol, string[]> = {
  'openai-chat': json([
    { id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: 'It is ' } }] },
    { id: 'c', choices: [{ index: 0, delta: { content: '84.' } }] },
    { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { id: 'c', choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } },
  ]),
  'openai-responses': json([
    { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
    item('added', { item: { type: 'message', id: 'm1' } }),
    { type: 'response.output_text.delta', item_id: 'm1', delta: 'It is ' },
    { type: 'response.output_text.delta', item_id: 'm1', delta: '84.' },
    item('done', { item: { type: 'message', id: 'm1' } }),
    completed,
  ]),
  anthropic: json([
    started,
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'It is ' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: '84.' } },
    ...stopped('end_turn'),
  ]),
  google: json([
    { candidates: [{ content: { role: 'model', parts: [{ text: 'It is ' }] } }] },
    { candidates: [{ content: { role: 'model', parts: [{ text: '84.' }] } }] },
    { candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP' }], ...counted },
  ]),
}

/** A call of the calculator. */
const args = '{"expression":"12*7"}'
const call = {
  type: 'function_call',
  id: 'fc1',
  call_id: 'call_1',
  name: 'calculator',
  arguments: args,
  status: 'completed',
}
const calls: Record<Protocol, string[]> = {
  'openai-chat': json([
    {
      id: 'c',
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [
              { index: 0, id: 'call_1', type: 'function', function: { name: 'calculator', arguments: args } },
            ],
          },
        },
      ],
    },
    { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
    { id: 'c', choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } },
  ]),
  'openai-responses': json([
    { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
    item('added', { item: { ...call, arguments: '', status: 'in_progress' } }),
    { type: 'response.function_call_arguments.delta', item_id: 'fc1', output_index: 0, delta: args },
    { type: 'response.function_call_arguments.done', item_id: 'fc1', output_index: 0, arguments: args },
    item('done', { item: call }),
    completed,
  ]),
  anthropic: json([
    started,
    {
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'tool_use', id: 'call_1', name: 'calculator', input: {} },
    },
    { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: args } },
    ...stopped('tool_use'),
  ]),
  google: json([
    {
      candidates: [
        {
          content: {
            role: 'model',
            parts: [{ functionCall: { id: 'call_1', name: 'calculator', args: JSON.parse(args) as object } }],
          },
          finishReason: 'STOP',
        },
      ],
      ...counted,
    },
  ]),
}

/** How the second request brings the tool's result. */
const result: Record<Protocol, object> = {
  'openai-chat': {
    messages: expect.arrayContaining([
      expect.objectContaining({ role: 'tool', tool_call_id: 'call_1', content: expect.stringContaining('84') }),
    ]),
  },
  'openai-responses': {
    input: expect.arrayContaining([
      expect.objectContaining({
        type: 'function_call_output',
        call_id: 'call_1',
        output: expect.stringContaining('84'),
      }),
    ]),
  },
  anthropic: {
    messages: expect.arrayContaining([
      expect.objectContaining({
        role: 'user',
        content: [
          expect.objectContaining({
            type: 'tool_result',
            tool_use_id: 'call_1',
            content: expect.stringContaining('84'),
          }),
        ],
      }),
    ]),
  },
  google: {
    contents: expect.arrayContaining([
      expect.objectContaining({
        parts: [
          {
            functionResponse: expect.objectContaining({
              name: 'calculator',
              response: expect.objectContaining({ content: { result: 84 } }),
            }),
          },
        ],
      }),
    ]),
  },
}

/** How a provider of this protocol refuses. */
const refusal: Record<Protocol, (message: string) => object> = {
  'openai-chat': (message) => ({ error: { message, type: 'x', code: null } }),
  'openai-responses': (message) => ({ error: { message, type: 'x', code: null } }),
  anthropic: (message) => ({ type: 'error', error: { type: 'x', message } }),
  google: (message) => ({ error: { code: 1, message, status: 'X' } }),
}

const agent = (model = 'box:m') => `workflow:
  - id: answer
    type: llm
    config: { model: "${model}", stream: true, messages: "$input.messages", tools: [calculator], retries: 0 }
`

async function served(files: Record<string, string>, env: Record<string, string>, flag?: string): Promise<Served> {
  const endpoints = flag === undefined ? [] : [parseEndpoint(flag)]
  const server = await serve({
    dir: folder({ 'a.yaml': agent(), ...files }),
    data: 'none',
    env: { ...otherKeys, ...env },
    port: 0,
    endpoints,
  })
  onTestFinished(() => server.close())
  return server
}

const say = (url: string, path = '/api/beddel/chat', agentId = 'a') =>
  fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agentId, messages: [{ role: 'user', content: 'What is 12*7?' }] }),
  })

describe.each(protocols)('%s', (protocol) => {
  const begin = async (...replies: Reply[]) => (provider = await startRecordedProvider(replies))
  const reply = (lines: string[], more: object = {}): Reply => ({ protocol, lines, ...more })
  const byFlag = (url: string, env = {}) => served({}, env, `box=${protocol}+${url}`)

  test('text, with the key of <NAME>_API_KEY in the header of the protocol', async () => {
    const { baseURL, requests } = await begin(reply(says[protocol]))
    const { url } = await byFlag(baseURL, { BOX_API_KEY: 'box-secret' })
    const response = await say(url)
    expect([response.status, await response.text()]).toEqual([200, 'It is 84.'])
    expect(requests[0]!.headers).toMatchObject(keyHeader[protocol])
    expect(JSON.stringify(requests[0])).not.toContain('their-')
    expect(keyHeaders.filter((name) => requests[0]!.headers[name] !== undefined)).toEqual(
      Object.keys(keyHeader[protocol]),
    )
  })

  test('without such a variable no key is sent, not even one that means nothing', async () => {
    const { baseURL, requests } = await begin(reply(says[protocol]))
    const { url } = await byFlag(baseURL)
    expect(await (await say(url)).text()).toBe('It is 84.')
    for (const name of keyHeaders) expect([name, requests[0]!.headers[name]]).toEqual([name, undefined])
  })

  test('by the environment, and by the config with a variable of its own, which must be set', async () => {
    const { baseURL, requests } = await begin(reply(says[protocol]))
    const env = { MILLRACE_ENDPOINT_BOX: `${protocol}+${baseURL}`, BOX_API_KEY: 'box-secret' }
    expect(await (await say((await served({}, env)).url)).text()).toBe('It is 84.')
    const endpoints = [{ name: 'box', baseURL, protocol, apiKeyEnv: 'OF_THE_BOX' }]
    const config = { 'millrace.config.mjs': `export default ${JSON.stringify({ models: { endpoints } })}` }
    expect(await (await say((await served(config, { OF_THE_BOX: 'box-secret' })).url)).text()).toBe('It is 84.')
    expect(requests).toHaveLength(2)
    for (const { headers } of requests) expect(headers).toMatchObject(keyHeader[protocol])
    const refused = await say((await served(config, { BOX_API_KEY: 'box-secret' })).url)
    expect([refused.status, await refused.json()]).toMatchObject([
      500,
      { error: { code: 'missing-key', message: expect.stringContaining('OF_THE_BOX') } },
    ])
  })

  test('a tool loop: the call runs, its result goes back as the protocol has it', async () => {
    const { baseURL, requests } = await begin(reply(calls[protocol]), reply(says[protocol]))
    const { url, project } = await byFlag(baseURL)
    const response = await say(url)
    expect(await response.text()).toBe('It is 84.')
    expect(requests).toHaveLength(2)
    expect(requests[1]!.body).toMatchObject(result[protocol])
    const entries = await entriesOf(project.runtime.store, response.headers.get('x-millrace-run-id')!)
    expect(only(entries, 'tool-result')).toMatchObject([{ toolName: 'calculator', result: { result: 84 } }])
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed', usage: { source: 'reported' } }])
  })

  test('an error before the answer is a status with the provider’s words', async () => {
    const refuse = (status: number, message: string, headers = {}): Reply => ({
      status,
      body: JSON.stringify(refusal[protocol](message)),
      headers,
    })
    const { baseURL } = await begin(
      refuse(429, 'Slow down', { 'retry-after': '7' }),
      refuse(401, 'Bad key'),
      refuse(400, 'No such model'),
    )
    const { url } = await byFlag(baseURL, { BOX_API_KEY: 'box-secret' })
    const limited = await say(url)
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '7'])
    expect(await limited.text()).toContain('Slow down')
    const unkeyed = await say(url, '/api/chat')
    expect(unkeyed.status).toBe(500)
    const told = await unkeyed.text()
    expect(told).toMatch(/Bad key.*BOX_API_KEY/u)
    expect(told).not.toContain('box-secret')
    const refused = await say(url)
    expect([refused.status, await refused.text()]).toEqual([502, expect.stringContaining('No such model')])
  })

  test('a cut in the middle, by a broken connection or a quiet end, is told in the stream', async () => {
    const after = says[protocol].findIndex((line) => line.includes('It is ')) + 1
    const cut = [{ dropAfter: after }, { endAfter: after }]
    const { baseURL } = await begin(...[...cut, ...cut].map((more) => reply(says[protocol], more)))
    const { url, project } = await byFlag(baseURL)
    for (const code of ['connection-lost', 'model-incomplete']) {
      const response = await say(url, '/api/chat')
      const frames = await response.text()
      expect([response.status, frames]).toEqual([
        200,
        expect.stringMatching(/"delta":"It is "[^]*"type":"error"[^]*\[DONE\]/u),
      ])
      const run = response.headers.get('x-millrace-run-id')!
      const [end] = only(await entriesOf(project.runtime.store, run), 'run-end')
      expect(end).toMatchObject({ outcome: 'failed', error: { code } })
    }
    for (let i = 0; i < 2; i++) {
      const response = await say(url)
      expect(response.status).toBe(200)
      await expect(response.text()).rejects.toThrow()
    }
  })
})

const withoutTools = [...composedFixtures, ...recordedFixtures()].filter(({ tools }) => tools.length === 0)
test.each(withoutTools.map((fixture) => [fixture.name, fixture] as const))(
  'the stream %s comes through',
  async (name, fixture) => {
    const protocol = protocolOf(fixture)
    provider = await startRecordedProvider([{ protocol, lines: fixture.lines, cut: 7 }])
    const { url, project } = await served({}, {}, `box=${protocol}+${provider.baseURL}`)
    const response = await say(url, '/api/chat')
    const body = await response.text()
    const [row] = await project.runtime.store.runs.list()
    // One of the recordings is an error, sent before the first word.
    if (name.includes('error')) expect([row!.status, response.ok]).toEqual(['failed', false])
    else {
      expect(row!.status).toBe('completed')
      expect(body).toMatch(/"type":"text-delta"/u)
    }
  },
)

test('the command: four endpoints at once, each with its own protocol and key; without a protocol it is openai-chat', async () => {
  const servers: Record<string, RecordedProvider> = {}
  for (const protocol of protocols) {
    const server = await startRecordedProvider([{ protocol, lines: says[protocol] }])
    onTestFinished(() => server.close())
    servers[protocol] = server
  }
  const names = protocols.map((protocol) => `my-${protocol}`)
  const flags = protocols.flatMap((protocol, i) => [
    '--endpoint',
    `${names[i]}=${protocol === 'openai-chat' ? '' : `${protocol}+`}${servers[protocol]!.baseURL}`,
  ])
  const env = Object.fromEntries(
    names.map((name) => [`${name.toUpperCase().replaceAll('-', '_')}_API_KEY`, 'box-secret']),
  )
  const files = Object.fromEntries(names.map((name) => [`agents/${name}.yaml`, agent(`${name}:m`)]))
  const { url } = await serving(['--data', 'none', ...flags], { cwd: folder(files), env })
  for (const [i, protocol] of protocols.entries()) {
    expect(await (await say(url, '/api/beddel/chat', names[i])).text()).toBe('It is 84.')
    expect(servers[protocol]!.requests).toMatchObject([{ headers: keyHeader[protocol] }])
  }
})

test('the flag comes before the environment, which comes before the config; a name given twice in one place is refused', async () => {
  const { baseURL } = (provider = await startRecordedProvider([{ protocol: 'anthropic', lines: says.anthropic }]))
  const nowhere = 'http://127.0.0.1:9/v1'
  const config = (...endpoints: object[]) => ({
    'millrace.config.mjs': `export default ${JSON.stringify({ models: { endpoints } })}`,
  })
  const inConfig = { name: 'box', baseURL: nowhere }
  const env = { MILLRACE_ENDPOINT_BOX: nowhere }
  const flag = `box=anthropic+${baseURL}`
  expect(await (await say((await served(config(inConfig), env, flag)).url)).text()).toBe('It is 84.')
  const byEnv = { MILLRACE_ENDPOINT_BOX: `anthropic+${baseURL}` }
  expect(await (await say((await served(config(inConfig), byEnv)).url)).text()).toBe('It is 84.')
  await expect(served(config(inConfig, inConfig), {})).rejects.toMatchObject({ code: 'invalid-endpoint' })
})

test('a misspelt protocol is told with the known ones', () => {
  expect(() => parseEndpoint('box=antropic+http://localhost:1')).toThrow(
    /openai-chat, .*\(did you mean "anthropic"\?\)/u,
  )
})
