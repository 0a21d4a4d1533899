import fc from 'fast-check'
import { MessageSchema } from '@ag-ui/core/schemas'
import { describe, expect, test } from 'vitest'
import type { AssistantContent, Message, ToolResultContent } from '../../part/message.ts'
import { fromAgUiMessages } from './from-ag-ui-messages.ts'
import { readResume, toolResults } from './ag-ui-answers.ts'
import { toAgUiMessages } from './to-ag-ui-messages.ts'

const user = { id: 'u1', role: 'user', content: 'Hi' }
const call = (id: string, name = 'f', args = '{"a":1}') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

test('all roles', () => {
  const signature = { anthropic: { signature: 'c2ln' } }
  expect(
    fromAgUiMessages([
      { id: 'd', role: 'developer', content: 'Be brief.' },
      { id: 's', role: 'system', content: 'You are kind.' },
      user,
      { id: 'p', role: 'activity', activityType: 'plan', content: { steps: [] } },
      { id: 'run_1:1', role: 'reasoning', content: 'Hm.', encryptedValue: JSON.stringify(signature) },
      { id: 'run_1:2', role: 'assistant', content: 'Let me see.', toolCalls: [call('c1'), call('c2')] },
      { id: 'run_1:3', role: 'tool', toolCallId: 'c2', content: 'two' },
      { id: 'x', role: 'tool', toolCallId: 'c1', content: '{"sum":2}' },
      { id: 'run_1:4', role: 'assistant', content: 'It is 2.' },
    ]),
  ).toEqual([
    { role: 'system', id: 'd', content: 'Be brief.' },
    { role: 'system', id: 's', content: 'You are kind.' },
    { role: 'user', id: 'u1', content: 'Hi' },
    {
      role: 'assistant',
      id: 'run_1',
      content: [
        { type: 'reasoning', text: 'Hm.', providerOptions: signature },
        { type: 'text', text: 'Let me see.' },
        { type: 'tool-call', toolCallId: 'c1', toolName: 'f', input: { a: 1 } },
        { type: 'tool-call', toolCallId: 'c2', toolName: 'f', input: { a: 1 } },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'c1', toolName: 'f', output: { type: 'json', value: { sum: 2 } } },
        { type: 'tool-result', toolCallId: 'c2', toolName: 'f', output: { type: 'text', value: 'two' } },
      ],
    },
    { role: 'assistant', id: 'run_1', content: [{ type: 'text', text: 'It is 2.' }] },
  ])
})

describe('calls and results', () => {
  const outputs = (messages: unknown) =>
    fromAgUiMessages(messages).flatMap(({ role, content }) =>
      role === 'tool' ? content.map(({ output }) => output) : [],
    )
  const asked = [user, { id: 'a', role: 'assistant', content: null, toolCalls: [call('c1')] }]

  test('a call without a result gets an error, right behind it', () => {
    expect(fromAgUiMessages([...asked, { ...user, id: 'u2' }]).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'user',
    ])
    expect(outputs(asked)).toEqual([{ type: 'error-text', value: expect.stringContaining('unavailable') }])
  })

  test('a result stands behind its call, wherever the client keeps it; one without a call is dropped', () => {
    const late = { id: 't', role: 'tool', toolCallId: 'c1', content: 'done' }
    expect(outputs([...asked, { ...user, id: 'u2' }, late])).toEqual([{ type: 'text', value: 'done' }])
    expect(fromAgUiMessages([user, late])).toHaveLength(1)
  })

  test('calls of a script, and their results, are no part of the conversation', () => {
    const made = (id: string) => ({ id, type: 'function', function: { name: 'pick', arguments: '{}' } })
    const messages = fromAgUiMessages([
      { id: '1', role: 'assistant', toolCalls: [made('c1'), made('c1.1~1.run_1')] },
      { id: '2', role: 'tool', toolCallId: 'c1.1~1.run_1', content: 'inner' },
      { id: '3', role: 'tool', toolCallId: 'c1', content: 'outer' },
    ])
    expect(JSON.stringify(messages)).toContain('outer')
    expect(JSON.stringify(messages)).not.toMatch(/inner|c1\.1/u)
  })

  test('an id that a provider uses again belongs to the newest call', () => {
    const done = (content: string) => ({ id: content, role: 'tool', toolCallId: 'c1', content })
    const again = { ...asked[1], id: 'b' }
    expect(outputs([...asked, done('one'), again, done('two'), again])).toMatchObject([
      { value: 'one' },
      { value: 'two' },
      { type: 'error-text' },
    ])
  })

  test.each([
    ['a text', { content: 'plain' }, { type: 'text', value: 'plain' }],
    ['JSON', { content: '[1]' }, { type: 'json', value: [1] }],
    ['a text as JSON', { content: '"ok"' }, { type: 'text', value: 'ok' }],
    [
      'text parts',
      {
        content: [
          { type: 'text', text: '{"a"' },
          { type: 'text', text: ':1}' },
        ],
      },
      { type: 'json', value: { a: 1 } },
    ],
    ['an error', { content: '', error: 'no GPS' }, { type: 'error-text', value: 'no GPS' }],
    ['an error beside a content', { content: '{}', error: 'no GPS' }, { type: 'error-text', value: 'no GPS' }],
    ['an error without a word', { content: 'gone', error: '' }, { type: 'error-text', value: 'gone' }],
  ])('the content of a result: %s', (_, message, output) => {
    expect(outputs([...asked, { id: 't', role: 'tool', toolCallId: 'c1', ...message }])).toEqual([output])
  })

  test('media in a result is kept as JSON', () => {
    const content = [{ type: 'image', source: { type: 'url', value: 'https://x.test/a.png' } }]
    expect(outputs([...asked, { id: 't', role: 'tool', toolCallId: 'c1', content }])).toEqual([
      { type: 'json', value: content },
    ])
  })
})

