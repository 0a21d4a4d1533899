/** A run calls a tool of the server, then one of the client: what the next model call is told. Over `/v1`, where the client knows of its own call only. */
import { lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startRecordedProvider, type Protocol } from '../../src/models/testing/recorded-provider.ts'
import { createAgUiClient } from '../support/ag-ui.ts'
import { createChat } from '../support/chat.ts'
import { says, thinksAndCalls } from '../support/protocol-lines.ts'
import { startServer } from '../support/server.ts'

const protocols: Protocol[] = ['openai-chat', 'openai-responses', 'anthropic', 'google']
const parameters = { type: 'object', properties: { command: { type: 'string' } } }

async function start(protocol: Protocol, top = '') {
  const replies = [
    thinksAndCalls('calculator', 'call_own', { expression: '12*7' }),
    thinksAndCalls('bash', 'call_client', { command: 'echo hi' }),
    thinksAndCalls('bash', 'call_more', { command: 'ls' }),
    says,
  ]
  const provider = await startRecordedProvider(replies.map((lines) => ({ protocol, lines: lines[protocol] })))
  const config =
    'model: box:m, stream: true, messages: $input.messages, tools: [calculator], retries: 0, reasoning: low'
  const server = await startServer({
    agents: { a: `${top}\nworkflow: [{ id: a, type: llm, config: { ${config} } }]` },
    models: { endpoints: [{ name: 'box', baseURL: provider.baseURL, protocol }] },
  })
  onTestFinished(async () => {
    await server.close()
    await provider.close()
  })
  return {
    ...server,
    /** Whether a model call was told of a signature, and of these. */
    told(at: number, ...words: string[]) {
      const body = JSON.stringify(provider.requests[at]?.body)
      const mark = protocol === 'openai-responses' ? '"rs"' : 'SIG'
      return [mark, ...words].filter((word) => !body.includes(word))
    },
  }
}

type Served = Awaited<ReturnType<typeof start>>

/** As most clients keep an answer: what they know of the protocol. */
async function complete({ post }: Served, messages: object[], headers: Record<string, string> = {}): Promise<object> {
  const tools = [{ type: 'function', function: { name: 'bash', parameters } }]
  const response = await post('/v1/chat/completions', { model: 'a', messages, tools }, { headers })
  const body = (await response.json()) as { choices: [{ message: { content: string; tool_calls?: object[] } }] }
  expect([response.status, body]).toMatchObject([200, { choices: [{}] }])
  const { content, tool_calls: calls } = body.choices[0].message
  const made = calls?.map((call) => ({ ...call, extra_content: undefined }))
  return { role: 'assistant', content, ...(made && { tool_calls: made }) }
}

const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: `out of ${id}` })

const kept: [way: string, top: string, headers: Record<string, string>][] = [
  ['the client keeps the conversation', '', {}],
  ['the client names it', '', { 'x-thread-id': 't' }],
  ['the server keeps it', 'history: server', { 'x-thread-id': 't' }],
  ['the server keeps it, and nobody names it', 'history: server', {}],
]

const cases = kept.flatMap((way, i) => protocols.slice(i === 0 ? 0 : -1).map((protocol) => [protocol, ...way] as const))
describe('OpenAI: turns', () => {
  test.each(cases)('%s, %s', async (protocol, _, top, headers) => {
    const server = await start(protocol, top)
    const messages: object[] = [{ role: 'user', content: [{ type: 'text', text: 'What is 12*7? Then run echo hi.' }] }]
    messages.push(await complete(server, messages, headers), result('call_client'))
    messages.push(await complete(server, messages, headers), result('call_more'))
    messages.push(await complete(server, messages, headers), { role: 'user', content: 'And?' })
    await complete(server, messages, headers)
    const first = ['12*7', '84', 'echo hi', 'out of call_client']
    expect([2, 3, 4].map((at) => server.told(at, ...first))).toEqual([[], [], []])
    expect([3, 4].map((at) => server.told(at, 'out of call_more'))).toEqual([[], []])
    expect(server.told(4, 'And?')).toEqual([])
  })

  test.each(protocols)('%s, useChat', async (protocol) => {
    const server = await start(protocol)
    const { chat, errors } = createChat(server.url, {
      body: { tools: [{ name: 'bash', parameters }] },
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall: { toolCallId, toolName } }) {
        if (toolName !== 'bash') return
        void chat.addToolOutput({ tool: toolName, toolCallId, output: `out of ${toolCallId}` } as never)
      },
    })
    await chat.sendMessage({ text: 'What is 12*7?' })
    await expect.poll(() => JSON.stringify(chat.messages)).toContain('"ok"')
    await expect.poll(() => chat.status).toBe('ready')
    await chat.sendMessage({ text: 'And?' })
    expect(errors).toEqual([])
    for (const at of [2, 3, 4]) expect(server.told(at, '12*7', '84', 'echo hi', 'out of call_client')).toEqual([])
    expect(server.told(4, 'out of call_more', 'And?')).toEqual([])
  })

  test.each(protocols)('%s, AG-UI', async (protocol) => {
    const server = await start(protocol)
    const client = createAgUiClient(server.url, { tools: [{ name: 'bash', description: 'Runs.', parameters }] })
    client.say('What is 12*7?')
    await client.run()
    for (const id of ['call_client', 'call_more']) {
      client.answer(id, `out of ${id}`)
      await client.run()
    }
    client.say('And?')
    await client.run()
    for (const at of [2, 3, 4]) expect(server.told(at, '12*7', '84', 'echo hi', 'out of call_client')).toEqual([])
    expect(server.told(4, 'out of call_more', 'And?')).toEqual([])
  })
})
