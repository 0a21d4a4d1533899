/**
 * What servers send, as reports of their users have it, and its siblings in all four protocols. The AI SDK's packages say nothing about these:
 * a reader must not throw, must not lose a text, and must come to one end.
 */
import { describe, expect, test } from 'vitest'
import type { Protocol } from '../testing/recorded-provider.ts'
import { framed } from './testing/cuts.ts'
import {
  delta as blockDelta,
  ended,
  json,
  over,
  start,
  started,
  stop,
  text as said,
} from './testing/anthropic-events.ts'
import { checkMutated } from './testing/mutated.ts'
import { callOf, comparable, hear, playing, protocols, textIn, type Part } from './testing/play.ts'

type Line = string | object

const choice = (delta: object, finish_reason: string | null = null, rest: object = {}) => ({
  id: 'c',
  choices: [{ index: 0, delta, finish_reason, ...rest }],
})
const candidate = (parts: object[], finishReason?: string, rest: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, finishReason, ...rest }],
})
const itemAdded = (output_index: number, item: object) => ({ type: 'response.output_item.added', output_index, item })
const itemDone = (output_index: number, item: object) => ({ type: 'response.output_item.done', output_index, item })
const created = { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } }
const completed = (response: object = {}) => ({ type: 'response.completed', response })

/** An answer that says `A` and `B`, and how it ends. `rest`: what may come once its reason is known. */
const answers: Record<Protocol, { begin: Line[]; middle: Line[]; reason: Line[]; end: Line[] }> = {
  'openai-chat': {
    begin: [choice({ role: 'assistant', content: 'A' })],
    middle: [choice({ content: 'B' })],
    reason: [choice({}, 'stop')],
    end: ['[DONE]'],
  },
  anthropic: {
    begin: [started(), start(0, { type: 'text', text: '' }), said(0, 'A')],
    middle: [said(0, 'B'), stop(0)],
    reason: [ended('end_turn')],
    end: [over],
  },
  'openai-responses': {
    begin: [
      created,
      itemAdded(0, { type: 'message', id: 'i' }),
      { type: 'response.output_text.delta', output_index: 0, item_id: 'i', delta: 'A' },
    ],
    middle: [
      { type: 'response.output_text.delta', output_index: 0, item_id: 'i', delta: 'B' },
      itemDone(0, { type: 'message', id: 'i' }),
    ],
    reason: [],
    end: [completed()],
  },
  google: {
    begin: [candidate([{ text: 'A' }])],
    middle: [candidate([{ text: 'B' }])],
    reason: [candidate([], 'STOP')],
    end: [],
  },
}

const linesOf = (protocol: Protocol) => {
  const { begin, middle, reason, end } = answers[protocol]
  return [...begin, ...middle, ...reason, ...end]
}

function finishOf(parts: readonly Part[]) {
  const ends = parts.filter((part) => part.type === 'finish')
  expect(ends).toHaveLength(1)
  expect(parts.at(-1)).toBe(ends[0])
  return ends[0]!.finishReason
}

const errorIn = (parts: readonly Part[]) => parts.find((part) => part.type === 'error')?.error

/** Frames that say nothing, and others that nobody knows. */
const noise: Line[] = [
  'data: \n\n',
  'data:\n\n',
  'data\n\n',
  ': comment\n\n',
  'event: ping\ndata: {"type":"ping"}\n\n',
  'event: ping\n\n',
  'id: 7\nretry: 5\n\n',
  'null',
  '[]',
  '1',
  '"text"',
  ': OPENROUTER PROCESSING',
  'keep-alive',
  '{}',
  { type: 'ping' },
  { type: 'new.event', new: { deep: [1] } },
  { type: 'response.in_progress', response: { id: 'r' } },
  { object: 'chat.completion.chunk', error: null },
  { usage: null },
  { choices: null },
  { choices: [] },
  { choices: [null] },
  { candidates: null },
  { candidates: [] },
  { candidates: [{ content: null }] },
  { candidates: [{ content: { parts: [{ newPart: { a: 1 } }] } }] },
  { type: 'content_block_start', index: 7, content_block: { type: 'new_block', data: 'x' } },
  { type: 'content_block_delta', index: 7, delta: { type: 'new_delta', data: 'x' } },
  { type: 'content_block_stop', index: 7 },
  { type: 'response.output_item.added', output_index: 7, item: { type: 'new_item', id: 'n' } },
  { type: 'response.new_item.delta', output_index: 7, delta: 1 },
  { type: 'response.output_item.done', output_index: 7, item: { type: 'new_item', id: 'n' } },
]