describe('parts', () => {
  const contentOf = (...content: unknown[]) => fromAgUiMessages([{ id: 'u', role: 'user', content }])[0]!.content
  const data = { type: 'data', value: 'aGk=', mimeType: 'image/png' }

  test('text, media inline and by URL, with their names', () => {
    expect(
      contentOf(
        { type: 'text', text: 'Look' },
        { type: 'image', source: data, metadata: { filename: 'a.png' } },
        { type: 'audio', source: { type: 'url', value: 'https://x.test/a' } },
        { type: 'video', source: { type: 'url', value: 'https://x.test/v', mimeType: 'video/mp4' } },
        { type: 'document', source: { type: 'url', value: 'data:text/plain;base64,aGk=' } },
        { type: 'document', source: { type: 'file', value: 'https://files.test/v1/f1', mimeType: 'application/pdf' } },
      ),
    ).toEqual([
      { type: 'text', text: 'Look' },
      { type: 'file', mediaType: 'image/png', data: 'aGk=', filename: 'a.png' },
      { type: 'file', mediaType: 'audio/*', data: 'https://x.test/a' },
      { type: 'file', mediaType: 'video/mp4', data: 'https://x.test/v' },
      { type: 'file', mediaType: 'application/octet-stream', data: 'data:text/plain;base64,aGk=' },
      { type: 'file', mediaType: 'application/pdf', data: 'https://files.test/v1/f1' },
    ])
  })

  test('binary parts of older clients, once when a newer part says the same', () => {
    const old = { type: 'binary', mimeType: 'image/png', data: 'aGk=' }
    const file = { type: 'file', mediaType: 'image/png', data: 'aGk=' }
    expect(contentOf(old)).toEqual([file])
    expect(contentOf({ ...old, data: undefined, url: 'https://x.test/a.png', filename: 'a.png' })).toEqual([
      { type: 'file', mediaType: 'image/png', data: 'https://x.test/a.png', filename: 'a.png' },
    ])
    expect(contentOf(old, { type: 'image', source: data })).toEqual([file])
    expect(contentOf(old, old)).toEqual([file, file])
  })

  test.each([
    [{ type: 'image' }, '.source is missing.'],
    [{ type: 'image', source: { type: 'blob', value: 'x' } }, '.source.type must be data, url or file.'],
    [{ type: 'image', source: { type: 'data', value: 'aGk=' } }, '.source.mimeType is missing.'],
    [{ type: 'image', source: { ...data, value: 'no base64!' } }, '.source.value is not valid base64.'],
    [
      { type: 'image', source: { ...data, mimeType: 'png' } },
      '.source.mimeType must be a media type such as image/png.',
    ],
    [
      { type: 'image', source: { type: 'url', value: 'blob:x' } },
      '.source.value must be a data: or http(s) URL; a blob: URL',
    ],
    [{ type: 'image', source: { type: 'file', value: 'file-1' } }, '.source names a file that is kept by a provider'],
    [{ type: 'binary', mimeType: 'image/png', id: 'x' }, ' has neither data nor url'],
    [{ type: 'sound' }, '.type must be one of text, image, audio, video, document.'],
    ['text', ' must be an object.'],
  ])('%j is refused by its place', (part, fault) => {
    expect(() => contentOf('x', part)).toThrow('messages[0].content[0] must be an object.')
    expect(() => contentOf({ type: 'text', text: '' }, part)).toThrow(`messages[0].content[1]${fault}`)
  })
})

