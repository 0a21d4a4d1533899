/** Tests `fromLangChain` with LangChain's fake models, and with its ChatOpenAI against a local server. */
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { AIMessageChunk } from '@langchain/core/messages'
import { FakeChatModel, FakeListChatModel, FakeStreamingChatModel } from '@langchain/core/utils/testing'
import { ChatOpenAI } from '@langchain/openai'
import { afterEach, describe, expect, test } from 'vitest'
import { composedFixtures, createProviderModel, protocolOf, recordedFixtures } from '../testing/provider-fixtures.ts'
import { startRecordedProvider, type RecordedProvider, type Reply } from '../testing/recorded-provider.ts'
import { fromLangChain } from './langchain.ts'

const open: RecordedProvider[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

const prompt: LanguageModelV4Prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]
const get = {
  type: 'function' as const,
  name: 'get',
  description: 'Gets',
  inputSchema: { type: 'object' as const, properties: { q: { type: 'string' as const } } },
}

async function partsOf(
  model: { doStream: ReturnType<typeof fromLangChain>['doStream'] },
  options: Partial<LanguageModelV4CallOptions> = {},
) {
  const { stream } = await model.doStream({ prompt, ...options })
  const parts: LanguageModelV4StreamPart[] = []
  for await (const part of stream) parts.push(part)
  return parts
}

/** Collects an answer. */
function said(parts: readonly LanguageModelV4StreamPart[]) {
  const joined = (type: string) =>
    parts.map((part) => (part.type === type && 'delta' in part ? part.delta : '')).join('')
  const finish = parts.find((part) => part.type === 'finish')
  return {
    text: joined('text-delta'),
    reasoning: joined('reasoning-delta'),
    calls: parts.flatMap((part) =>
      part.type === 'tool-call'
        ? [{ id: part.toolCallId, name: part.toolName, input: JSON.parse(part.input || '{}') as unknown }]
        : [],
    ),
    finish: finish?.finishReason.unified,
    usage: finish?.usage,
  }
}

async function chatOpenAI(replies: Reply[], fields: object = {}) {
  const provider = await startRecordedProvider(replies)
  open.push(provider)
  const chat = new ChatOpenAI({
    model: 'm',
    apiKey: 'test',
    maxRetries: 0,
    configuration: { baseURL: provider.baseURL },
    ...fields,
  })
  return { provider, model: fromLangChain(chat) }
}
const chat = (lines: object[], rest: object = {}): Reply => ({
  protocol: 'openai-chat',
  lines: lines.map((line) => JSON.stringify(line)),
  ...rest,
})
const chunk = (delta: object, reason: string | null = null) => ({
  id: 'c',
  created: 1,
  model: 'm-1',
  choices: [{ index: 0, delta, finish_reason: reason }],
})
const hello = [chunk({ role: 'assistant', content: 'Hel' }), chunk({ content: 'lo' }), chunk({}, 'stop')]

