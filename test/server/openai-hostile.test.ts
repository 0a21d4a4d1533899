/** Whatever is sent to the OpenAI routes: the right handling, or a 4xx that names the parameter; never a 500, never a hang. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  createScriptedModel,
  finish,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { framesOf, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
const large = JSON.stringify({ text: 'x'.repeat(1_000_000) })
/** Answers `ok`; asked for tools it calls them all. */
const model: Told = createTold((prompt) => {
  const said = JSON.stringify(prompt.at(-1)!.content)
  if (resultsIn(prompt).size > 0 || !said.includes('call:')) return [text('ok'), finish()]
  const names = /call:([\w,]+)/u.exec(said)![1]!.split(',')
  const calls = names.map((name, i): ScriptStep => {
    if (name !== 'large') return toolCall(`call_${i}`, name)
    const pieces = Array.from({ length: 1000 }, (_, n) => large.slice(n * 1001, (n + 1) * 1001))
    return [
      { type: 'tool-input-start', id: 'big', toolName: name },
      ...pieces.filter(Boolean).map((delta): ScriptStep => ({ type: 'tool-input-delta', id: 'big', delta })),
      { type: 'tool-input-end', id: 'big' },
      { type: 'tool-call', toolCallId: 'big', toolName: name, input: large },
    ]
  })
  return [calls, finish('tool-calls')]
})
const seeing = { ...createScriptedModel([[text('seen'), finish()]]), supportedUrls: { 'image/*': [/^https:/u] } }
beforeAll(async () => {
  server = await startServer({
    agents: { a: agent(), seeing: agent().replace('script:m', 'script:seeing') },
    scripts: { m: model, seeing },
  })
})
afterAll(() => server.close())
afterEach(async () => {
  expect(server.reported).toEqual([])
  expect((await ask({})).status).toBe(200)
})

const chat = '/v1/chat/completions'
const user = (content: unknown) => ({ role: 'user', content })
const hi = user('Hi')
const ask = (more: object) =>
  server.post(chat, { model: 'a', messages: [hi], ...more }, { signal: AbortSignal.timeout(10_000) })
const told = () => model.prompts.at(-1)!

const call = (id: unknown, name: unknown = 'x', args: unknown = '{}') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
const calling = (...calls: unknown[]) => ({ role: 'assistant', content: null, tool_calls: calls })
const result = (id: unknown, content: unknown = 'r') => ({ role: 'tool', tool_call_id: id, content })
const image = (url: unknown) => user([{ type: 'image_url', image_url: { url } }])
const offer = (...names: string[]) =>
  names.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } }))

