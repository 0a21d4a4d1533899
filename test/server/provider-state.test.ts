/** What a model must get back, and no other: over `/v1`, in four protocols, with tools that the client runs. Real servers, real packages. */
import { afterEach, describe, expect, test } from 'vitest'
import {
  startRecordedProvider,
  type Protocol,
  type RecordedProvider,
} from '../../src/models/testing/recorded-provider.ts'
import { json, says, thinksAndCalls } from '../support/protocol-lines.ts'
import { startServer, type TestServer } from '../support/server.ts'

let provider: RecordedProvider
let server: TestServer
afterEach(async () => {
  await server.close()
  await provider.close()
})

const protocols: Protocol[] = ['openai-chat', 'openai-responses', 'anthropic', 'google']
const calls = thinksAndCalls('pageTitle')

const tools = [{ type: 'function', function: { name: 'pageTitle', parameters: { type: 'object', properties: {} } } }]
const hi = [{ role: 'user', content: 'hi' }]
interface Asked {
  role: string
  content: string | null
  tool_calls: { id: string; extra_content?: unknown }[]
}

async function start(
  replies: Parameters<typeof startRecordedProvider>[0],
  agent: string,
  endpoints: [string, Protocol][],
  more: object = {},
) {
  provider = await startRecordedProvider(replies)
  server = await startServer({
    agents: { a: agent },
    models: {
      endpoints: endpoints.map(([name, protocol]) => ({ name, baseURL: provider.baseURL, protocol, ...more })),
    },
  })
}

async function complete(messages: unknown[], more: object = {}): Promise<Asked> {
  const body = JSON.stringify({ model: 'a', messages, tools, ...more })
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const answer = (await response.json()) as { choices: [{ message: Asked }]; error?: unknown }
  expect(answer.error).toBeUndefined()
  return answer.choices[0].message
}

const agentOf = (...models: string[]) =>
  `workflow: [{ id: a, type: llm, config: { model: [${models.join(', ')}], stream: true, messages: $input.messages, retries: 0, reasoning: low } }]`
const sent = (at: number): string => JSON.stringify(provider.requests[at]?.body)
/** As most clients keep it: what they know of the protocol. */
const bare = ({ role, content, tool_calls: made }: Asked) => ({
  role,
  content,
  tool_calls: made.map((made) => ({ ...made, extra_content: undefined })),
})
const answered = (message: Asked) => [
  ...hi,
  bare(message),
  { role: 'tool', tool_call_id: message.tool_calls[0]!.id, content: 'T' },
]

/** The message in which the agent's model calls the client's tool; asked again, it says `ok`. */
async function callOf(protocol: Protocol): Promise<Asked> {
  const replies = [calls[protocol], says[protocol]].map((lines) => ({ protocol, lines }))
  await start(replies, agentOf('box:m'), [['box', protocol]])
  return complete(hi)
}

describe.each(protocols)('%s', (protocol) => {
  // OpenAI keeps it, and is told which it was.
  const mark = protocol === 'openai-responses' ? '"rs"' : 'SIG'
  test('state comes back with the next request, though the client keeps only what OpenAI has', async () => {
    const message = await callOf(protocol)
    expect(sent(0)).not.toContain(mark)
    expect((await complete(answered(message))).content).toBe('ok')
    expect(sent(1)).toContain(mark)
    expect(sent(1)).toContain('"T"')
    expect(sent(1).match(/pageTitle/g)!.length).toBeGreaterThan(1)
  })

  test('of a turn that was asked something else, or made other calls, nothing is taken', async () => {
    const message = await callOf(protocol)
    const [, said, result] = answered(message)
    await complete([{ role: 'user', content: 'something else' }, said, result])
    expect(sent(1)).not.toContain(mark)
    const other = {
      ...bare(message),
      tool_calls: [{ ...bare(message).tool_calls[0], function: { name: 'pageTitle', arguments: '{"x":1}' } }],
    }
    await complete([...hi, other, result])
    expect(sent(2)).not.toContain(mark)
  })

  // The first has made the turn and is gone; the second goes on.
  test.each(protocols)('nothing of it reaches a fallback with %s, and the round is legal there', async (other) => {
    await start(
      [
        { protocol, lines: calls[protocol] },
        { status: 500, body: '{}' },
        { protocol: other, lines: says[other] },
      ],
      agentOf('one:m', 'two:n'),
      [
        ['one', protocol],
        ['two', other],
      ],
    )
    const message = await complete(hi)
    expect((await complete(answered(message))).content).toBe('ok')
    expect(sent(1)).toContain(mark)
    expect(sent(2)).not.toMatch(/SIG|"Hm"|reasoning_content|"rs"/u)
    expect(sent(2)).toContain('pageTitle')
    expect(sent(2)).toContain('call_1')
    // Anthropic asks for a thought of its own at the beginning of the round.
    if (other === 'anthropic') expect(provider.requests[2]!.body).not.toMatchObject({ thinking: expect.anything() })
  })
})

