/** Reasoning over `/v1/responses`: clients keep a token of ours, and the provider gets what it has signed, from the log. Real servers, real packages. */
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startRecordedProvider, type Protocol } from '../../src/models/testing/recorded-provider.ts'
import { finish, reasoning, text } from '../../src/models/testing/scripted-model.ts'
import { createTestAccess, headersFor } from '../support/callers.ts'
import { agent } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { says, thinksAndCalls } from '../support/protocol-lines.ts'
import { startServer } from '../support/server.ts'

type Item = OpenAI.Responses.ResponseOutputItem

/** Google signs its calls, whose ids name the run. */
const protocols: Protocol[] = ['openai-responses', 'anthropic', 'openai-chat']
/** What providers sign is no word: it has all that JSON and base64 may bring. */
const signature = 'SIG+/=é"\\u0041'.padEnd(3000, 'x')
const signed = (lines: string[]) => lines.map((line) => line.replaceAll('SIG', JSON.stringify(signature).slice(1, -1)))
const include: OpenAI.Responses.ResponseIncludable[] = ['reasoning.encrypted_content']
const tools = [{ type: 'function' as const, name: 'pageTitle', parameters: {}, strict: false }]
const user = (content: string) => ({ role: 'user' as const, content })
/** What OpenAI itself keeps; it is told which it was. */
const markOf = (protocol: Protocol) => (protocol === 'openai-responses' ? '"rs"' : JSON.stringify(signature))

async function start(protocol: Protocol, handler = {}) {
  const calls = signed(thinksAndCalls('pageTitle')[protocol])
  const provider = await startRecordedProvider(
    [calls, ...Array.from({ length: 3 }, () => says[protocol])].map((lines) => ({ protocol, lines })),
  )
  const server = await startServer(
    {
      agents: {
        a: 'workflow: [{ id: a, type: llm, config: { model: "box:m", stream: true, messages: $input.messages, retries: 0, reasoning: low } }]',
      },
      models: { endpoints: [{ name: 'box', baseURL: provider.baseURL, protocol }] },
    },
    handler,
  )
  onTestFinished(async () => {
    await server.close()
    await provider.close()
  })
  const ask = async (body: object, headers: Record<string, string> = {}) => {
    const response = await server.post('/v1/responses', { model: 'a', tools, include, ...body }, { headers })
    const json = (await response.json()) as OpenAI.Responses.Response
    expect(response.status, JSON.stringify(json)).toBe(200)
    return json
  }
  const sent = (at: number) => JSON.stringify(provider.requests[at]?.body)
  return { server, ask, sent }
}

/** As a client has it that keeps no ids: the token alone names the run. */
const bare = (output: Item[]) => output.map((item) => ({ ...item, id: undefined }))
const tokenIn = (output: Item[]) => output.flatMap((item) => (item.type === 'reasoning' ? item.encrypted_content : []))
const result = { type: 'function_call_output', call_id: 'call_1', output: 'T' }

describe.each(protocols)('reasoning of %s', (protocol) => {
  test('a token comes back, and the provider gets its own, byte for byte', async () => {
    const { ask, sent } = await start(protocol)
    const { output } = await ask({ input: [user('Hi')] })
    const [token] = tokenIn(output)
    expect(token).toMatch(/^[\w.-]{20,200}$/u)
    expect(JSON.stringify(output)).not.toContain('SIG')
    // The client has shortened its history: no run has had this conversation.
    await ask({ input: [user('Another beginning'), ...bare(output), result] })
    expect(sent(1)).toContain(markOf(protocol))
    expect(sent(1)).toContain('Another beginning')
    expect(sent(1)).toContain('"T"')
    expect(sent(1)).not.toContain(token!)
  })

  test('a token that is unknown, foreign, or of a deleted run is left out, without an error', async () => {
    const { server, ask, sent } = await start(protocol, { access: createTestAccess(), authorize: undefined })
    const first = await ask({ input: [user('Hi')] }, headersFor('alice'))
    const history = (items: object[]) => ({ input: [user('Hi again'), ...items, result] })
    const made = bare(first.output).map((item) =>
      'encrypted_content' in item ? { ...item, encrypted_content: 'gAAAAABmade-up' } : item,
    )
    await ask(history(made), headersFor('alice'))
    await ask(history(bare(first.output)), headersFor('bob'))
    const run = first.id.slice('resp_'.length)
    const deleted = await fetch(`${server.url}/v1/responses/resp_${run}`, {
      method: 'DELETE',
      headers: headersFor('alice'),
    })
    expect(deleted.status).toBe(200)
    await ask(history(bare(first.output)), headersFor('alice'))
    for (const at of [1, 2, 3]) {
      expect(sent(at), String(at)).toContain('Hi again')
      expect(sent(at), String(at)).not.toMatch(/SIG|"rs"|"Hm"/u)
    }
  })
})

describe('tokens of reasoning', () => {
  async function thinking() {
    const model = createTold(() => [reasoning('Hm'), text('Hello'), finish()])
    const server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    onTestFinished(() => server.close())
    return new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
  }

  test('only a request that includes them gets them', async () => {
    const client = await thinking()
    const { id, output } = await client.responses.create({ model: 'a', input: 'Hi' })
    expect(tokenIn(output)).toEqual([undefined])
    // Who reads it later may ask for them.
    const read = await client.responses.retrieve(id, { include })
    expect(tokenIn(read.output)).toEqual([expect.stringMatching(/\.0$/u)])
  })

  test('streams, JSON and later readers have the same', async () => {
    const client = await thinking()
    const tokens = new Set<unknown>()
    const stream = client.responses.stream({ model: 'a', input: 'Hi', include })
    for await (const event of stream) {
      if (event.type === 'response.output_item.added' || event.type === 'response.output_item.done')
        for (const token of tokenIn([event.item])) tokens.add(token)
    }
    const { id, output } = await stream.finalResponse()
    for (const token of tokenIn(output)) tokens.add(token)
    for (const token of tokenIn((await client.responses.retrieve(id)).output)) tokens.add(token)
    expect([...tokens]).toEqual([expect.stringMatching(/^[\w.-]{20,200}$/u)])
  })
})