test.each([
  [undefined, 'messages must be an array.'],
  [[null], 'messages[0] must be an object.'],
  [
    [{ role: 'robot' }],
    'messages[0].role must be one of developer, system, user, assistant, tool, reasoning, activity.',
  ],
  [[user, { id: 'u', role: 'user' }], 'messages[1].content must be a string or an array of parts.'],
  [[{ id: 1, role: 'user', content: '' }], 'messages[0].id must be a string.'],
  [[{ id: 'a', role: 'assistant', content: [] }], 'messages[0].content must be a string.'],
  [[{ id: 'a', role: 'assistant', toolCalls: {} }], 'messages[0].toolCalls must be an array.'],
  [[{ id: 'a', role: 'assistant', toolCalls: [{ id: '' }] }], 'messages[0].toolCalls[0].function must be an object.'],
  [
    [{ id: 'a', role: 'assistant', toolCalls: [call('')] }],
    'messages[0].toolCalls[0].id must have 1 to 256 characters.',
  ],
  [[{ id: 'a', role: 'assistant', toolCalls: [call('c'), call('c')] }], 'messages[0].toolCalls[1].id is also the id'],
  [[{ id: 't', role: 'tool', content: '' }], 'messages[0].toolCallId must be a string.'],
  [[{ id: 't', role: 'tool', toolCallId: 'c', content: 7 }], 'messages[0].content must be an array.'],
  [Array.from({ length: 10_001 }, () => user), 'messages has 10001 entries; at most 10000 are allowed.'],
])('a fault names its place: %#', (messages, fault) => {
  expect(() => fromAgUiMessages(messages)).toThrow(fault)
})

describe('answers', () => {
  test('results behind the last user message; the last one of an id counts', () => {
    const result = (toolCallId: string, content: string) => ({ id: content, role: 'tool', toolCallId, content })
    const old = [user, { id: 'a', role: 'assistant', toolCalls: [call('c0')] }, result('c0', 'old')]
    const now = [user, { id: 'b', role: 'assistant', toolCalls: [call('c1')] }, result('c1', '1'), result('c1', 'x')]
    expect(toolResults([...old, ...now, { id: 'p', role: 'activity', activityType: 'x', content: {} }])).toEqual([
      { toolCallId: 'c1', answer: { kind: 'tool', output: 'x' } },
    ])
    expect(toolResults([...now, user])).toEqual([])
    expect(toolResults([{ ...result('c', ''), error: 'no' }])).toEqual([
      { toolCallId: 'c', answer: { kind: 'tool', output: 'no', isError: true } },
    ])
  })

  test('resume[] is read by the kind of each request', () => {
    const of = (kind: 'tool' | 'approval' | 'input', entry: object) =>
      readResume([{ interruptId: 'r', status: 'resolved', ...entry }])[0]!.answer(kind)
    expect(of('approval', { payload: { approved: true } })).toEqual({ kind: 'approval', approved: true })
    expect(of('approval', { payload: false })).toEqual({ kind: 'approval', approved: false })
    expect(of('approval', { payload: { approved: false, reason: 'too much' } })).toEqual({
      kind: 'approval',
      approved: false,
      reason: 'too much',
    })
    expect(of('approval', { status: 'cancelled' })).toMatchObject({ kind: 'approval', approved: false })
    expect(of('input', { payload: { city: 'Rome' } })).toEqual({ kind: 'input', value: { city: 'Rome' } })
    expect(of('input', {})).toEqual({ kind: 'input', value: null })
    expect(of('input', { status: 'cancelled', payload: 1 })).toEqual({ kind: 'input', cancelled: true })
    expect(of('tool', { payload: 7 })).toEqual({ kind: 'tool', output: 7 })
    expect(of('tool', { status: 'cancelled' })).toMatchObject({ kind: 'tool', isError: true })
    expect(() => of('approval', {})).toThrow('resume[0].payload must be an object.')
    expect(() => of('approval', { payload: { approved: 'yes' } })).toThrow(
      'resume[0].payload.approved must be true or false.',
    )
    const edited = { approved: true, editedArgs: { sum: 3 } }
    expect(of('approval', { payload: edited })).toEqual({ kind: 'approval', approved: true, input: { sum: 3 } })
    expect(() => of('approval', { payload: { approved: true, editedArgs: 3 } })).toThrow(
      'resume[0].payload.editedArgs must be an object',
    )
  })

  test.each([
    [{}, 'resume must be an array.'],
    [[{ status: 'resolved' }], 'resume[0].interruptId must be a string.'],
    [[{ interruptId: 'r', status: 'done' }], 'resume[0].status must be resolved or cancelled.'],
    [
      ['r', 'r'].map((interruptId) => ({ interruptId, status: 'cancelled' })),
      'resume[1].interruptId is that of another entry',
    ],
  ])('a fault in resume[] names its place: %#', (resume, fault) => {
    expect(() => readResume(resume)).toThrow(fault)
  })
})

