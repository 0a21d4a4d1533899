import { afterEach, describe, expect, test } from 'vitest'
import { streamModel } from './model.ts'
import { createScriptedModel } from './testing/scripted-model.ts'
import { startRecordedProvider, type Protocol, type RecordedProvider } from './testing/recorded-provider.ts'
import { createModelResolver, type Endpoint, type ModelResolverOptions } from './resolver.ts'
import type { LazyModel } from './language-model.ts'
import { isDirect } from './part-sink.ts'

const keys = { GEMINI_API_KEY: 'g-key', OPENAI_API_KEY: 'o-key', ANTHROPIC_API_KEY: 'a-key' }
let server: RecordedProvider | undefined
describe('createModelResolver', () => {
  afterEach(async () => {
    await server?.close()
    server = undefined
  })

  test.each([
    ['google:gemini-2.5-flash', 'google', 'gemini-2.5-flash'],
    ['gemini-2.0-flash-exp', 'google', 'gemini-2.0-flash-exp'],
    ['gpt-5', 'openai', 'gpt-5'],
    ['chatgpt-4o-latest', 'openai', 'chatgpt-4o-latest'],
    ['o3-mini', 'openai', 'o3-mini'],
    ['claude-sonnet-4-5', 'anthropic', 'claude-sonnet-4-5'],
    ['local:llama3:8b', 'local', 'llama3:8b'],
    ['demo:assistant', 'demo', 'assistant'],
  ])('%s is %s', (name, provider, modelId) => {
    const resolver = createModelResolver({
      env: keys,
      endpoints: [{ name: 'local', baseURL: 'http://localhost:1/v1' }],
    })
    expect(resolver.resolve(name)).toMatchObject({ provider, modelId })
    expect(resolver.resolve(name)).toBe(resolver.resolve(name))
  })

  test('names without end do not fill the memory', () => {
    const resolver = createModelResolver({ env: keys })
    const first = resolver.resolve('gpt-first')
    for (let i = 0; i < 100; i++) resolver.resolve(`gpt-${i}`)
    expect(resolver.resolve('gpt-99')).toBe(resolver.resolve('gpt-99'))
    expect(resolver.resolve('gpt-first')).not.toBe(first)
  })

  test('a bare name and the full one are one model', () => {
    const resolver = createModelResolver({ env: keys })
    expect(resolver.resolve('gpt-5')).toBe(resolver.resolve('openai:gpt-5'))
  })

  test.each([
    ['gemini-2.5-flash', /"gemini-2.5-flash" needs a key: set GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY/],
    ['openai:gpt-5', /set OPENAI_API_KEY in/],
    ['claude-3', /set ANTHROPIC_API_KEY in/],
    ['gate:x', /set GATE_TOKEN in/],
  ])('%s without its key', (name, message) => {
    const endpoints = [{ name: 'gate', baseURL: 'http://localhost:1', apiKeyEnv: 'GATE_TOKEN' }]
    const resolver = createModelResolver({ env: { OPENAI_API_KEY: '  ' }, endpoints })
    expect(() => resolver.resolve(name)).toThrow(
      expect.objectContaining({ code: 'missing-key', message: expect.stringMatching(message) }),
    )
  })

  test.each([
    ['openai:gpt-5', 'OPENAI_API_KEY', 'sk-1\nsk-2'],
    ['gemini-2.5-flash', 'GEMINI_API_KEY', 'AIza\u0000x'],
    ['local:x', 'LOCAL_API_KEY', 'key\u200b'],
  ])('%s: a %s that no header can hold is said by its name, not repeated', (name, variable, key) => {
    const endpoints = [{ name: 'local', baseURL: 'http://localhost:1' }]
    const resolver = createModelResolver({ env: { [variable]: key }, endpoints })
    let message = ''
    expect(() => {
      try {
        resolver.resolve(name)
      } catch (error) {
        message = (error as Error).message
        throw error
      }
    }).toThrow(expect.objectContaining({ code: 'bad-key' }))
    expect(message).toContain(`The environment variable ${variable} contains a line break`)
    expect(message).not.toContain(key)
  })

  test.each(['mistral:large', 'llama3', 'openai:', '', ':x', '__proto__:x', 'constructor'])('%j is unknown', (name) => {
    const resolver = createModelResolver({ env: keys, endpoints: [{ name: 'local', baseURL: 'http://localhost:1' }] })
    expect(() => resolver.resolve(name)).toThrow(
      expect.objectContaining({
        code: 'unknown-model',
        message: expect.stringContaining('local, google, openai, anthropic, demo'),
      }),
    )
  })

  test('another demo model is unknown', () => {
    expect(() => createModelResolver({ env: {} }).resolve('demo:x')).toThrow(/demo:assistant/)
  })

  test("the caller's own models come first", () => {
    const model = createScriptedModel([])
    const providers = new Map([['openai', () => model]])
    const resolver = createModelResolver({ env: {}, providers, defaultModel: 'openai:x' })
    expect(resolver.resolve('openai:x')).toBe(model)
    expect(resolver.defaultModel).toBe('openai:x')
    expect(resolver.providers).toEqual(['openai', 'google', 'anthropic', 'demo', 'recording'])
  })

  test.each<[Endpoint[], RegExp]>([
    [[{ name: 'openai', baseURL: 'http://a' }], /built-in/],
    [[{ name: 'a:b', baseURL: 'http://a' }], /letters/],
    [[{ name: 'a', baseURL: 'localhost:11434' }], /http:\/\//],
    [
      [
        { name: 'a', baseURL: 'http://a' },
        { name: 'a', baseURL: 'http://b' },
      ],
      /same name/,
    ],
  ])('refuses endpoints %j', (endpoints, message) => {
    expect(() => createModelResolver({ env: {}, endpoints })).toThrow(
      expect.objectContaining({ code: 'invalid-endpoint', message: expect.stringMatching(message) }),
    )
  })

  const chat = [
    '{"id":"1","choices":[{"index":0,"delta":{"content":"Hi"}}]}',
    '{"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
  ]
  const lines: Record<Protocol, string[]> = {
    'openai-chat': chat,
    'openai-responses': [
      '{"type":"response.created","response":{"id":"r","created_at":1,"model":"m"}}',
      '{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1"}}',
      '{"type":"response.output_text.delta","item_id":"m1","delta":"Hi"}',
      '{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m1"}}',
      '{"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":1}}}',
    ],
    anthropic: [
      '{"type":"message_start","message":{"id":"m","model":"c","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":0}}}',
      '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}',
      '{"type":"content_block_stop","index":0}',
      '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}',
      '{"type":"message_stop"}',
    ],
    google: ['{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}'],
  }

  async function ask(model: Parameters<typeof streamModel>[0]): Promise<string> {
    let text = ''
    await streamModel(
      model,
      { messages: [{ role: 'user', content: 'x' }], signal: new AbortController().signal },
      (part) => {
        if (part.type === 'text-delta') text += part.delta
      },
    )
    return text
  }

  test.each<[string, Protocol, string, RegExp, object]>([
    ['openai:m', 'openai-responses', 'OPENAI_BASE_URL', /\/v1\/responses$/, { authorization: 'Bearer o-key' }],
    ['claude-x', 'anthropic', 'ANTHROPIC_BASE_URL', /\/v1\/messages$/, { 'x-api-key': 'a-key' }],
    ['gemini-x', 'google', 'GEMINI_BASE_URL', /\/v1\/models\/gemini-x:stream/, { 'x-goog-api-key': 'g-key' }],
  ])('%s asks the server that %s names', async (name, protocol, variable, path, headers) => {
    server = await startRecordedProvider([{ protocol, lines: lines[protocol] }])
    const resolver = createModelResolver({ env: { ...keys, [variable]: server.baseURL } })
    expect(await ask(resolver.resolve(name))).toBe('Hi')
    expect(server.requests[0]).toMatchObject({ path: expect.stringMatching(path), headers })
  })

  test.each<[Protocol, Record<string, string>, Record<string, string | undefined>]>([
    ['openai-chat', {}, { authorization: undefined }],
    ['openai-chat', { MY_BOX_API_KEY: 'k' }, { authorization: 'Bearer k' }],
    ['openai-responses', {}, { authorization: undefined }],
    ['openai-responses', { MY_BOX_API_KEY: 'k' }, { authorization: 'Bearer k' }],
    ['anthropic', {}, { 'x-api-key': undefined }],
    ['google', {}, { 'x-goog-api-key': undefined }],
    ['anthropic', { MY_BOX_API_KEY: 'k' }, { 'x-api-key': 'k' }],
    ['google', { MY_BOX_API_KEY: 'k' }, { 'x-goog-api-key': 'k' }],
  ])('an endpoint speaks %s with %j', async (protocol, env, headers) => {
    server = await startRecordedProvider([{ protocol, lines: lines[protocol] }])
    const endpoints = [{ name: 'my-box', baseURL: server.baseURL, protocol }]
    // The other providers' keys are set, and none of them may be sent to this server.
    const resolver = createModelResolver({ env: { ...keys, ...env }, endpoints })
    expect(await ask(resolver.resolve('my-box:m'))).toBe('Hi')
    for (const [name, value] of Object.entries(headers)) expect(server.requests[0]?.headers[name]).toBe(value)
    expect(JSON.stringify(server.requests[0]?.headers)).not.toMatch(/[goa]-key/)
    if (protocol === 'openai-chat')
      expect(server.requests[0]?.body).toMatchObject({ stream_options: { include_usage: true } })
  })

  test('a refused key names its variable, and not itself', async () => {
    server = await startRecordedProvider([{ status: 401, body: '{"error":{"message":"Incorrect API key"}}' }])
    const resolver = createModelResolver({ env: { ...keys, OPENAI_BASE_URL: server.baseURL } })
    await expect(ask(resolver.resolve('gpt-5'))).rejects.toMatchObject({
      code: 'model-refused',
      status: 401,
      message: 'openai:gpt-5 refused the request (401): Incorrect API key (check OPENAI_API_KEY)',
    })
  })

  test('MILLRACE_DECODER takes precedence over the config, and a typo is an error', async () => {
    const isRead = async (options: Partial<ModelResolverOptions>) => {
      const { resolve } = createModelResolver({
        env: {},
        endpoints: [{ name: 'box', baseURL: 'http://127.0.0.1:9/v1' }],
        ...options,
      })
      return isDirect(await (resolve('box:m') as LazyModel).load())
    }
    expect(await isRead({})).toBe(true)
    expect(await isRead({ decoder: 'package' })).toBe(false)
    expect(await isRead({ env: { MILLRACE_DECODER: 'package' } })).toBe(false)
    expect(await isRead({ decoder: 'package', env: { MILLRACE_DECODER: 'millrace' } })).toBe(true)
    await expect(isRead({ env: { MILLRACE_DECODER: 'lean' } })).rejects.toThrow(
      'MILLRACE_DECODER must be "millrace" or "package", not "lean".',
    )
  })
})