describe.each(protocols)('%s', (protocol) => {
  const { begin, middle, reason, end } = answers[protocol]

  test('frames that say nothing change nothing, wherever they are', () => {
    const plain = playing(protocol)
    plain.push(...linesOf(protocol))
    const expected = comparable(plain.end(), '')
    for (const frame of noise) {
      for (let at = 0; at < linesOf(protocol).length; at++) {
        const { push, end: finish } = playing(protocol)
        push(...linesOf(protocol).toSpliced(at, 0, frame, frame))
        const parts = finish()
        expect([frame, at, comparable(parts, '')]).toEqual([frame, at, expected])
        // What is not understood is kept once.
        expect(parts.filter(({ type }) => type === 'raw').length).toBeLessThanOrEqual(1)
      }
    }
  })

  test('the end is the end: nothing is read behind it, and nothing need come', () => {
    const { reader, push, parts } = playing(protocol)
    push(...begin, ...middle)
    expect(reader.state).toBe('reading')
    push(...reason)
    if (reason.length > 0) expect(reader.state).toBe('ending')
    if (end.length === 0) reader.end()
    push(...end)
    expect(reader.state).toBe('done')
    push(...begin, { error: { message: 'late' } })
    reader.end()
    expect(finishOf(parts).unified).toBe('stop')
    expect(textIn(parts)).toBe('AB')
  })

  test('an answer that breaks off is none, and what it said stays', () => {
    const { push, end: finish } = playing(protocol)
    push(...begin)
    const parts = finish()
    expect(textIn(parts)).toBe('A')
    expect(finishOf(parts)).toMatchObject({ unified: 'interrupted' })
  })

  test('an event that breaks off fails the answer: its text is lost', () => {
    const { push, end: finish } = playing(protocol)
    push(...begin, JSON.stringify(middle[0]).slice(0, -5), ...middle, ...end)
    const parts = finish()
    expect(textIn(parts)).toBe('A')
    expect(finishOf(parts).unified).toBe('error')
    expect(errorIn(parts)).toBeDefined()
  })

  test('a last event without its empty line is read', () => {
    const lines = linesOf(protocol)
    const body = framed(lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))))
    for (const cut of [1, 2]) {
      const parts = hear(protocol, [body.subarray(0, -cut)])
      expect(textIn(parts)).toBe('AB')
      expect(finishOf(parts).unified).toBe('stop')
    }
  })

  test.each<[string, Line, string]>([
    ['an object', { error: { message: 'no room', code: 400 } }, 'no room'],
    ['a text', { error: 'no room' }, 'no room'],
    ['beside a text', { ...choice({ content: 'B' }), error: { message: 'no room' } }, 'no room'],
    ['named by its event', 'event: error\ndata: {"message":"no room"}\n\n', 'no room'],
    ['named by its event, a text', 'event: error\ndata: no room\n\n', 'no room'],
  ])('an error event ends the answer: %s', (_, frame, words) => {
    const { push, parts, end: finish } = playing(protocol)
    push(...begin, frame, ...middle)
    finish()
    expect(JSON.stringify(errorIn(parts))).toContain(words)
    expect(finishOf(parts).unified).toBe('error')
    expect(textIn(parts)).toMatch(/^AB?$/)
  })

  test('a JSON answer is an answer, a JSON error is an error, a page is a page', () => {
    const document = (body: unknown) =>
      hear(protocol, [Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))])
    const parts = document(wholes[protocol])
    expect(textIn(parts)).toBe('whole')
    expect(parts.find(({ type }) => type === 'tool-call')).toMatchObject({ toolName: 'get', input: '{"a":1}' })
    expect(finishOf(parts).unified).toBe('tool-calls')
    for (const body of [
      { error: { message: 'no room' } },
      { error: 'no room' },
      { detail: 'no room' },
      [{ error: { message: 'no room' } }],
    ]) {
      expect(JSON.stringify(errorIn(document(body)))).toContain('no room')
      expect(finishOf(document(body)).unified).toBe('error')
    }
    expect(errorIn(document('\n<!doctype html><title>Sign in</title>'))).toMatchObject({
      html: expect.stringContaining('Sign in'),
    })
    // Without an event stream, Google sends its chunks as a list. Others send a line for each.
    if (protocol === 'google') expect(textIn(document(linesOf(protocol)))).toBe('AB')
    if (protocol === 'openai-chat') {
      const lines = linesOf(protocol).filter((line) => line !== '[DONE]')
      expect(textIn(document(lines.map((line) => JSON.stringify(line)).join('\n')))).toBe('AB')
    }
  })

  test('a server that still reads the prompt is alive', () => {
    const { push, parts } = playing(protocol)
    push(...alive[protocol])
    expect(parts.filter(({ type }) => type === 'ping').length).toBeGreaterThan(0)
    const before = parts.length
    push(': comment\n\n', 'data: \n\n')
    expect(parts).toHaveLength(before)
  })

  test('mutated streams: nothing throws, one end, and no text of the lines before is lost, however it is cut', () => {
    for (let seed = 1; seed <= 60; seed++) checkMutated(protocol, seed)
  })
})

