import { convertToModelMessages, type UIMessage } from 'ai'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MillraceError } from '../../part/error.ts'
import type { Message } from '../../part/message.ts'
import { fromClientMessages, toolAnswers, toUiMessages } from './ui-message.ts'

const metadata = fc.option(fc.constant({ test: { signature: 's' } }), { nil: undefined })
const words = fc.string({ minLength: 1, maxLength: 5 })
const url = fc.constantFrom('https://example.com/a.png', 'data:image/png;base64,AAAA')
const textPart = fc.record({
  type: fc.constant('text'),
  text: words,
  state: fc.constant('done'),
  providerMetadata: metadata,
})
const filePart = fc.record({
  type: fc.constant('file'),
  mediaType: fc.constant('image/png'),
  url,
  providerMetadata: metadata,
})
const approval = (approved?: boolean) => ({ id: 'a', ...(approved !== undefined && { approved, reason: 'because' }) })
const toolState = fc.oneof(
  fc.constant({ state: 'input-streaming', input: undefined }),
  fc.constant({ state: 'input-available', input: { a: 1 } }),
  fc.constant({ state: 'approval-requested', input: { a: 1 }, approval: approval() }),
  fc.constant({ state: 'approval-responded', input: { a: 1 }, approval: approval(false) }),
  fc.constant({ state: 'output-denied', input: { a: 1 }, approval: approval(false) }),
  fc.record({ state: fc.constant('output-available'), input: fc.jsonValue(), output: fc.jsonValue() }),
  fc.constant({ state: 'output-available', input: {}, output: 1, preliminary: true }),
  fc.record({
    state: fc.constant('output-error'),
    input: fc.constantFrom(undefined, {}),
    rawInput: words,
    errorText: words,
  }),
)
const toolPart = fc
  .tuple(
    fc.constantFrom({ type: 'tool-search' }, { type: 'dynamic-tool', toolName: 'search' }),
    toolState,
    fc.boolean(),
    metadata,
    metadata,
    fc.nat(),
  )
  .map(([kind, state, providerExecuted, callProviderMetadata, resultProviderMetadata, n]) => {
    // A provider does not ask our client for approval.
    const byProvider = providerExecuted && !('approval' in state)
    return {
      ...kind,
      ...state,
      providerExecuted: byProvider,
      callProviderMetadata,
      resultProviderMetadata,
      toolCallId: `c${n}`,
    }
  })
const assistantPart = fc.oneof(
  textPart,
  filePart,
  toolPart,
  fc.record({ type: fc.constant('reasoning'), text: words, providerMetadata: metadata }),
  fc.record({ type: fc.constant('custom'), kind: fc.constant('p.thing'), providerMetadata: metadata }),
  fc.constant({ type: 'step-start' }),
  fc.constant({ type: 'source-url', sourceId: 's', url: 'https://example.com' }),
  fc.constant({ type: 'data-note', data: 1 }),
)
const uiMessage = fc.oneof(
  fc.record({ id: words, role: fc.constant('system'), parts: fc.array(textPart) }),
  fc.record({ id: words, role: fc.constant('user'), parts: fc.array(fc.oneof(textPart, filePart), { minLength: 1 }) }),
  fc.record({ id: words, role: fc.constant('assistant'), parts: fc.array(assistantPart) }),
)

