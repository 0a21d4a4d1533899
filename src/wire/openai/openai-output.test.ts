import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message } from '../../part/message.ts'
import { toOpenAiMessages } from './to-openai-messages.ts'
import { toToolOutput } from './openai-output.ts'

describe('toToolOutput', () => {
  test('tool output is cut behind the limit, not at it, and never inside a surrogate pair', () => {
    const x = 'x'.repeat(7998)
    expect(toToolOutput(`${x}😀`, 8000)).toBe(`${x}😀`)
    expect(toToolOutput(`${x}y`.repeat(2), 8000)).toBe(
      `${`${x}y${x}`.slice(0, 8000)}… [truncated: 8000 of 15998 characters]`,
    )
    expect(toToolOutput(`${x}😀z`, 8000)).toBe(`${x}😀… [truncated: 8000 of 8001 characters]`)
    expect(toToolOutput(`${x}y😀`, 8000)).toBe(`${x}y… [truncated: 7999 of 8001 characters]`)
    expect(toToolOutput('any', 0)).toBe('… [truncated: 0 of 3 characters]')
  })

  test('tool output: a shortened output is a prefix, well-formed if the whole is; a short output stays whole', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '水', '😀', '\ud83d', '\ude00') }),
        fc.nat({ max: 12 }),
        (text, max) => {
          const sent = toToolOutput(text, max)
          if (text.length <= max) {
            expect(sent).toBe(text)
            return
          }
          const [, kept, count, total] = /^([^]*)… \[truncated: (\d+) of (\d+) characters\]$/u.exec(sent)!
          expect(text.startsWith(kept!)).toBe(true)
          expect([Number(count), Number(total)]).toEqual([kept!.length, text.length])
          expect(max - kept!.length).toBeLessThanOrEqual(1)
          if (text.isWellFormed()) expect(kept!.isWellFormed()).toBe(true)
        },
      ),
    )
  })

  test('tool output is text as it is, anything else as JSON', () => {
    expect(toToolOutput('"a"', 99)).toBe('"a"')
    expect(toToolOutput({ a: [1, null] }, 99)).toBe('{"a":[1,null]}')
    expect(toToolOutput(null, 99)).toBe('null')
    expect(toToolOutput(undefined, 99)).toBe('')
  })

  const told = (...messages: Message[]) => {
    return toOpenAiMessages(messages, { toolOutputMaxChars: 10, isHidden: ({ toolName }) => toolName === 'respond' })
  }

  test('messages: text is a string, files are parts with URLs', () => {
    expect(
      told(
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi ' },
            { type: 'text', text: 'there' },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'file', mediaType: 'image/png', data: 'AAAA' },
            { type: 'file', mediaType: 'application/pdf', data: 'https://example.com/a.pdf', filename: 'a.pdf' },
          ],
        },
      ),
    ).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi there' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'https://example.com/a.pdf' } },
        ],
      },
    ])
  })

  test('messages: an assistant’s calls with their arguments as JSON, each result a message of its own, hidden ones gone', () => {
    const toolCallId = 'call_1'
    expect(
      told(
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', text: 'Hm.' },
            { type: 'tool-call', toolCallId, toolName: 'add', input: { a: 1 } },
            { type: 'tool-call', toolCallId: 'call_2', toolName: 'add', input: '{"a":' },
            { type: 'tool-call', toolCallId: 'call_3', toolName: 'respond', input: {} },
            { type: 'custom', kind: 'openai.compaction' },
          ],
        },
        {
          role: 'tool',
          content: [
            {
              type: 'tool-result',
              toolCallId,
              toolName: 'add',
              output: { type: 'json', value: { sum: 'a long one' } },
            },
            { type: 'tool-result', toolCallId: 'call_2', toolName: 'add', output: { type: 'execution-denied' } },
            {
              type: 'tool-result',
              toolCallId: 'call_3',
              toolName: 'respond',
              output: { type: 'text', value: 'Gone.' },
            },
          ],
        },
        { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'call_4', toolName: 'respond', input: {} }] },
      ),
    ).toEqual([
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'Hm.',
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } },
          { id: 'call_2', type: 'function', function: { name: 'add', arguments: '{"a":' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '{"sum":"a … [truncated: 10 of 20 characters]' },
      { role: 'tool', tool_call_id: 'call_2', content: 'denied' },
    ])
  })

  test('messages: a provider’s own tool results come after their call; other values are shown unchanged', () => {
    const named = { toolCallId: 'call_1', toolName: 'web' }
    expect(
      told({
        role: 'assistant',
        content: [
          { type: 'tool-call', ...named, input: {}, providerExecuted: true },
          { type: 'tool-result', ...named, output: { type: 'text', value: 'Found' } },
          { type: 'text', text: 'It is so.' },
        ],
      }),
    ).toMatchObject([
      { content: 'It is so.', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'Found' },
    ])
    const strange = [
      { role: 'user', content: [{ type: 'image', image: 'x' }] },
      { role: 'tool', content: 'text' },
      { role: 'assistant', content: [null] },
    ] as unknown as Message[]
    expect(told(...strange).map(({ content }) => content)).toEqual([
      '[{"type":"image","image":"x"}]',
      '"text"',
      '[null]',
    ])
  })
})