const call = { id: 'c1', type: 'function', function: { name: 'get', arguments: { a: 1 } } }
const wholes: Record<Protocol, object> = {
  'openai-chat': {
    id: 'c',
    object: 'chat.completion',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'whole', tool_calls: [call] }, finish_reason: 'tool_calls' },
    ],
  },
  anthropic: {
    type: 'message',
    id: 'm',
    content: [
      { type: 'text', text: 'whole' },
      { type: 'tool_use', id: 't', name: 'get', input: { a: 1 } },
    ],
    stop_reason: 'tool_use',
    usage: { input_tokens: 1, output_tokens: 2 },
  },
  'openai-responses': {
    object: 'response',
    id: 'r',
    status: 'completed',
    output: [
      { type: 'message', id: 'i', content: [{ type: 'output_text', text: 'whole' }] },
      { type: 'function_call', id: 'f', call_id: 'c1', name: 'get', arguments: '{"a":1}' },
    ],
  },
  google: candidate([{ text: 'whole' }, { functionCall: { name: 'get', args: { a: 1 } } }], 'STOP'),
}

const alive: Record<Protocol, Line[]> = {
  'openai-chat': [
    { ...choice({ role: 'assistant', content: null }), prompt_progress: { total: 8, processed: 1 } },
    choice({ content: '' }),
  ],
  anthropic: [started(), { type: 'ping' }],
  'openai-responses': [created, { type: 'response.in_progress', response: {} }],
  google: [candidate([]), candidate([])],
}

describe('ends that mean failure', () => {
  test.each<[Protocol, Line[], string]>([
    ['google', [candidate([], 'MALFORMED_FUNCTION_CALL', { finishMessage: 'print(x)' })], 'print(x)'],
    ['google', [candidate([], 'UNEXPECTED_TOOL_CALL')], 'UNEXPECTED_TOOL_CALL'],
    ['google', [candidate([], 'OTHER')], 'OTHER'],
    ['google', [candidate([{ text: 'A' }], 'MALFORMED_FUNCTION_CALL')], 'MALFORMED_FUNCTION_CALL'],
    ['openai-chat', [choice({ content: 'A' }), choice({}, 'abort'), '[DONE]'], 'abort'],
    ['openai-chat', [choice({}, 'error', { error: { message: 'upstream' } }), '[DONE]'], 'upstream'],
    ['openai-chat', [choice({}, 'odd'), '[DONE]'], 'odd'],
    ['anthropic', [started(), ended('odd'), over], 'odd'],
    [
      'openai-responses',
      [created, { type: 'response.failed', response: { error: { code: 'server_error', message: 'upstream' } } }],
      'upstream',
    ],
    ['openai-responses', [created, { type: 'response.failed', response: {} }], 'failed'],
    [
      'openai-responses',
      [created, { type: 'response.incomplete', response: { incomplete_details: { reason: 'odd' } } }],
      'odd',
    ],
  ])('%s %j', (protocol, lines, why) => {
    const { push, end } = playing(protocol)
    push(...lines)
    const parts = end()
    expect(finishOf(parts).unified).toBe('error')
    const error = errorIn(parts) as { raw?: string; message?: string }
    expect(JSON.stringify([error, error.raw, error.message])).toContain(why)
  })

  test('an odd reason behind a text is no failure', () => {
    const { push, end } = playing('google')
    push(candidate([{ text: 'A' }]), candidate([], 'OTHER'))
    expect(finishOf(end())).toEqual({ unified: 'other', raw: 'OTHER' })
  })

  test('a server that knows no reason ends with [DONE]; without anything it has ended nothing', () => {
    const one = playing('openai-chat')
    one.push(choice({ content: 'A' }), '[DONE]')
    expect(finishOf(one.parts).unified).toBe('stop')
    const none = playing('openai-chat')
    none.push('[DONE]')
    expect(finishOf(none.parts).unified).toBe('interrupted')
  })
})