describe('bodies', () => {
  const json = { 'content-type': 'application/json' }
  const whole = JSON.stringify({ model: 'a', prompt: 'Hi', messages: [hi] })
  test.each<[string, string | Uint8Array, Record<string, string>, number, string]>([
    ['broken JSON', '{"model": "a", ', json, 400, 'bad-json'],
    ['nothing', '', json, 400, 'bad-json'],
    ['a list', '[]', json, 400, 'bad-json'],
    ['null', 'null', json, 400, 'bad-json'],
    ['text', whole, { 'content-type': 'text/plain' }, 415, 'unsupported-type'],
    ['a form', 'model=a', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'unsupported-type'],
    ['JSON without a type', new TextEncoder().encode(whole), {}, 415, 'unsupported-type'],
    ['invalid UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d), json, 400, 'bad-json'],
    ['100,000 levels', `{"model":"a","messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, json, 400, 'bad-json'],
    ['5 MB', JSON.stringify({ model: 'a', messages: [user('x'.repeat(5_000_000))] }), json, 413, 'too-large'],
  ])('%s', async (_, body, headers, status, code) => {
    for (const path of [chat, '/v1/completions', `/api${chat}`]) {
      const response = await fetch(server.url + path, { method: 'POST', body: body as BodyInit, headers })
      const error = { message: expect.any(String), type: 'invalid_request_error', code, param: null }
      expect([response.status, await response.json()]).toEqual([status, { error }])
    }
  })
})

test.each<[string, unknown, string]>([
  ['no list', 'Hi', 'messages'],
  ['nothing', undefined, 'messages'],
  ['an empty list', [], 'messages'],
  ['null', [null], 'messages[0]'],
  ['an unknown role', [hi, { role: 'robot', content: 'x' }], 'messages[1].role'],
  ['a role of prototypes', [{ role: '__proto__', content: 'x' }], 'messages[0].role'],
  ['no role', [{ content: 'x' }], 'messages[0].role'],
  ['an old function result', [hi, { role: 'function', name: 'x', content: 'r' }], 'messages[1].role'],
  ['null of a user', [user(null)], 'messages[0].content'],
  ['a number of a user', [user(3)], 'messages[0].content'],
  ['no parts', [user([])], 'messages[0].content'],
  ['a part that is none', [user([null])], 'messages[0].content[0]'],
  ['an unknown part', [user([{ type: 'video', video: 'x' }])], 'messages[0].content[0].type'],
  ['a text part without text', [user([{ type: 'text' }])], 'messages[0].content[0].text'],
  ['null of the system', [{ role: 'system', content: null }, hi], 'messages[0].content'],
  ['an image of the system', [{ role: 'system', content: [{ type: 'image_url' }] }, hi], 'messages[0].content[0].type'],
  ['nothing of the assistant', [hi, { role: 'assistant', content: null }], 'messages[1]'],
  ['only an assistant who says nothing', [{ role: 'assistant', content: '' }], 'messages'],
  ['a result without a call', [hi, result('c')], 'messages[1].tool_call_id'],
  ['a call without a result', [hi, calling(call('c'))], 'messages'],
  ['a call without a result, and then a word', [hi, calling(call('c')), hi], 'messages[2]'],
  ['one of two results', [hi, calling(call('c'), call('d')), result('c'), hi], 'messages[3]'],
  ['two results of one call', [hi, calling(call('c')), result('c'), result('c')], 'messages[3].tool_call_id'],
  ['two calls of one id', [hi, calling(call('c'), call('c')), result('c')], 'messages[1].tool_calls[1].id'],
  ['a call without id', [hi, calling(call(''))], 'messages[1].tool_calls[0].id'],
  ['a numeric id', [hi, calling(call(7)), result(7)], 'messages[1].tool_calls[0].id'],
  ['a call without name', [hi, calling(call('c', '')), result('c')], 'messages[1].tool_calls[0].function.name'],
  ['arguments that are no text', [hi, calling(call('c', 'x', {}))], 'messages[1].tool_calls[0].function.arguments'],
  ['calls that are no list', [hi, { role: 'assistant', tool_calls: {} }], 'messages[1].tool_calls'],
  ['null as a result', [hi, calling(call('c')), result('c', null)], 'messages[2].content'],
  ['10,001 messages', Array.from({ length: 10_001 }, () => hi), 'messages'],
  ['an image that is no URL', [image('cat')], 'messages[0].content[0].image_url.url'],
  ['a file of this machine', [image('file:///etc/passwd')], 'messages[0].content[0].image_url.url'],
  ['an image that is no base64', [image('data:image/png;base64,***')], 'messages[0].content[0].image_url.url'],
  ['half a base64', [image('data:image/png;base64,A')], 'messages[0].content[0].image_url.url'],
  ['bad padding', [image('data:image/png;base64,AA=')], 'messages[0].content[0].image_url.url'],
  ['an empty image', [image('data:image/png;base64,')], 'messages[0].content[0].image_url.url'],
  ['an image that is null', [user([{ type: 'image_url', image_url: null }])], 'messages[0].content[0].image_url'],
  ['a file by its id', [user([{ type: 'file', file: { file_id: 'f' } }])], 'messages[0].content[0].file.file_data'],
  [
    'broken audio',
    [user([{ type: 'input_audio', input_audio: { data: '***', format: 'wav' } }])],
    'messages[0].content[0].input_audio.data',
  ],
  [
    'audio of no format',
    [user([{ type: 'input_audio', input_audio: { data: 'AAAA', format: '../x' } }])],
    'messages[0].content[0].input_audio.format',
  ],
])('messages, %s: 400 with the place', async (_, messages, param) => {
  const asked = model.calls.length
  const response = await ask({ messages })
  const error = { message: expect.stringContaining(param), type: 'invalid_request_error', code: 'bad-input', param }
  expect([response.status, await response.json()]).toEqual([400, { error }])
  expect(model.calls.length).toBe(asked)
})

describe('what is odd, and right', () => {
  test('an empty text, an assistant who said nothing, instructions in the middle, ids used again later', async () => {
    const messages = [
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'Be ' },
          { type: 'text', text: 'brief.' },
        ],
      },
      user(''),
      { role: 'assistant', content: '' },
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      calling(call('c')),
      result('c', [{ type: 'text', text: 'r' }]),
      { role: 'system', content: 'Now.' },
      hi,
    ]
    expect((await ask({ messages })).status).toBe(200)
    expect(told().map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'assistant',
      'tool',
      'system',
      'user',
    ])
    expect(told()[0]!.content).toBe('Be brief.')
  })

  test('10,000 messages', async () => {
    expect((await ask({ messages: Array.from({ length: 10_000 }, (_, i) => user(`m${i}`)) })).status).toBe(200)
    expect(JSON.stringify(told())).toContain('m9999')
  })

  test('1 MB of arguments: written by the model in fragments, and sent back', async () => {
    const body = { messages: [user('call:large')], tools: offer('large'), stream: true }
    const sent = framesOf(await (await ask(body)).text())
    const calls = sent.flatMap((frame) => {
      if (frame === 'done') return []
      const [choice] = frame['choices'] as { delta: { tool_calls?: { function: { arguments: string } }[] } }[]
      return choice!.delta.tool_calls ?? []
    })
    expect(calls.length).toBeGreaterThan(900)
    expect(calls.map((each) => each.function.arguments).join('') === large).toBe(true)
    const messages = [hi, calling(call('big', 'large', large)), result('big')]
    expect((await ask({ messages, tools: offer('large') })).status).toBe(200)
    expect(told()[1]).toMatchObject({ content: [{ toolCallId: 'big', input: JSON.parse(large) as object }] })
  })

  test('tools that are called like members of a prototype', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
    const response = await ask({
      messages: [user(`call:${names.join(',')}`)],
      tools: offer(...names),
      tool_choice: { type: 'function', function: { name: '__proto__' } },
    })
    const { choices } = (await response.json()) as {
      choices: [{ finish_reason: string; message: ReturnType<typeof calling> }]
    }
    const [{ finish_reason, message }] = choices
    expect(finish_reason).toBe('tool_calls')
    expect(message.tool_calls).toEqual(names.map((name, i) => call(`call_${i}`, name)))
    const entries = await entriesOf(server.store, response.headers.get('x-millrace-run-id')!)
    expect(only(entries, 'tool-result').map(({ outcome }) => outcome)).toEqual(names.map(() => 'handed-over'))
    const odd = [call('__proto__', 'constructor', '{"__proto__":{"x":1}}'), call('toString', '__proto__', '{"a":')]
    const messages = [hi, calling(...odd), result('toString', 'b'), result('__proto__', 'a')]
    expect(
      (await ask({ messages, tools: offer(...names), metadata: JSON.parse('{"__proto__":{"x":1}}') as object })).status,
    ).toBe(200)
    expect([...resultsIn(told()).keys()].toSorted()).toEqual(['__proto__', 'toString'])
    expect(({} as { x?: number }).x).toBe(undefined)
  })

  test('halves of characters, NULs and 200 levels stay what they are', async () => {
    let deep: object = {}
    for (let i = 0; i < 200; i++) deep = { a: deep }
    const messages = [user('a\ud800b\0c'), calling(call('\udc00', 'x', '"\ud800"')), result('\udc00', '\ud800')]
    const tools = [{ type: 'function', function: { name: 'x', description: '\ud800', parameters: deep } }]
    const response = await ask({ messages, tools, user: '\udc00', metadata: { deep } })
    expect(response.status).toBe(200)
    expect(told()[0]!.content).toMatchObject([{ text: 'a\ud800b\0c' }])
    expect([...resultsIn(told())]).toEqual([['\udc00', { type: 'text', value: '\ud800' }]])
    const [start] = only(await entriesOf(server.store, response.headers.get('x-millrace-run-id')!), 'run-start')
    expect(start!.input).toMatchObject({ user: '\udc00', metadata: { deep } })
  })
})

describe('images, files, audio', () => {
  test('reach the model with their type', async () => {
    const messages = [
      user([
        { type: 'text', text: 'Look.' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } },
        { type: 'image_url', image_url: 'data:image/webp;base64,AAAA' },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERg', filename: 'a.pdf' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      ]),
    ]
    expect((await ask({ messages })).status).toBe(200)
    expect(told()[0]!.content).toMatchObject([
      { type: 'text', text: 'Look.' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'iVBORw0KGgo=' } },
      { type: 'file', mediaType: 'image/webp' },
      { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf' },
      { type: 'file', mediaType: 'audio/mpeg' },
    ])
  })

  test('by its address an image goes to a model that can fetch it; for another it is the client’s mistake', async () => {
    const messages = [image('https://pictures.example/cat.png')]
    expect((await ask({ model: 'seeing', messages })).status).toBe(200)
    expect(JSON.stringify(seeing.calls[0]!.options.prompt)).toContain('https://pictures.example/cat.png')
    const response = await ask({ messages })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { code: 'bad-input', type: 'invalid_request_error', message: expect.stringContaining('data: URL') } },
    ])
  })
})