describe('LangChain’s fake models', () => {
  test('FakeListChatModel: its text, piece by piece, in one block', async () => {
    const parts = await partsOf(fromLangChain(new FakeListChatModel({ responses: ['Hello 🌍'] })))
    expect(parts.map(({ type }) => type)).toEqual([
      'stream-start',
      'text-start',
      ...Array.from({ length: 7 }, () => 'text-delta'),
      'text-end',
      'finish',
    ])
    expect(said(parts)).toMatchObject({ text: 'Hello 🌍', finish: 'other', usage: { inputTokens: {} } })
  })

  test('FakeListChatModel: why it ends, where it says so', async () => {
    const end = async (finish_reason: string) => {
      const model = new FakeListChatModel({ responses: ['x'], generationInfo: { finish_reason } })
      return said(await partsOf(fromLangChain(model))).finish
    }
    const expected = {
      stop: 'stop',
      length: 'length',
      content_filter: 'content-filter',
      end_turn: 'stop',
      max_tokens: 'length',
      STOP: 'stop',
      SAFETY: 'content-filter',
      odd: 'other',
    }
    const found = await Promise.all(Object.keys(expected).map(async (each) => [each, await end(each)]))
    expect(Object.fromEntries(found)).toEqual(expected)
  })

  test('FakeStreamingChatModel: calls that come whole; tools are bound in the form that it takes', async () => {
    const call = { type: 'tool_call' as const, id: 'c1', name: 'get', args: { q: 'é' } }
    const chunks = [new AIMessageChunk({ content: 'Wait.' }), new AIMessageChunk({ content: '', tool_calls: [call] })]
    const parts = await partsOf(fromLangChain(new FakeStreamingChatModel({ chunks, sleep: 0 })), { tools: [get] })
    expect(said(parts)).toMatchObject({
      text: 'Wait.',
      calls: [{ id: 'c1', name: 'get', input: { q: 'é' } }],
      finish: 'tool-calls',
    })
    const order = parts.map(({ type }) => type)
    expect(order.indexOf('text-end')).toBeLessThan(order.indexOf('tool-input-start'))
  })

  test('FakeStreamingChatModel: what it throws comes out as it is', async () => {
    const model = fromLangChain(new FakeStreamingChatModel({ thrownErrorString: 'no luck' }))
    await expect(partsOf(model)).rejects.toThrow('no luck')
  })

  test('FakeChatModel, which neither streams nor binds tools: its message in one piece; tools are refused by name', async () => {
    const model = fromLangChain(new FakeChatModel({}))
    const parts = await partsOf(model, { prompt: [{ role: 'system', content: 'Be kind.' }, ...prompt] })
    expect(said(parts)).toMatchObject({ text: expect.stringContaining('Be kind.') })
    await expect(partsOf(model, { tools: [get] })).rejects.toThrow(/does not support tools/u)
  })
})

