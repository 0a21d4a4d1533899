/** What model servers send, as reports of their users have it, through real HTTP: what comes of each. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { MillraceError } from '../part/error.ts'
import type { ModelPart } from '../part/model-part.ts'
import { streamModel } from './model.ts'
import { loadModel, type EndpointProtocol } from './providers.ts'

type Frame = string | object
interface Expected {
  text?: string
  thought?: string
  /** Name and arguments of each. */
  calls?: [string, string][]
  finish?: string
  /** Words of the error. */
  error?: string
  /** Tokens of the input and of the output. */
  tokens?: [number, number]
}
type Row = [server: string, frames: Frame[], expected: Expected]

const choice = (delta: object, finish_reason: string | null = null, rest: object = {}) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason, ...rest }],
})
const said = (content: string, reason: string | null = null) => choice({ content }, reason)
const stop = choice({}, 'stop')
const tool = (rest: object) => choice({ tool_calls: [rest] })
const done = '[DONE]'
const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }

const chat: Row[] = [
  [
    'llama.cpp of 2025 has a field of its own for errors',
    ['error: {"code":400,"message":"the request exceeds the available context size"}\n\n', done],
    { error: 'exceeds the available context size' },
  ],
  [
    'vLLM before 0.10 names no field for an error',
    [said('A'), { object: 'error', message: 'EngineCore died', type: 'InternalServerError', code: 500 }, done],
    { text: 'A', error: 'EngineCore died' },
  ],
  [
    'vLLM sends the last text with the reason, empty calls, and a token for its stop',
    [
      choice({ content: 'A', tool_calls: [] }),
      choice({ content: 'B', tool_calls: [] }, 'stop', { stop_reason: 128009 }),
      done,
    ],
    { text: 'AB', finish: 'stop' },
  ],
  [
    'SGLang nests an object in its error',
    [{ error: { object: 'error', message: 'The input is longer than the context', code: 400 } }, done],
    { error: 'longer than the context' },
  ],
  [
    'OpenRouter fails in the middle with a reason and an error',
    [
      ': OPENROUTER PROCESSING\n\n',
      said('A'),
      {
        ...choice({ content: '' }, 'error', { native_finish_reason: 'error' }),
        error: { code: 502, message: 'Provider disconnected' },
      },
      done,
    ],
    { text: 'A', error: 'Provider disconnected' },
  ],
  [
    'OpenRouter fails without any choice',
    [{ id: 'gen', choices: [], error: { code: 502, message: 'Worker limit reached' } }, done],
    { error: 'Worker limit reached' },
  ],
  [
    'Kimi counts in the choice',
    [said('A'), choice({}, 'stop', { usage }), done],
    { text: 'A', finish: 'stop', tokens: [5, 2] },
  ],
  [
    'Groq counts in a field of its own',
    [said('A'), { ...stop, x_groq: { id: 'r', usage } }, done],
    { text: 'A', tokens: [5, 2] },
  ],
  [
    'Groq refuses a call that its model has made',
    [
      said('A'),
      'event: error\ndata: {"error":{"message":"Tool call validation failed","code":"tool_use_failed","failed_generation":"{"}}\n\n',
    ],
    { text: 'A', error: 'Tool call validation failed' },
  ],
  [
    "Gemini's OpenAI form: no index, no id, the reason of a text",
    [
      tool({ id: '', type: 'function', function: { name: 'get', arguments: '{"q":1}' } }),
      tool({ id: '', type: 'function', function: { name: 'get', arguments: '{"q":2}' } }),
      choice({ role: 'assistant', content: '' }, 'stop'),
      done,
    ],
    {
      calls: [
        ['get', '{"q":1}'],
        ['get', '{"q":2}'],
      ],
      finish: 'tool-calls',
    },
  ],
  [
    'Azure filters: chunks without a choice, offsets without a delta',
    [
      { id: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }], created: 0, model: '', object: '' },
      said('A'),
      { id: '', choices: [{ index: 0, finish_reason: null, content_filter_offsets: { check_offset: 1 } }], created: 0 },
      choice({}, 'content_filter'),
      done,
    ],
    { text: 'A', finish: 'content-filter' },
  ],
  [
    'Mistral: arguments as a value, a reason of its own',
    [
      said('A'),
      tool({ id: 'abcdefghi', index: 0, function: { name: 'get', arguments: { q: 1 } } }),
      choice({}, 'model_length'),
      done,
    ],
    { text: 'A', calls: [['get', '{"q":1}']], finish: 'length' },
  ],
  [
    'DeepSeek is short of machines',
    [': keep-alive\n\n', said('A'), choice({}, 'insufficient_system_resource'), done],
    { text: 'A', error: 'insufficient_system_resource' },
  ],
  [
    'GLM thinks, then its network fails',
    [choice({ role: 'assistant', reasoning_content: 'Hm' }), said('A'), choice({}, 'network_error'), done],
    { text: 'A', thought: 'Hm', error: 'network_error' },
  ],
  [
    'Qwen repeats an empty id and an empty name',
    [
      tool({ index: 0, id: 'call_1', type: 'function', function: { name: 'get', arguments: '' } }),
      tool({ index: 0, id: '', type: 'function', function: { name: '', arguments: '{"q"' } }),
      tool({ index: 0, id: null, type: 'function', function: { name: null, arguments: ':1}' } }),
      choice({ content: '', reasoning_content: null }, 'tool_calls'),
      done,
    ],
    { calls: [['get', '{"q":1}']], finish: 'tool-calls' },
  ],
  [
    'Ollama: an empty reason in every chunk, whole calls with one index',
    [
      said('A', ''),
      tool({ index: 0, id: 'call_1', type: 'function', function: { name: 'get', arguments: '{"q":1}' } }),
      tool({ index: 0, id: 'call_2', type: 'function', function: { name: 'get', arguments: '{"q":1}' } }),
      choice({ role: 'assistant', content: '' }, 'tool_calls'),
      done,
    ],
    {
      text: 'A',
      calls: [
        ['get', '{"q":1}'],
        ['get', '{"q":1}'],
      ],
      finish: 'tool-calls',
    },
  ],
  [
    'LM Studio names the event of its error, and says it as a text',
    ['event: error\ndata: {"error":"Model unloaded."}\n\n'],
    { error: 'Model unloaded.' },
  ],
  [
    "Bedrock's gateways use the words of other protocols",
    [
      said('A'),
      { ...choice({}, 'end_turn'), 'amazon-bedrock-invocationMetrics': { inputTokenCount: 5 } },
      { ...stop, choices: [], usage },
      done,
    ],
    { text: 'A', finish: 'stop', tokens: [5, 2] },
  ],
  [
    'a proxy repeats the whole message at the end, with its calls',
    [
      said('A'),
      tool({ index: 0, id: 'call_1', function: { name: 'get', arguments: '{"q":1}' } }),
      {
        choices: [
          {
            index: 0,
            message: {
              role: 'assistant',
              content: 'A',
              tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get', arguments: '{"q":1}' } }],
            },
            finish_reason: 'tool_calls',
          },
        ],
      },
      done,
    ],
    { text: 'A', calls: [['get', '{"q":1}']], finish: 'tool-calls' },
  ],
  [
    'Perplexity sends all of the text so far beside each delta',
    [
      choice({ content: 'A' }, null, { message: { role: 'assistant', content: 'A' } }),
      choice({ content: 'B' }, null, { message: { role: 'assistant', content: 'AB' } }),
      choice({ content: '' }, 'stop', { message: { role: 'assistant', content: 'AB' } }),
    ],
    { text: 'AB', finish: 'stop' },
  ],
  [
    'events end with one line feed',
    [
      `data: ${JSON.stringify(said('A'))}\ndata: ${JSON.stringify(said('B'))}\ndata: ${JSON.stringify(stop)}\ndata: [DONE]\n`,
    ],
    { text: 'AB', finish: 'stop' },
  ],
  [
    'no space behind the colon, CRLF, a mark at the beginning, a comment of a proxy',
    [
      `\ufeffdata:${JSON.stringify(said('A'))}\r\n\r\n`,
      ': ping\r\n\r\n',
      `data:${JSON.stringify(stop)}\r\n\r\n`,
      'data:[DONE]\r\n\r\n',
    ],
    { text: 'A', finish: 'stop' },
  ],
  [
    'a proxy that breaks off in the middle of an event',
    [said('A'), 'data: {"id":"c","choices":[{"index":0,"delta":{"cont'],
    { text: 'A', error: 'without its final event' },
  ],
  [
    'xAI: thoughts, then all counts in each chunk',
    [
      { ...choice({ reasoning_content: 'Hm', content: null }), usage: null },
      { ...said('A'), usage },
      { ...stop, usage },
      done,
    ],
    { text: 'A', thought: 'Hm', finish: 'stop', tokens: [5, 2] },
  ],
  [
    'vMLX says that it writes a call, and sends it whole',
    [
      { ...choice({}), tool_call_generating: true },
      choice(
        { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'get', arguments: '{}' } }] },
        'tool_calls',
      ),
      done,
    ],
    { calls: [['get', '{}']], finish: 'tool-calls' },
  ],
]