/** What one model answers, with or without a thought before its text. */
const turns: Record<'text' | 'thinking', Record<Protocol, string[]>> = {
  text: says,
  thinking: {
    'openai-chat': [calls['openai-chat'][0]!, ...says['openai-chat']],
    'openai-responses': [...calls['openai-responses'].slice(0, 3), ...says['openai-responses']],
    anthropic: [...calls.anthropic.slice(0, 5), ...says.anthropic.slice(1)],
    google: json([
      {
        candidates: [
          {
            content: {
              role: 'model',
              parts: [
                { text: 'Hm', thought: true },
                { text: 'ok', thoughtSignature: 'SIG' },
              ],
            },
            finishReason: 'STOP',
          },
        ],
      },
    ]),
  },
}

interface Sent {
  messages?: { role: string; content: unknown }[]
  contents?: { role: string; parts: unknown[] }[]
  input?: { role?: string; type?: string; content?: unknown }[]
}

/** What the services check of a conversation: turns that are not empty and take turns. */
function expectLegal({ messages, contents, input }: Sent): void {
  const list = messages ?? contents ?? input ?? []
  expect(list.map(({ role }) => role)).toEqual(['user', contents ? 'model' : 'assistant', 'user'])
  for (const turn of list) expect(JSON.stringify('parts' in turn ? turn.parts : turn.content).length).toBeGreaterThan(2)
}

describe.each(['text', 'thinking'] as const)('a turn of %s that another model goes on with is legal', (kind) => {
  test.each(protocols.flatMap((one) => protocols.map((two) => [one, two] as const)))(
    '%s, then %s',
    async (one, two) => {
      const replies = [
        { protocol: one, lines: turns[kind][one] },
        { status: 500, body: '{}' },
        { protocol: two, lines: says[two] },
      ]
      const endpoints: [string, Protocol][] = [
        ['one', one],
        ['two', two],
      ]
      await start(replies, `history: server\n${agentOf('one:m', 'two:n').replace(', reasoning: low', '')}`, endpoints)
      for (const [at, said] of ['hi', 'and now?'].entries()) {
        const message = { id: `u${at}`, role: 'user', parts: [{ type: 'text', text: said }] }
        const body = JSON.stringify({ id: 'thread', agentId: 'a', messages: [message] })
        const headers = { 'content-type': 'application/json' }
        expect(await (await fetch(`${server.url}/api/chat`, { method: 'POST', headers, body })).text()).toContain(
          '"ok"',
        )
      }
      // The model that made it gets its thought back.
      const mark = one === 'openai-responses' ? '"rs"' : 'SIG'
      expect(sent(1).includes(mark)).toBe(kind === 'thinking')
      expect(sent(2)).not.toMatch(/SIG|"Hm"|reasoning_content|"rs"/u)
      expectLegal(provider.requests[2]!.body as Sent)
    },
  )
})

test('ids of calls that Anthropic refuses, such as Kimi’s, are sent as others, each call with its result', async () => {
  await start([{ protocol: 'anthropic', lines: says.anthropic }], agentOf('box:m'), [['box', 'anthropic']])
  const ids = ['functions.pageTitle:0', 'call_0', 'functions.pageTitle:1']
  const made = ids.map((id) => ({ id, type: 'function', function: { name: 'pageTitle', arguments: '{}' } }))
  const results = ids.map((id, i) => ({ role: 'tool', tool_call_id: id, content: `T${i}` }))
  await complete([...hi, { role: 'assistant', content: null, tool_calls: made }, ...results])
  const used = Array.from(sent(0).matchAll(/"type":"tool_use","id":"([^"]+)"/gu), ([, id]) => id)
  const told = Array.from(sent(0).matchAll(/"type":"tool_result","tool_use_id":"([^"]+)","content":[^}]*T(\d)/gu))
  expect(new Set(used).size).toBe(3)
  for (const id of used) expect(id).toMatch(/^[\w-]+$/u)
  expect(told.map(([, id, n]) => [id, n])).toEqual(used.map((id, i) => [id, String(i)]))
})

test("Gemini's signature is in the form of its own endpoint for OpenAI clients, both ways", async () => {
  await start(
    [
      { protocol: 'google', lines: calls.google },
      { protocol: 'google', lines: says.google },
    ],
    agentOf('box:m'),
    [['box', 'google']],
  )
  const message = await complete(hi)
  const signed = { google: { thought_signature: 'SIG' } }
  expect(message.tool_calls[0]).toMatchObject({ extra_content: signed })
  const made = { id: 'mine', type: 'function', function: { name: 'pageTitle', arguments: '{}' }, extra_content: signed }
  await complete([
    ...hi,
    { role: 'assistant', content: null, tool_calls: [made] },
    { role: 'tool', tool_call_id: 'mine', content: 'T' },
  ])
  expect(sent(1)).toContain('SIG')
})

test('a thread that brings reasoning from elsewhere, which the provider refuses, is sent once more without it', async () => {
  const refusal = {
    status: 400,
    body: JSON.stringify({ error: { message: 'Invalid `signature` in `thinking` block' } }),
  }
  await start([refusal, { protocol: 'openai-chat', lines: says['openai-chat'] }], agentOf('box:m'), [
    ['box', 'openai-chat'],
  ])
  const told = { role: 'assistant', content: 'so', reasoning_content: 'Hm' }
  expect((await complete([...hi, told, ...hi])).content).toBe('ok')
  expect(sent(0)).toContain('Hm')
  expect(sent(1)).not.toContain('Hm')
})