describe('calls over the chat protocol', () => {
  const tool = (rest: object) => choice({ tool_calls: [rest] })
  const callsIn = (lines: Line[]) => {
    const { push, end } = playing('openai-chat')
    push(...lines, choice({}, 'tool_calls'))
    return end().flatMap((part) => (part.type === 'tool-call' ? [[part.toolCallId, part.toolName, part.input]] : []))
  }
  test.each<[string, Line[], unknown[]]>([
    [
      'arguments as an object',
      [tool({ index: 0, id: 'a', function: { name: 'get', arguments: { q: 1 } } })],
      [['a', 'get', '{"q":1}']],
    ],
    [
      'arguments as null',
      [tool({ index: 0, id: 'a', function: { name: 'get', arguments: null } })],
      [['a', 'get', '']],
    ],
    [
      'two calls with one index',
      [
        tool({ index: 0, id: 'a', function: { name: 'get', arguments: '{"q":1}' } }),
        tool({ index: 0, id: 'b', function: { name: 'get', arguments: '{"q":2}' } }),
      ],
      [
        ['a', 'get', '{"q":1}'],
        ['b', 'get', '{"q":2}'],
      ],
    ],
    [
      'two tools with one index and no ids',
      [
        tool({ index: 0, function: { name: 'get', arguments: '{}' } }),
        tool({ index: 0, function: { name: 'add', arguments: '{}' } }),
      ],
      [
        ['new-0', 'get', '{}'],
        ['new-1', 'add', '{}'],
      ],
    ],
    [
      'no index',
      [
        tool({ id: 'a', function: { name: 'get', arguments: '{"q"' } }),
        tool({ function: { arguments: ':1}' } }),
        tool({ id: 'b', function: { name: 'get', arguments: '{}' } }),
      ],
      [
        ['a', 'get', '{"q":1}'],
        ['b', 'get', '{}'],
      ],
    ],
    [
      'the name in every piece',
      [
        tool({ index: 0, id: 'a', function: { name: 'get', arguments: '{"q"' } }),
        tool({ index: 0, id: 'a', function: { name: 'get', arguments: ':1}' } }),
      ],
      [['a', 'get', '{"q":1}']],
    ],
    [
      'the name behind the arguments',
      [
        tool({ index: 0, function: { arguments: '{"q"' } }),
        tool({ index: 0, id: 'a', function: { name: 'get', arguments: ':1}' } }),
      ],
      [['a', 'get', '{"q":1}']],
    ],
    [
      'the old form',
      [choice({ function_call: { name: 'get', arguments: '{"q"' } }), choice({ function_call: { arguments: ':1}' } })],
      [['new-0', 'get', '{"q":1}']],
    ],
    [
      'no list',
      [choice({ tool_calls: { id: 'a', function: { name: 'get', arguments: '{}' } } })],
      [['a', 'get', '{}']],
    ],
    [
      'null beside a text',
      [choice({ content: 'A', tool_calls: null }), tool({ index: 0, id: 'a', function: { name: 'get' } })],
      [['a', 'get', '']],
    ],
  ])('%s', (_, lines, expected) => expect(callsIn(lines)).toEqual(expected))

  test('signatures of Gemini and reasoning details of OpenRouter are kept', () => {
    const { push, end } = playing('openai-chat')
    push(
      choice({ reasoning: 'Hm', reasoning_details: [{ type: 'reasoning.text', text: 'Hm', index: 0 }] }),
      choice({ reasoning: 'm', reasoning_details: [{ type: 'reasoning.text', text: 'm', index: 0, signature: 's' }] }),
      choice({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'e', index: 1 }] }),
      tool({ index: 0, id: 'a', function: { name: 'get' }, extra_content: { google: { thought_signature: 'sig' } } }),
      choice({}, 'tool_calls'),
    )
    const parts = end()
    expect(parts.find(({ type }) => type === 'reasoning-end')).toMatchObject({
      providerMetadata: {
        'my-server': {
          reasoningDetails: [
            { type: 'reasoning.text', text: 'Hmm', index: 0, signature: 's' },
            { type: 'reasoning.encrypted', data: 'e', index: 1 },
          ],
        },
      },
    })
    expect(parts.find(({ type }) => type === 'tool-call')).toMatchObject({
      providerMetadata: { 'my-server': { thoughtSignature: 'sig' } },
    })
  })

  test('a call that never gets a name fails the answer', () => {
    const { push, end } = playing('openai-chat')
    push(tool({ index: 0, id: 'a', function: { arguments: '{}' } }), choice({}, 'tool_calls'))
    expect(finishOf(end()).unified).toBe('error')
  })

  test('a whole message in place of deltas, or behind them', () => {
    const message = (content: string, rest: object = {}) => ({
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: null, ...rest }],
    })
    const alone = playing('openai-chat')
    alone.push(message('whole', { finish_reason: 'stop' }), '[DONE]')
    expect(textIn(alone.parts)).toBe('whole')
    const behind = playing('openai-chat')
    behind.push(
      choice({ content: 'wh' }),
      choice({ content: 'o' }),
      message('whole', { finish_reason: 'stop' }),
      '[DONE]',
    )
    expect(textIn(behind.parts)).toBe('whole')
  })

  test('a reason in every chunk ends nothing, and only one of several answers is read', () => {
    const { push, end } = playing('openai-chat')
    const other = { index: 1, delta: { content: 'no' } }
    push(
      choice({ content: 'A' }, 'stop'),
      { choices: [other, { index: 0, delta: { content: 'B' }, finish_reason: 'stop' }] },
      { choices: [other] },
    )
    expect(textIn(end())).toBe('AB')
  })
})