const begun = {
  type: 'message_start',
  message: { id: 'm', type: 'message', role: 'assistant', content: [], model: 'm' },
}
const block = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, made: object) => ({ type: 'content_block_delta', index, delta: made })
const text = (index: number, said: string) => delta(index, { type: 'text_delta', text: said })
const end = (stop_reason: string | null, counts: object | undefined = { output_tokens: 2 }) => ({
  type: 'message_delta',
  delta: { stop_reason },
  usage: counts,
})
const over = { type: 'message_stop' }

const anthropic: Row[] = [
  [
    'Ollama begins a thought where a text is still open',
    [
      begun,
      block(0, { type: 'text', text: '' }),
      text(0, 'A'),
      block(0, { type: 'thinking', thinking: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Hm' }),
      { type: 'content_block_stop', index: 0 },
      end('end_turn'),
      over,
    ],
    { text: 'A', thought: 'Hm', finish: 'stop' },
  ],
  [
    'LiteLLM sends the counts in an event of their own',
    [begun, block(0, { type: 'text', text: '' }), text(0, 'A'), end('max_tokens', undefined), end(null), over],
    { text: 'A', finish: 'length', tokens: [0, 2] },
  ],
  [
    'a proxy sends the input at the beginning, and again in deltas',
    [
      begun,
      block(0, { type: 'tool_use', id: 't', name: 'get', input: { q: 1 } }),
      delta(0, { type: 'input_json_delta', partial_json: '{"q":1}' }),
      { type: 'content_block_stop', index: 0 },
      end('tool_use'),
      over,
    ],
    { calls: [['get', '{"q":1}']], finish: 'tool-calls' },
  ],
  [
    'a text without its beginning',
    [begun, text(0, 'A'), text(0, 'B'), end('end_turn'), over],
    { text: 'AB', finish: 'stop' },
  ],
  [
    'a proxy ends with the mark of another protocol',
    [begun, block(0, { type: 'text', text: '' }), text(0, 'A'), end('end_turn'), done],
    { text: 'A', finish: 'stop' },
  ],
  [
    'the words of another protocol',
    [begun, block(0, { type: 'text', text: '' }), text(0, 'A'), end('length'), over],
    { text: 'A', finish: 'length' },
  ],
  [
    'an error in the middle, by name alone',
    [begun, block(0, { type: 'text', text: '' }), text(0, 'A'), 'event: error\ndata: {"message":"Overloaded"}\n\n'],
    { text: 'A', error: 'Overloaded' },
  ],
]

const created = { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } }
const added = (item: object) => ({ type: 'response.output_item.added', output_index: 0, item })
const call = { type: 'function_call', id: 'f', call_id: 'call_1', name: 'get' }
const counts = { input_tokens: 5, output_tokens: 2 }
const completed = (response: object = {}) => ({
  type: 'response.completed',
  response: { status: 'completed', ...response },
})

const responses: Row[] = [
  [
    'a text without its beginning and its end',
    [{ type: 'response.output_text.delta', item_id: 'i', output_index: 0, delta: 'A' }, completed({ usage: counts })],
    { text: 'A', finish: 'stop', tokens: [5, 2] },
  ],
  [
    'arguments without deltas, and a call that never ends',
    [
      created,
      added({ ...call, arguments: '' }),
      { type: 'response.function_call_arguments.done', output_index: 0, item_id: 'f', arguments: '{"q":1}' },
      completed({ output: [{ ...call, arguments: '{"q":1}' }] }),
    ],
    { calls: [['get', '{"q":1}']], finish: 'tool-calls' },
  ],
  [
    'a call that ends with the answer alone',
    [
      created,
      added({ ...call, arguments: '' }),
      { type: 'response.function_call_arguments.delta', output_index: 0, item_id: 'f', delta: '{"q":1}' },
      completed({}),
    ],
    { calls: [['get', '{"q":1}']], finish: 'tool-calls' },
  ],
  [
    'counts in the names of another protocol, and its mark at the end',
    [
      created,
      added({ type: 'message', id: 'i' }),
      { type: 'response.output_text.delta', output_index: 0, item_id: 'i', delta: 'A' },
      completed({ usage }),
      done,
    ],
    { text: 'A', finish: 'stop', tokens: [5, 2] },
  ],
  [
    'an error without a field for it',
    [created, { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down' }],
    { error: 'Slow down' },
  ],
  [
    'a failure that says why in the details',
    [created, { type: 'response.failed', response: { error: null, incomplete_details: { reason: 'upstream_gone' } } }],
    { error: 'upstream_gone' },
  ],
]

const candidate = (parts: object[] | undefined, finishReason?: string, rest: object = {}) => ({
  candidates: [{ content: { role: 'model', ...(parts && { parts }) }, finishReason, index: 0 }],
  ...rest,
})
const google: Row[] = [
  [
    'a reason in every chunk, and an empty text at the end',
    [
      candidate([{ text: 'A' }], 'STOP'),
      candidate([{ functionCall: { name: 'get', args: { q: 1 } }, thoughtSignature: 's' }], 'STOP'),
      candidate([{ text: '' }], 'STOP', { usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2 } }),
    ],
    { text: 'A', calls: [['get', '{"q":1}']], finish: 'tool-calls', tokens: [5, 2] },
  ],
  [
    'a proxy adds the mark of another protocol',
    [candidate([{ text: 'A' }], 'STOP'), done],
    { text: 'A', finish: 'stop' },
  ],
  [
    'an error in the middle',
    [candidate([{ text: 'A' }]), { error: { code: 503, status: 'UNAVAILABLE', message: 'The model is overloaded.' } }],
    { text: 'A', error: 'overloaded' },
  ],
  [
    'a list in place of an event stream',
    [`[${JSON.stringify(candidate([{ text: 'A' }]))}\n,\r\n${JSON.stringify(candidate([{ text: 'B' }], 'STOP'))}\n]`],
    { text: 'AB', finish: 'stop' },
  ],
  [
    'a content without parts',
    [candidate([{ text: 'A' }]), candidate(undefined, 'STOP')],
    { text: 'A', finish: 'stop' },
  ],
  ['the words of another protocol', [candidate([{ text: 'A' }], 'stop')], { text: 'A', finish: 'stop' }],
]

const rows: Record<EndpointProtocol, Row[]> = { 'openai-chat': chat, anthropic, 'openai-responses': responses, google }

const server = createServer((request, response) => {
  const [, protocol, row] = request.url!.split('/') as [string, EndpointProtocol, string]
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const frame of rows[protocol][Number(row)]![1]) {
      if (typeof frame === 'string' && frame !== done) response.write(frame)
      else response.write(`data: ${frame === done ? done : JSON.stringify(frame)}\n\n`)
    }
    response.end()
  })
})
let base: string
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close().closeAllConnections())