describe('ChatOpenAI', () => {
  const fixtures = [
    ...composedFixtures.filter((each) => protocolOf(each) === 'openai-chat'),
    // Through both of OpenAI's protocols, if the recordings are available.
    ...recordedFixtures().filter((each) => protocolOf(each).startsWith('openai-') && !each.name.includes('error')),
  ]
  test('there are streams to play', () => expect(fixtures.length).toBeGreaterThan(2))

  test.each(fixtures.map((fixture) => [fixture.name, fixture] as const))(
    '%s: it says what the AI SDK’s provider says of the same stream',
    async (_, fixture) => {
      const protocol = protocolOf(fixture)
      const useResponsesApi = protocol === 'openai-responses'
      const { provider, model } = await chatOpenAI([{ protocol, lines: fixture.lines, cut: 7 }], { useResponsesApi })
      const ours = said(await partsOf(model))
      const theirs = said(await partsOf(createProviderModel(fixture, provider.baseURL)))
      expect(ours.text).toBe(theirs.text)
      expect(ours.reasoning).toBe(theirs.reasoning)
      expect(ours.calls).toEqual(theirs.calls)
      expect(ours.finish).toBe(theirs.finish)
      for (const side of ['inputTokens', 'outputTokens'] as const) {
        expect(ours.usage![side].total ?? 0).toBe(theirs.usage![side].total ?? 0)
      }
      expect(ours.usage!.inputTokens.cacheRead ?? 0).toBe(theirs.usage!.inputTokens.cacheRead ?? 0)
    },
  )

  test('calls in pieces, by their index, interleaved; and by servers that do not count', async () => {
    const call = (index: number, rest: object) =>
      chunk({ role: 'assistant', tool_calls: [{ index, type: 'function', ...rest }] })
    const { model } = await chatOpenAI([
      chat([
        call(0, { id: 'a', function: { name: 'get', arguments: '' } }),
        call(1, { id: 'b', function: { name: 'get', arguments: '{"q":' } }),
        call(0, { function: { arguments: '{"q":"1"}' } }),
        call(1, { function: { arguments: '"2"}' } }),
        chunk({}, 'tool_calls'),
      ]),
      chat([
        call(0, { id: 'a', function: { name: 'get', arguments: '{"q":"1"}' } }),
        call(0, { id: 'b', function: { name: 'get', arguments: '{"q":"2"}' } }),
        chunk({}, 'tool_calls'),
      ]),
    ])
    const both = [
      { id: 'a', name: 'get', input: { q: '1' } },
      { id: 'b', name: 'get', input: { q: '2' } },
    ]
    const first = await partsOf(model, { tools: [get] })
    expect(said(first)).toMatchObject({ calls: both, finish: 'tool-calls' })
    const deltas = first.filter((part) => part.type === 'tool-input-delta')
    expect(deltas.map(({ id, delta }) => [id, delta])).toEqual([
      ['b', '{"q":'],
      ['a', '{"q":"1"}'],
      ['b', '"2"}'],
    ])
    expect(said(await partsOf(model, { tools: [get] })).calls).toEqual(both)
  })

  test('id and model of the answer', async () => {
    const { model } = await chatOpenAI([chat(hello)])
    expect((await partsOf(model)).filter(({ type }) => type === 'response-metadata')).toEqual([
      { type: 'response-metadata', id: 'c' },
      { type: 'response-metadata', modelId: 'm-1' },
    ])
    expect([model.provider, model.modelId]).toEqual(['langchain', 'm'])
  })

  test('a conversation: system, text, images, calls and their results, failed ones too', async () => {
    const { provider, model } = await chatOpenAI([chat(hello)])
    await partsOf(model, {
      prompt: [
        { role: 'system', content: 'Be kind.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look' },
            { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([1, 2, 3]) } },
            { type: 'file', mediaType: 'image/*', data: { type: 'url', url: new URL('https://example.com/a.png') } },
            { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf', data: { type: 'data', data: 'SGk=' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', text: 'Hm.' },
            { type: 'text', text: 'Wait.' },
            { type: 'tool-call', toolCallId: 'a', toolName: 'get', input: { q: '1' } },
            { type: 'tool-call', toolCallId: 'b', toolName: 'get', input: {} },
            { type: 'tool-call', toolCallId: 'c', toolName: 'get', input: {} },
          ],
        },
        {
          role: 'tool',
          content: [
            { type: 'tool-result', toolCallId: 'a', toolName: 'get', output: { type: 'json', value: { n: 1 } } },
            { type: 'tool-result', toolCallId: 'b', toolName: 'get', output: { type: 'error-text', value: 'no luck' } },
            {
              type: 'tool-result',
              toolCallId: 'c',
              toolName: 'get',
              output: { type: 'execution-denied', reason: 'no' },
            },
          ],
        },
      ],
    })
    const call = (id: string, args: string) => ({ id, type: 'function', function: { name: 'get', arguments: args } })
    expect((provider.requests[0]!.body as { messages: unknown }).messages).toEqual([
      { role: 'system', content: 'Be kind.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AQID' } },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,SGk=' } },
        ],
      },
      { role: 'assistant', content: 'Wait.', tool_calls: [call('a', '{"q":"1"}'), call('b', '{}'), call('c', '{}')] },
      { role: 'tool', tool_call_id: 'a', name: 'get', content: '{"n":1}' },
      { role: 'tool', tool_call_id: 'b', name: 'get', content: 'no luck' },
      { role: 'tool', tool_call_id: 'c', name: 'get', content: 'The call was denied: no.' },
    ])
  })

  test('tools, their choice, stop sequences, a JSON format and options of LangChain go along; the rest is a warning', async () => {
    const { provider, model } = await chatOpenAI([chat(hello)])
    const ask = async (options: Partial<LanguageModelV4CallOptions>) => {
      const [start] = await partsOf(model, options)
      const warnings = start?.type === 'stream-start' ? start.warnings : []
      return { body: provider.requests.at(-1)!.body as Record<string, unknown>, warnings }
    }
    const { body } = await ask({ tools: [get], stopSequences: ['END'] })
    expect(body).toMatchObject({
      model: 'm',
      stream: true,
      stop: ['END'],
      tools: [{ type: 'function', function: { name: 'get', description: 'Gets', parameters: get.inputSchema } }],
    })
    const choices: [LanguageModelV4CallOptions['toolChoice'], unknown][] = [
      [{ type: 'auto' }, 'auto'],
      [{ type: 'none' }, 'none'],
      [{ type: 'required' }, 'required'],
      [
        { type: 'tool', toolName: 'get' },
        { type: 'function', function: { name: 'get' } },
      ],
    ]
    for (const [toolChoice, expected] of choices) {
      expect((await ask({ tools: [get], toolChoice })).body['tool_choice']).toEqual(expected)
    }
    const schema = { type: 'object' as const, properties: {} }
    const more = await ask({
      responseFormat: { type: 'json', schema },
      providerOptions: { langchain: { prompt_cache_key: 'k', service_tier: 'flex' } },
      temperature: 0.5,
      seed: 7,
      reasoning: 'high',
      headers: { 'x-a': '1', 'x-b': undefined },
    })
    expect(more.body).toMatchObject({
      response_format: { type: 'json_schema', json_schema: { schema } },
      service_tier: 'flex',
    })
    expect(more.warnings.map((each) => 'feature' in each && each.feature)).toEqual([
      'temperature',
      'seed',
      'reasoning',
      'headers',
    ])
  })

  test('an answer that ends without saying why has no end; a broken connection is an error', async () => {
    const { model } = await chatOpenAI([
      chat(hello, { endAfter: 2 }),
      chat([chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'get', arguments: '{"q"' } }] })]),
      chat(hello, { dropAfter: 1 }),
    ])
    const cut = await partsOf(model)
    expect([said(cut).text, said(cut).finish]).toEqual(['Hello', undefined])
    expect(said(await partsOf(model)).calls).toEqual([])
    await expect(partsOf(model)).rejects.toThrow()
  })

  test('calls that LangChain loses, because their server does not say that they are the assistant’s, are no quiet end', async () => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'get', arguments: '{}' } }
    const { model } = await chatOpenAI([chat([chunk({ tool_calls: [call] }), chunk({}, 'tool_calls')])])
    expect(said(await partsOf(model))).toMatchObject({ calls: [], finish: undefined })
  })

  test('a refusal keeps its status and headers', async () => {
    const { model } = await chatOpenAI([
      { status: 429, body: '{"error":{"message":"slow down"}}', headers: { 'retry-after': '7' } },
    ])
    const error = await partsOf(model).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ status: 429, message: expect.stringContaining('slow down') })
  })

  test('as one result', async () => {
    const { model } = await chatOpenAI([chat(hello)])
    expect(await model.doGenerate({ prompt })).toMatchObject({
      content: [{ type: 'text', text: 'Hello' }],
      finishReason: { unified: 'stop', raw: 'stop' },
    })
  })
})