test('Anthropic: blocks that are complete when they begin, or never end', () => {
  const { push, end } = playing('anthropic')
  push(
    started(),
    start(0, { type: 'thinking', thinking: 'Hm', signature: 's' }),
    start(1, { type: 'text', text: 'A' }),
    start(2, { type: 'tool_use', id: 't', name: 'get', input: '{"a":1}' }),
    start(3, { type: 'server_tool_use', id: 'x', name: 'new_tool', input: {} }),
    json(3, '{}'),
    start(4, { type: 'new_tool_tool_result', tool_use_id: 'x', content: { some_field: 1 } }),
    blockDelta(1, { type: 'text_delta', text: 'B' }),
    ended('tool_use'),
    over,
  )
  const parts = end()
  expect(textIn(parts)).toBe('AB')
  expect(parts.filter(({ type }) => type === 'tool-call')).toMatchObject([
    { toolName: 'get', input: '{"a":1}' },
    { toolName: 'new_tool' },
  ])
  expect(parts.find(({ type }) => type === 'tool-result')).toMatchObject({ toolCallId: 'x', result: { someField: 1 } })
  expect(finishOf(parts).unified).toBe('tool-calls')
})

test('Responses: a server that speaks the chat protocol is told so, and one without deltas is read', () => {
  const chat = playing('openai-responses')
  chat.push(choice({ content: 'A' }))
  expect(errorIn(chat.parts)).toMatchObject({ message: expect.stringContaining('chat protocol') })
  const bare = playing('openai-responses')
  bare.push(itemDone(0, { type: 'message', id: 'i', content: [{ type: 'output_text', text: 'A' }] }))
  bare.push(
    itemDone(1, { type: 'function_call', id: 'f', call_id: 'c', name: 'get', arguments: { a: 1 } }),
    completed(),
  )
  expect(textIn(bare.parts)).toBe('A')
  expect(bare.parts.find(({ type }) => type === 'tool-call')).toMatchObject({ toolCallId: 'c', input: '{"a":1}' })
})

test('Google: an answer may take several requests', () => {
  const { reader, push, parts } = playing('google')
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 2 }
  push(candidate([{ text: 'one ' }]), {
    ...candidate([{ text: 'two' }], 'CONTINUATION', { continuationToken: 't1' }),
    usageMetadata,
  })
  expect(reader.continuation?.()).toBe('t1')
  reader.continued!()
  push({ ...candidate([{ text: ' three' }], 'STOP'), usageMetadata })
  expect(reader.continuation?.()).toBeUndefined()
  reader.end()
  expect(textIn(parts)).toBe('one two three')
  expect(finishOf(parts).unified).toBe('stop')
  expect(parts.at(-1)).toMatchObject({ usage: { outputTokens: { total: 4 } } })
})

test('an unfinished line and an unfinished event have a bound', () => {
  const limits = { lineBytes: 100, bodyBytes: 1000 }
  const endless = () => playing('openai-chat', callOf([]), limits)
  const error = expect.objectContaining({ code: 'line-too-long', message: expect.stringContaining('it:m sent') })
  expect(() => endless().push(...Array.from({ length: 100 }, () => 'data: aa\n'))).toThrow(error)
  const { reader } = endless()
  expect(() => {
    for (let i = 0; i < 100; i++) reader.push(Buffer.from('data: aa'))
  }).toThrow(error)
  expect(() => playing('google', callOf([]), limits).reader.push(Buffer.from('{'.repeat(2000)))).toThrow(
    'more than 1000 bytes',
  )
})
