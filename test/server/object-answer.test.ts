/** An answer that has to be JSON, as the `openai` package, `useChat` and a reader of plain text get it. */
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readFileSync } from 'node:fs'
import type { Message } from '../../src/part/message.ts'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { toUiMessages } from '../../src/wire/ui/ui-message.ts'
import { createChat, lines } from '../support/chat.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { eventually } from '../support/going-on.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const messages = [{ role: 'user' as const, content: 'What is 12*7?' }]
const shape = z.object({ city: z.string() })
const response_format = zodResponseFormat(shape, 'place')
const tools: EngineOptions['tools'] = { look: { parameters: {}, execute: () => 'seen' } }
const bad = '{"city": 4, "and": "something that is long"}'
const good = '{"city": "Paris"}'
const clientTool = {
  type: 'function' as const,
  function: {
    name: 'pick',
    strict: true,
    parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
  },
}

async function serve(calls: ScriptStep[][], config = '') {
  const model = createScriptedModel(calls)
  server = await startServer({ agents: { a: agent(config) }, scripts: { m: model }, tools })
  return { model, client: new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 }) }
}

const aside = () => [text('Let me ', 'use it.'), toolCall('c', 'look'), finish('tool-calls')]
const says = (...words: string[]) => [text(...words), finish()]
const scenes: [string, () => ScriptStep[][]][] = [
  ['words before a tool call', () => [aside(), says(...good)]],
  ['a try that does not fit', () => [says(...bad), says(...good)]],
  ['words around it', () => [says('Here you are:\n```json\n', good, '\n```')]],
  ['all of that', () => [aside(), says('I would say Paris.'), says(`Of course: ${good}`)]],
]