describe('system messages over the chat protocol', () => {
  const system = 'system: "Of the agent.", '
  const agent = agentOf('box:m').replace('config: { ', `config: { ${system}`)
  const ok = { protocol: 'openai-chat' as const, lines: says['openai-chat'] }
  const rolesOf = (at: number) =>
    (provider.requests[at]!.body as { messages: { role: string; content: string }[] }).messages

  test('leading ones are one, and later ones stay', async () => {
    await start([ok], agent, [['box', 'openai-chat']])
    await complete([{ role: 'developer', content: 'Of the client.' }, ...hi, { role: 'system', content: 'Later.' }])
    expect(rolesOf(0)).toEqual([
      { role: 'system', content: 'Of the agent.\n\nOf the client.' },
      { role: 'user', content: 'hi' },
      { role: 'system', content: 'Later.' },
    ])
  })

  test('a server that refuses a later one gets it as text of the user, once and from then on', async () => {
    const refusal = { status: 400, body: JSON.stringify({ error: 'System message must be at the beginning.' }) }
    await start([refusal, ok], agent, [['box', 'openai-chat']])
    const messages = [...hi, { role: 'system', content: 'Later.' }]
    await complete(messages)
    await complete(messages)
    expect(provider.requests).toHaveLength(3)
    for (const at of [1, 2]) expect(rolesOf(at).map(({ role }) => role)).toEqual(['system', 'user', 'user'])
    expect(rolesOf(2).at(-1)!.content).toContain('Later.')
  })
})

describe.each(protocols)('a later system message over %s', (protocol) => {
  const ok = { protocol, lines: says[protocol] }
  const refusal = { status: 400, body: JSON.stringify({ error: { message: 'Unexpected role "system" after "user"' } }) }
  const endpoints: [string, Protocol][] = [['box', protocol]]
  const messages = [...hi, { role: 'system', content: 'Later.' }]
  const isAsUser = (at: number) => sent(at).includes('<system>\\nLater.\\n</system>')

  test('is text of the user from the start where the endpoint says so', async () => {
    await start([ok], agentOf('box:m'), endpoints, { systemMessages: 'first' })
    await complete(messages)
    expect(provider.requests).toHaveLength(1)
    expect(isAsUser(0)).toBe(true)
  })

  // Google's own package takes none, so it never asks with one.
  const asks = protocol === 'google' ? [] : [protocol]
  test.each(asks)('is so after a refusal that names the role, and one time only', async () => {
    await start([refusal, refusal, ok], agentOf('box:m'), endpoints)
    await expect(complete(messages)).rejects.toThrow()
    expect([isAsUser(0), isAsUser(1)]).toEqual([false, true])
    expect(provider.requests).toHaveLength(2)
    expect((await complete(messages)).content).toBe('ok')
    expect(isAsUser(2)).toBe(true)
  })

  test('stays as it is after a refusal that names something else', async () => {
    const other = { status: 400, body: JSON.stringify({ error: { message: 'Unknown field "top_k"' } }) }
    await start([other, ok], agentOf('box:m'), endpoints)
    await expect(complete(messages)).rejects.toThrow()
    expect(provider.requests).toHaveLength(1)
  })
})

describe('answers that did not come about', () => {
  const malformed = {
    protocol: 'google' as const,
    lines: json([{ candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }] }]),
  }
  const nothing = { protocol: 'google' as const, lines: json([{ candidates: [{ finishReason: 'STOP' }] }]) }
  const ok = { protocol: 'google' as const, lines: says.google }
  const retrying = agentOf('box:m').replace('retries: 0', 'retries: 1')

  test.each([
    ['one that failed', malformed],
    ['one that says nothing', nothing],
  ])('%s is asked for again', async (_, reply) => {
    await start([reply, ok], retrying, [['box', 'google']])
    expect((await complete(hi)).content).toBe('ok')
    expect(provider.requests).toHaveLength(2)
  })

  test('one that failed falls back; the loop stays with who answered, and the one that failed is not asked first again', async () => {
    await start([malformed, { protocol: 'anthropic', lines: says.anthropic }], agentOf('one:m', 'two:n'), [
      ['one', 'google'],
      ['two', 'anthropic'],
    ])
    await complete(hi)
    await complete(hi)
    expect(provider.requests.map(({ path }) => path.includes('messages'))).toEqual([false, true, true])
  })

  test('one that says nothing at all is told as a warning', async () => {
    await start([nothing], agentOf('box:m'), [['box', 'google']])
    expect((await complete(hi)).content).toBe('')
    const [{ id } = { id: '' }] = await server.store.runs.list()
    const types: string[] = []
    for await (const batch of server.store.log.read(id)) types.push(...batch.map(({ type }) => type))
    expect(types).toContain('warning')
  })
})