const name = fc.stringMatching(/^[a-z]{1,8}$/u)
const words = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
const options = fc.option(fc.record({ test: fc.record({ signature: words }) }), { nil: undefined })
const file = fc.record({
  type: fc.constant('file' as const),
  mediaType: fc.constantFrom('image/png', 'audio/wav', 'video/mp4', 'application/pdf', 'text/plain'),
  data: fc.constantFrom('aGk=', 'https://x.test/f', 'data:text/plain;base64,aGk='),
})
const said = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text: words }),
  fc.record({ type: fc.constant('reasoning' as const), text: words, providerOptions: options }),
)
const output = fc.oneof(
  fc.record({ type: fc.constant('text' as const), value: words }),
  fc.record({ type: fc.constant('json' as const), value: fc.jsonValue() }),
  fc.record({ type: fc.constant('error-text' as const), value: words }),
)
const made = fc.record({ toolName: name, input: fc.dictionary(name, fc.jsonValue()), providerOptions: options, output })
const reply = fc.record({
  before: fc.array(said, { minLength: 1, maxLength: 3 }),
  calls: fc.array(made, { maxLength: 3 }),
  after: fc.array(said, { maxLength: 2 }),
})
const exchange = fc.record({
  asked: fc.oneof(
    words,
    fc.array(fc.oneof(fc.record({ type: fc.constant('text' as const), text: words }), file), {
      minLength: 1,
      maxLength: 3,
    }),
  ),
  replies: fc.array(reply, { maxLength: 3 }),
})
const conversation = fc
  .record({ system: fc.option(words), turns: fc.array(exchange, { maxLength: 4 }) })
  .map(({ system, turns }) => {
    const messages: Message[] = system === null ? [] : [{ role: 'system', id: 's', content: system }]
    for (const [t, { asked, replies }] of turns.entries()) {
      messages.push({ role: 'user', id: `u${t}`, content: asked })
      for (const [r, { before, calls, after }] of replies.entries()) {
        const made = calls.map(({ toolName, input, providerOptions }, c): AssistantContent => {
          return {
            type: 'tool-call',
            toolCallId: `${t}.${r}.${c}`,
            toolName,
            input,
            ...(providerOptions && { providerOptions }),
          }
        })
        messages.push({
          role: 'assistant',
          ...(r === 0 && { id: `run_${t}` }),
          content: [...before, ...made, ...after],
        })
        const content = calls.map(({ toolName, output }, c): ToolResultContent => {
          return { type: 'tool-result', toolCallId: `${t}.${r}.${c}`, toolName, output }
        })
        if (content.length > 0) messages.push({ role: 'tool', content })
      }
    }
    return messages
  })

/** What a model is told, whatever the messages in which it stands. */
function told(messages: readonly Message[]) {
  const parts = messages.flatMap(({ role, content }) =>
    (typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content).map((part) => ({
      role,
      ...part,
    })),
  )
  const of = (...types: string[]) => parts.filter(({ type }) => types.includes(type))
  const results = of('tool-result').map((part) => {
    const { toolCallId, toolName, output } = part as unknown as ToolResultContent
    // A provider is sent a text in both cases. A text that is JSON comes back as JSON, so without its white space.
    const value = 'value' in output ? output.value : ''
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return { toolCallId, toolName, isError: output.type.startsWith('error'), text: compactJson(text) }
  })
  return JSON.parse(
    JSON.stringify({ said: of('text', 'file'), reasoning: of('reasoning'), calls: of('tool-call'), results }),
  ) as unknown
}

function compactJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return text
  }
}

test('from(to(messages)) is equal for a model, and AG-UI accepts the messages in between', () => {
  fc.assert(
    fc.property(conversation, (messages) => {
      const sent = toAgUiMessages(messages)
      for (const message of sent) expect(MessageSchema.safeParse(message).error).toBeUndefined()
      expect(new Set(sent.map(({ id }) => id)).size).toBe(sent.length)
      const back = fromAgUiMessages(sent)
      expect(told(back)).toEqual(told(messages))
      // Each assistant's message names its run, and each call has its result right behind it.
      const runs = (list: readonly Message[]) =>
        list.flatMap(({ role, id }) => (role === 'assistant' && id !== undefined ? [id] : []))
      expect([...new Set(runs(back))]).toEqual([...new Set(runs(messages))])
      for (const [i, { role, content }] of back.entries()) {
        if (role === 'assistant' && typeof content !== 'string' && content.some(({ type }) => type === 'tool-call'))
          expect(back[i + 1]?.role).toBe('tool')
      }
    }),
    { numRuns: 300 },
  )
})