describe('object answers over HTTP', () => {
  test.each(scenes)('openai: chat.completions.parse with %s', async (_, calls) => {
    const { client } = await serve(calls(), 'tools: [look]')
    const { choices, usage } = await client.chat.completions.parse({ model: 'a', messages, response_format })
    expect(choices[0]!.message).toMatchObject({ content: good, parsed: { city: 'Paris' } })
    expect(choices[0]!.finish_reason).toBe('stop')
    expect(usage!.completion_tokens).toBe(5 * calls().length)
  })

  test.each(scenes)('openai: the stream helper with %s', async (_, calls) => {
    const { client } = await serve(calls(), 'tools: [look]')
    const stream = client.chat.completions.stream({ model: 'a', messages, response_format })
    const shown: unknown[] = []
    stream.on('content.delta', ({ parsed }) => shown.push(parsed))
    const { choices } = await stream.finalChatCompletion()
    expect(choices[0]!.message).toMatchObject({ content: good, parsed: { city: 'Paris' } })
    expect(shown).toEqual([{ city: 'Paris' }])
  })

  test('openai: the shipped assistant, with its tools', async () => {
    server = await startServer({ agents: { assistant: readFileSync('agents/assistant.yaml', 'utf8') } })
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const format = zodResponseFormat(z.object({ answer: z.number() }), 'result')
    const { choices } = await client.chat.completions.parse({ model: 'assistant', messages, response_format: format })
    expect(choices[0]!.message.parsed).toEqual({ answer: expect.any(Number) })
    const stream = client.chat.completions.stream({ model: 'assistant', messages, response_format: format })
    expect((await stream.finalChatCompletion()).choices[0]!.message.parsed).toEqual({ answer: expect.any(Number) })
  })

  test('openai: a call that is the client’s to run has no words beside it that are no JSON', async () => {
    const calls = () => [[text('Let me ask you.'), toolCall('c', 'pick'), finish('tool-calls')]]
    const { client } = await serve([...calls(), ...calls()])
    const body = { model: 'a', messages, response_format, tools: [clientTool] }
    const { choices } = await client.chat.completions.parse(body)
    expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null, parsed: null } })
    const streamed = await client.chat.completions.stream(body).finalChatCompletion()
    expect(streamed.choices[0]!.message.tool_calls).toMatchObject([{ function: { name: 'pick' } }])
  })

  test('openai: no try fits: an error, and not a word of any', async () => {
    const { client } = await serve([says(bad), says(bad), says(bad), says(bad)])
    const asked = client.chat.completions.parse({ model: 'a', messages, response_format })
    await expect(asked).rejects.toMatchObject({ status: 502, code: 'bad-output' })
    const stream = client.chat.completions.stream({ model: 'a', messages, response_format })
    let words = ''
    stream.on('content', (piece) => (words += piece))
    await expect(stream.finalChatCompletion()).rejects.toThrow('is not the requested JSON')
    expect(words).toBe('')
  })

  test('openai: JSON that is cut off ends as the protocol has it', async () => {
    const { client } = await serve([[text('{"city": "Pa'), finish('length')]])
    const { choices } = await client.chat.completions.create({ model: 'a', messages, response_format })
    expect(choices[0]).toMatchObject({ finish_reason: 'length', message: { content: '{"city": "Pa' } })
  })

  test('openai: a schema with patterns that never end holds nothing up', async () => {
    const letters = 'a'.repeat(5000)
    const { client } = await serve([
      says(JSON.stringify({ city: `${letters}!` })),
      says(JSON.stringify({ city: letters })),
    ])
    const defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [
        `d${i}`,
        { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
      ]),
    )
    const schema = {
      type: 'object',
      properties: {
        city: { type: 'string', pattern: '^(a+)+$', allOf: [{ $ref: '#/$defs/d0' }, { $ref: '#/$defs/self' }] },
      },
      $defs: { ...defs, d40: { type: 'string' }, self: { $ref: '#/$defs/self' } },
    }
    const format = { type: 'json_schema' as const, json_schema: { name: 'x', schema } }
    const { choices } = await client.chat.completions.create({ model: 'a', messages, response_format: format })
    expect(JSON.parse(choices[0]!.message.content!)).toEqual({ city: letters })
  })

  test.each(scenes)('plain text: %s', async (_, calls) => {
    await serve(calls(), 'tools: [look]\noutput: { schema: { city: string } }')
    const response = await server.post('/api/beddel/chat', { agentId: 'a', messages })
    expect(await response.text()).toBe(good)
  })

  test('plain text: without tools and retries it is shown while it is written', async () => {
    const gate = latch()
    await serve(
      [[text('{"city": ', gate as never), finish()]].map(() => [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: '{"city": ' },
        gate,
        { type: 'text-delta', id: 't', delta: '"Paris"}' },
        { type: 'text-end', id: 't' },
        finish(),
      ]),
      'output: { schema: { city: string }, retries: 0 }',
    )
    const body = readBody(await server.post('/api/beddel/chat', { agentId: 'a', messages }))
    await body.until('{"city": ')
    gate.open()
    expect(await body.until('Paris"}')).toBe(good)
  })

  test.each(scenes)('useChat: %s: one text, and one data-output that ends as the object', async (_, calls) => {
    await serve(calls(), 'tools: [look]\noutput: { schema: { city: string } }')
    const { chat, errors, runs } = createChat(server.url)
    await chat.sendMessage({ text: 'Where?' })
    expect(errors).toEqual([])
    const { parts } = chat.messages[1]!
    expect(parts.filter(({ type }) => type === 'text')).toMatchObject([{ text: good, state: 'done' }])
    expect(parts.filter(({ type }) => type === 'data-output')).toMatchObject([{ data: { city: 'Paris' } }])
    // The same after a reload.
    const reloaded = (await (await fetch(`${server.url}/api/runs/${runs[0]!}`)).json()) as { text: string }
    expect(reloaded.text).toBe(good)
    const thread = await fetch(`${server.url}/api/threads/${chat.id}`)
    const { messages: kept } = (await thread.json()) as { messages: Message[] }
    expect(lines(toUiMessages(kept) as typeof chat.messages)).toEqual(lines(chat.messages))
  })

  test('useChat: what was shown of an object that does not fit is gone before the next try shows any', async () => {
    const gate = latch()
    await serve(
      [says('{"town": "Paris", ', '"country": "France"}'), [gate, ...says('nothing')]],
      'output: { schema: { city: string } }',
    )
    const { chat, errors, runs } = createChat(server.url)
    const sent = chat.sendMessage({ text: 'Where?' })
    await gate.reached
    await eventually(() => runs.length > 0)
    await until(server.store, runs[0]!, (entry) => entry.type === 'data' && JSON.stringify(entry.data) === '{}')
    gate.open()
    await sent
    expect(errors).toHaveLength(1)
    expect(chat.messages[1]!.parts.filter(({ type }) => type === 'data-output')).toMatchObject([{ data: {} }])
    expect(chat.messages[1]!.parts.filter(({ type }) => type === 'text')).toEqual([])
  })
})