test('thoughts with a signature, as Anthropic’s integration streams them, go back as they came', async () => {
  const seen: unknown[] = []
  const chunks = [
    { content: [{ index: 0, type: 'thinking', thinking: 'Hm' }], response_metadata: { model_provider: 'anthropic' } },
    { content: [{ index: 0, type: 'thinking', thinking: 'm.' }] },
    { content: [{ index: 0, type: 'thinking', signature: 'c2ln' }] },
    { content: [{ index: 1, type: 'text', text: 'Well.' }], usage_metadata: { input_tokens: 7, output_tokens: 1 } },
    {
      content: [],
      additional_kwargs: { stop_reason: 'end_turn' },
      usage_metadata: { input_tokens: 0, output_tokens: 8, input_token_details: { cache_read: 3 } },
    },
  ]
  const model = fromLangChain({
    async stream(messages: unknown) {
      seen.push(messages)
      return (async function* () {
        yield* chunks
      })()
    },
  })
  const parts = await partsOf(model)
  expect(said(parts)).toMatchObject({
    reasoning: 'Hmm.',
    text: 'Well.',
    finish: 'stop',
    usage: { inputTokens: { total: 7, noCache: 4, cacheRead: 3 }, outputTokens: { total: 9 } },
  })
  const end = parts.find((part) => part.type === 'reasoning-end')!
  const block = { type: 'thinking', thinking: 'Hmm.', signature: 'c2ln' }
  // The reasoning is not duplicated.
  expect(end.providerMetadata).toEqual({ langchain: { signature: 'c2ln' } })
  await partsOf(model, {
    prompt: [
      ...prompt,
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hmm.', providerOptions: end.providerMetadata },
          // Supplied by a client.
          {
            type: 'reasoning',
            text: 'No.',
            providerOptions: { langchain: { block: { type: 'image_url', image_url: { url: 'file:///x' } } } },
          },
          { type: 'text', text: 'Well.' },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'a', toolName: 'get', output: { type: 'text', value: 'ok' } },
          { type: 'tool-result', toolCallId: 'b', toolName: 'get', output: { type: 'error-json', value: { no: 1 } } },
        ],
      },
    ],
  })
  expect(seen[1]).toEqual([
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [block, { type: 'text', text: 'Well.' }] },
    { role: 'tool', tool_call_id: 'a', name: 'get', content: 'ok', status: 'success' },
    { role: 'tool', tool_call_id: 'b', name: 'get', content: '{"no":1}', status: 'error' },
  ])
})