async function hear(protocol: EndpointProtocol, row: number): Promise<Expected> {
  const baseURL = `${base}/${protocol}/${row}/v1`
  const model = await loadModel({ provider: 'local', modelId: 'm', protocol, apiKey: 'test', baseURL })
  const parts: ModelPart[] = []
  const call = { messages: [{ role: 'user' as const, content: 'Hi' }], signal: new AbortController().signal }
  const error = await streamModel(model, call, (part) => parts.push(part)).then(
    () => undefined,
    (reason: MillraceError) => reason,
  )
  const deltas = (type: string) =>
    parts.map((part) => (part.type === type && 'delta' in part ? part.delta : '')).join('')
  const finish = parts.findLast((part) => part.type === 'finish')
  const ids = parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
  expect(new Set(ids).size).toBe(ids.length)
  return {
    text: deltas('text-delta'),
    thought: deltas('reasoning-delta'),
    calls: parts.flatMap((part): [string, string][] =>
      part.type === 'tool-call'
        ? [[part.toolName, typeof part.input === 'string' ? part.input : JSON.stringify(part.input)]]
        : [],
    ),
    finish: error === undefined ? finish?.finishReason.unified : undefined,
    error: error?.message,
    tokens: [finish?.usage.inputTokens.total ?? 0, finish?.usage.outputTokens.total ?? 0],
  }
}

describe.each(Object.entries(rows) as [EndpointProtocol, Row[]][])('%s', (protocol, list) => {
  test.each(list.map((row, i) => [row[0], i, row[2]] as const))(
    'is read as it is meant: %s',
    async (_, row, expected) => {
      const { text: said = '', thought = '', calls = [], error, finish, tokens } = expected
      const heard = await hear(protocol, row)
      expect(heard).toMatchObject({
        text: said,
        thought,
        calls,
        error: error === undefined ? undefined : expect.stringContaining(error),
        ...(finish !== undefined && { finish }),
        ...(tokens !== undefined && { tokens }),
      })
    },
  )
})