describe('UI messages', () => {
  test('UI messages come out as the AI SDK converts them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(uiMessage, { maxLength: 4 }), async (messages) => {
        const theirs = await convertToModelMessages(messages as unknown as UIMessage[], {
          ignoreIncompleteToolCalls: true,
        })
        const ours = fromClientMessages(messages).map(({ id, ...message }) => {
          expect(messages.map((message) => message.id)).toContain(id)
          return message
        })
        expect(normal(ours)).toEqual(normal(theirs))
      }),
      { numRuns: 300 },
    )
  })

  /** Their form without what ours has no place for: approvals, URL objects, keys that are undefined. */
  function normal(messages: readonly unknown[]): unknown[] {
    const plain = JSON.parse(JSON.stringify(messages)) as { role: string; content: string | Record<string, any>[] }[]
    return plain.flatMap((message) => {
      if (typeof message.content === 'string') return [message]
      const content = message.content.filter(({ type }) => !String(type).startsWith('tool-approval-'))
      for (const part of content) {
        if (part['type'] === 'file' && typeof part['data'] === 'object') part['data'] = part['data'].url
        if (part['providerExecuted'] === false) delete part['providerExecuted']
      }
      return content.length > 0 ? [{ ...message, content }] : []
    })
  }

  test('plain and model messages pass as they are, ids included', () => {
    const messages: Message[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', id: 'u1', content: 'Hi' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'file', mediaType: 'image/png', data: 'AAAA' },
        ],
      },
      {
        role: 'assistant',
        id: 'run_1',
        content: [
          { type: 'reasoning', text: 'Hm', providerOptions: { p: { signature: 's' } } },
          { type: 'tool-call', toolCallId: 'c', toolName: 't', input: { a: 1 } },
        ],
      },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output: { type: 'json', value: 1 } }],
      },
      { role: 'assistant', content: 'Done.' },
    ]
    expect(fromClientMessages(messages)).toEqual(messages)
  })

  test('an approved call that has not run is left out, an empty text too', () => {
    const parts = [
      { type: 'text', text: '' },
      {
        type: 'tool-t',
        toolCallId: 'c',
        state: 'approval-responded',
        input: {},
        approval: { id: 'a', approved: true },
      },
    ]
    expect(fromClientMessages([{ id: 'm', role: 'assistant', parts }])).toEqual([])
  })

  test.each<[unknown, string]>([
    ['hi', 'messages must be an array'],
    [[1], 'messages[0] must be an object'],
    [
      [
        { role: 'user', content: 'a' },
        { role: 'robot', content: 'b' },
      ],
      'messages[1].role must be one of',
    ],
    [[{ content: 'a' }], 'messages[0].role'],
    [[{ role: 'user' }], 'messages[0] has neither content nor parts'],
    [[{ role: 'user', content: 7 }], 'messages[0].content must be a string or an array'],
    [[{ role: 'user', content: [{ type: 'text' }] }], 'messages[0].content[0].text must be a string'],
    [[{ role: 'user', content: [{ type: 'tool-call' }] }], 'messages[0].content[0].type is "tool-call"'],
    [[{ role: 'user', parts: {} }], 'messages[0].parts must be an array'],
    [[{ role: 'user', parts: [null] }], 'messages[0].parts[0] must be an object'],
    [[{ role: 'user', parts: [] }], 'messages[0].parts contains no text and no file'],
    [[{ role: 'user', id: 1, parts: [] }], 'messages[0].id must be a string'],
    [[{ role: 'user', parts: [{ type: 'file', mediaType: 'image/png', url: 'blob:x' }] }], 'messages[0].parts[0].url'],
    [
      [{ role: 'assistant', parts: [{ type: 'tool-x', toolCallId: 'c', state: 'odd' }] }],
      'messages[0].parts[0].state must be',
    ],
    [[{ role: 'assistant', content: [{ type: 'odd' }] }], 'messages[0].content[0].type is "odd"'],
    [[{ role: 'tool', content: 'x' }], 'messages[0].content must be an array of tool results'],
    [[{ role: 'tool', parts: [] }], 'messages[0].parts is not allowed in a tool message'],
    [
      [{ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', output: { type: 'x' } }] }],
      'messages[0].content[0].output.type',
    ],
    [
      Array.from({ length: 10_001 }, () => ({ role: 'user', content: '' })),
      'messages has 10001 entries; at most 10000',
    ],
  ])('refuses %#: %s', (messages, message) => {
    const run = () => fromClientMessages(messages)
    expect(run).toThrow(MillraceError)
    expect(run).toThrow(message)
    expect(run).toThrow(expect.objectContaining({ code: 'bad-input', status: 400 }))
  })

  test('any request body is a conversation or bad-input', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.anything(), uiMessage), { maxLength: 3 }), (messages) => {
        for (const read of [fromClientMessages, toolAnswers]) {
          try {
            read(messages)
          } catch (error) {
            expect(error).toMatchObject({ code: 'bad-input' })
          }
        }
      }),
    )
  })

  const tool = (toolCallId: string, more: object) => ({ type: 'tool-t', toolCallId, input: {}, ...more })

  test('answers are read off the last assistant message', () => {
    const parts = [
      tool('c1', { state: 'output-available', output: 'again later' }),
      { type: 'step-start' },
      tool('c1', { state: 'input-available' }),
      tool('c2', { state: 'output-available', output: { a: 1 } }),
      tool('c3', { state: 'output-error', errorText: 'no' }),
      tool('c4', { state: 'approval-responded', approval: { id: 'r4', approved: true } }),
      tool('c5', { state: 'output-available', output: 1, providerExecuted: true }),
      tool('c6', { state: 'output-available', output: 1, preliminary: true }),
    ]
    const messages = [
      { id: 'u', role: 'user', parts: [] },
      { id: 'm', role: 'assistant', parts },
    ]
    expect(toolAnswers(messages)).toEqual([
      { toolCallId: 'c2', answer: { kind: 'tool', output: { a: 1 } } },
      { toolCallId: 'c3', answer: { kind: 'tool', output: 'no', isError: true } },
      { toolCallId: 'c4', answer: { kind: 'approval', approved: true } },
    ])
    expect(toolAnswers([...messages, { role: 'user', content: 'never mind' }])).toEqual([])
  })

  test('answers are read off tool messages at the end', () => {
    const result = (toolCallId: string, output: object) => ({ type: 'tool-result', toolCallId, toolName: 't', output })
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'tool-approval-request', approvalId: 'r3', toolCallId: 'c3' }] },
      {
        role: 'tool',
        content: [result('c1', { type: 'text', value: 'one' }), result('c2', { type: 'error-json', value: 2 })],
      },
      { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'r3', approved: false, reason: 'no' }] },
    ]
    expect(toolAnswers(messages)).toEqual([
      { toolCallId: 'c1', answer: { kind: 'tool', output: 'one' } },
      { toolCallId: 'c2', answer: { kind: 'tool', output: 2, isError: true } },
      { toolCallId: 'c3', answer: { kind: 'approval', approved: false, reason: 'no' } },
    ])
  })

  test('a conversation goes to UI messages and back unchanged', () => {
    const messages: Message[] = [
      { role: 'system', id: 's', content: 'Be brief.' },
      {
        role: 'user',
        id: 'u',
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'file', mediaType: 'image/png', data: 'https://example.com/a.png' },
        ],
      },
      {
        role: 'assistant',
        id: 'run_1',
        content: [
          { type: 'reasoning', text: 'Hm', providerOptions: { p: { signature: 's' } } },
          { type: 'tool-call', toolCallId: 'c1', toolName: 't', input: { a: 1 } },
          { type: 'tool-call', toolCallId: 'c2', toolName: 't', input: {} },
          { type: 'tool-call', toolCallId: 'c3', toolName: 'web', input: {}, providerExecuted: true },
          { type: 'tool-result', toolCallId: 'c3', toolName: 'web', output: { type: 'json', value: [1] } },
        ],
      },
      {
        role: 'tool',
        id: 'run_1',
        content: [
          { type: 'tool-result', toolCallId: 'c1', toolName: 't', output: { type: 'text', value: 'ok' } },
          { type: 'tool-result', toolCallId: 'c2', toolName: 't', output: { type: 'error-text', value: 'no' } },
        ],
      },
      { role: 'assistant', id: 'run_1', content: [{ type: 'text', text: 'Done.' }] },
      { role: 'assistant', id: 'run_2', content: [{ type: 'custom', kind: 'p.x' }] },
    ]
    const ui = toUiMessages(messages)
    expect(ui.map(({ id, parts }) => [id, parts.length])).toEqual([
      ['s', 1],
      ['u', 2],
      ['run_1', 7],
      ['run_2', 2],
    ])
    expect(fromClientMessages(ui)).toEqual(messages)
  })

  test('messages that were stored by version 4 of the AI SDK: reasoning with its signature, calls with results, files', () => {
    const parts = [
      { type: 'step-start' },
      { type: 'reasoning', reasoning: 'Hm.', details: [{ type: 'text', text: 'Hm.', signature: 'sig' }] },
      {
        type: 'tool-invocation',
        toolInvocation: { state: 'result', toolCallId: 'c', toolName: 't', args: { a: 1 }, result: 2 },
      },
      { type: 'tool-invocation', toolInvocation: { state: 'call', toolCallId: 'd', toolName: 't', args: {} } },
      { type: 'text', text: 'Two.' },
    ]
    const file = { type: 'file', mimeType: 'image/png', data: 'AAAA' }
    const messages = [
      { id: 'u', role: 'user', content: 'See', parts: [file] },
      { id: 'a', role: 'assistant', content: 'Two.', parts },
    ]
    expect(fromClientMessages(messages)).toEqual([
      { id: 'u', role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: 'AAAA' }] },
      {
        id: 'a',
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.', providerOptions: { anthropic: { signature: 'sig' } } },
          { type: 'tool-call', toolCallId: 'c', toolName: 't', input: { a: 1 } },
          { type: 'text', text: 'Two.' },
        ],
      },
      {
        id: 'a',
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output: { type: 'json', value: 2 } }],
      },
    ])
  })
})
