/** What the real provider packages send for the step that answers behind a router: conversations in the form they take. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startRecordedProvider, type Protocol } from '../../src/models/testing/recorded-provider.ts'
import { createEngine, entriesOf, only, type Engine } from '../support/engine.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

const yaml = `
workflow:
  - { id: route, type: router, result: routed, config: { model: "recorded:m", retries: 0, tools: [get] } }
  - { id: answer, type: llm, config: { model: "recorded:m", retries: 0, stream: true, messages: "$routed.messages" } }
return: "$routed"
`
type Json = Record<string, any>

const thinking: [object, ...object[]] = [
  { type: 'thinking', thinking: '' },
  { type: 'thinking_delta', thinking: 'Hmm' },
  { type: 'signature_delta', signature: 'c2ln' },
]

/** Three answers as each provider streams them: a call; a call and `respond` at once; words. */
const streams: Record<Protocol, Json[][]> = {
  anthropic: [
    anthropic('tool_use', thinking, use('a1', 'get', 1)),
    anthropic('tool_use', use('a2', 'get', 2), use('a3', 'respond')),
    anthropic('end_turn', [
      { type: 'text', text: '' },
      { type: 'text_delta', text: 'Both.' },
    ]),
  ],
  'openai-chat': [
    chat('tool_calls', { tool_calls: [called(0, 'a1', 'get', 1)] }),
    chat('tool_calls', { tool_calls: [called(0, 'a2', 'get', 2), called(1, 'a3', 'respond')] }),
    chat('stop', { content: 'Both.' }),
  ],
  'openai-responses': [
    responses(item('fc_1', 'a1', 'get', 1)),
    responses(item('fc_2', 'a2', 'get', 2), item('fc_3', 'a3', 'respond')),
    responses({ type: 'message', id: 'msg_1' }),
  ],
  google: [
    google({ functionCall: { id: 'a1', name: 'get', args: { n: 1 } }, thoughtSignature: 'c2ln' }),
    google(
      { functionCall: { id: 'a2', name: 'get', args: { n: 2 } }, thoughtSignature: 'c2lu' },
      { functionCall: { id: 'a3', name: 'respond', args: {} } },
    ),
    google({ text: 'Both.' }),
  ],
}

describe.each(Object.keys(streams) as Protocol[])('%s', (protocol) => {
  test('the step that answers is told the calls and their outcomes in a form that is taken, and nothing of `respond`', async () => {
    const replies = streams[protocol].map((chunks) => ({
      protocol,
      lines: chunks.map((chunk) => JSON.stringify(chunk)),
    }))
    const provider = await startRecordedProvider(replies)
    const engine: Engine = createEngine({
      agents: { a: yaml },
      models: { endpoints: [{ name: 'recorded', baseURL: provider.baseURL, protocol }] },
      tools: {
        get: { parameters: z.object({ n: z.number() }), execute: ({ n }: { n: number }) => ({ twice: 2 * n }) },
      },
    })
    open.push(engine, provider)
    const run = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Both.', output: { finishReason: 'respond' } })
    expect(only(await entriesOf(engine.store, run.id), 'warning')).toEqual([])
    expect(provider.requests).toHaveLength(3)
    const bodies = provider.requests.map(({ body }) => body as Json)
    expect(JSON.stringify(bodies[0])).toContain('respond')
    expect(JSON.stringify(bodies[2])).not.toMatch(/respond|a3|fc_3/u)
    checks[protocol](bodies[2]!)
  })
})

const checks: Record<Protocol, (body: Json) => void> = {
  anthropic({ messages, tools, tool_choice: choice }) {
    expect(messages).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hmm', signature: 'c2ln' },
          { type: 'tool_use', id: 'a1', name: 'get', input: { n: 1 } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a1', content: '{"twice":2}' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a2', name: 'get', input: { n: 2 } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a2', content: '{"twice":4}' }] },
    ])
    // Without `tools` a conversation with `tool_use` blocks is refused.
    expect(tools).toMatchObject([{ name: 'get', input_schema: { type: 'object' } }])
    expect(choice).toEqual({ type: 'none' })
  },
  'openai-chat'({ messages, tools }) {
    expect(messages).toMatchObject([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', tool_calls: [{ id: 'a1', function: { name: 'get', arguments: '{"n":1}' } }] },
      { role: 'tool', tool_call_id: 'a1', content: '{"twice":2}' },
      { role: 'assistant', tool_calls: [{ id: 'a2', function: { name: 'get', arguments: '{"n":2}' } }] },
      { role: 'tool', tool_call_id: 'a2', content: '{"twice":4}' },
    ])
    expect(tools).toBeUndefined()
  },
  'openai-responses'({ input, tools }) {
    expect(input).toMatchObject([
      { role: 'user' },
      { type: 'function_call', call_id: 'a1', name: 'get', arguments: '{"n":1}' },
      { type: 'function_call_output', call_id: 'a1', output: '{"twice":2}' },
      { type: 'function_call', call_id: 'a2', name: 'get', arguments: '{"n":2}' },
      { type: 'function_call_output', call_id: 'a2', output: '{"twice":4}' },
    ])
    expect(tools).toBeUndefined()
  },
  google({ contents, tools }) {
    const call = (id: string, n: number, thoughtSignature: string) => ({
      role: 'model',
      parts: [{ functionCall: { id, name: 'get', args: { n } }, thoughtSignature }],
    })
    const response = (id: string, twice: number) => ({
      role: 'user',
      parts: [{ functionResponse: { id, name: 'get', response: { content: { twice } } } }],
    })
    expect(contents).toMatchObject([
      { role: 'user', parts: [{ text: 'Hi' }] },
      call('a1', 1, 'c2ln'),
      response('a1', 2),
      call('a2', 2, 'c2lu'),
      response('a2', 4),
    ])
    expect(tools).toBeUndefined()
  },
}

function anthropic(reason: string, ...blocks: [start: object, ...deltas: object[]][]): Json[] {
  const usage = { input_tokens: 7, output_tokens: 1 }
  const message = { id: 'msg', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage }
  return [
    { type: 'message_start', message },
    ...blocks.flatMap(([start, ...deltas], index) => [
      { type: 'content_block_start', index, content_block: start },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ]
}
function use(id: string, name: string, n?: number): [object, object] {
  return [
    { type: 'tool_use', id, name, input: {} },
    { type: 'input_json_delta', partial_json: JSON.stringify({ n }) },
  ]
}

function chat(reason: string, delta: object): Json[] {
  const chunk = (choice: object) => ({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, ...choice }] })
  return [chunk({ delta: { role: 'assistant', ...delta } }), chunk({ delta: {}, finish_reason: reason })]
}
function called(index: number, id: string, name: string, n?: number): Json {
  return { index, id, type: 'function', function: { name, arguments: JSON.stringify({ n }) } }
}

function responses(...items: Json[]): Json[] {
  return [
    { type: 'response.created', response: { id: 'resp', created_at: 1, model: 'm' } },
    ...items.flatMap((each, index) => [
      { type: 'response.output_item.added', output_index: index, item: { ...each, arguments: '' } },
      ...(each['type'] === 'message' ? [{ type: 'response.output_text.delta', item_id: 'msg_1', delta: 'Both.' }] : []),
      { type: 'response.output_item.done', output_index: index, item: each },
    ]),
    { type: 'response.completed', response: { usage: { input_tokens: 4, output_tokens: 3 } } },
  ]
}
function item(id: string, callId: string, name: string, n?: number): Json {
  return { type: 'function_call', id, call_id: callId, name, arguments: JSON.stringify({ n }), status: 'completed' }
}

function google(...parts: Json[]): Json[] {
  return [
    {
      candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 6, candidatesTokenCount: 8, totalTokenCount: 14 },
    },
  ]
}
