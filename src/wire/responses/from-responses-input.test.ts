/** The items of a request as a conversation: recorded requests of real clients, and one case for each kind of item. */
import { describe, expect, test } from 'vitest'
import { fromResponsesInput, runOfItem } from './from-responses-input.ts'

const messagesIn = (input: unknown) => fromResponsesInput(input).messages.map(({ message }) => message)
const user = (content: unknown) => ({ type: 'message', role: 'user', content })
const call = (id: string, name = 'f') => ({ type: 'function_call', call_id: id, name, arguments: '{"a":1}' })
const output = (id: string, said: unknown = id) => ({ type: 'function_call_output', call_id: id, output: said })

describe('the input of a Responses request', () => {
  test('a text is one message of the user', () => {
    expect(messagesIn('Hi')).toEqual([{ role: 'user', content: 'Hi' }])
  })

  test('roles: developer is system, the type of a message may be missing, a phase is kept', () => {
    const input = [
      {
        role: 'developer',
        content: [
          { type: 'input_text', text: 'A' },
          { type: 'input_text', text: 'B' },
        ],
      },
      { role: 'user', content: 'Hi' },
      { type: 'message', role: 'assistant', phase: 'commentary', content: [{ type: 'output_text', text: 'Yo' }] },
      { role: 'system', content: 'C' },
    ]
    expect(messagesIn(input)).toEqual([
      { role: 'system', content: 'AB' },
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'Yo', providerOptions: { openai: { phase: 'commentary' } } }],
      },
      { role: 'system', content: 'C' },
    ])
  })

  test('outputs follow the message of their calls, in the order of the calls, wherever they stand', () => {
    const input = [user('Hi'), call('1'), call('2'), output('2'), user('Wait'), output('1')]
    const messages = messagesIn(input)
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
    expect(messages[2]).toMatchObject({ content: [{ toolCallId: '1' }, { toolCallId: '2', toolName: 'f' }] })
  })

  test('a call without an output is unavailable; an id that is used twice belongs to the call before it', () => {
    const [, , first, , , second] = messagesIn([
      user('One'),
      call('1'),
      output('1', 'one'),
      user('Two'),
      call('1'),
      user('Three'),
    ])
    expect(first).toMatchObject({ content: [{ output: { type: 'text', value: 'one' } }] })
    expect(second).toMatchObject({ content: [{ output: { type: 'error-text' } }] })
  })

  test('an output without its call is of the run before', () => {
    const { messages, orphans } = fromResponsesInput([output('9', 'x')])
    expect(orphans).toEqual([{ toolCallId: '9', place: 'input[0].call_id' }])
    expect(messages).toHaveLength(1)
  })

  test('files in an output are of the user, behind it', () => {
    const png = 'data:image/png;base64,iVBORw0KGgo='
    const said = [
      { type: 'input_text', text: 'Here' },
      { type: 'input_image', image_url: png },
    ]
    expect(messagesIn([user('Hi'), call('1'), output('1', said)]).slice(2)).toMatchObject([
      { role: 'tool', content: [{ output: { type: 'text', value: 'Here' } }] },
      { role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: 'iVBORw0KGgo=' }] },
    ])
  })

  test('images and files, as data and by address', () => {
    const content = [
      { type: 'input_text', text: 'Look' },
      { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'high' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
      { type: 'input_file', file_url: 'https://example.com/b.pdf' },
    ]
    expect(messagesIn([user(content)])).toMatchObject([
      {
        content: [
          { type: 'text', text: 'Look' },
          { type: 'file', mediaType: 'image/*', data: 'https://example.com/a.png' },
          { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf' },
          { type: 'file', data: 'https://example.com/b.pdf' },
        ],
      },
    ])
  })

  test('a namespace is a part of the name, and the text of a custom tool its input', () => {
    const input = [
      user('Hi'),
      { ...call('1', 'spawn'), namespace: 'agents' },
      { type: 'custom_tool_call', call_id: '2', name: 'patch', input: '***' },
    ]
    expect(messagesIn(input)[1]).toMatchObject({
      content: [
        { toolName: 'agents__spawn', input: { a: 1 } },
        { toolName: 'patch', input: { input: '***' } },
      ],
    })
  })

  test('ids name runs; thoughts, references and the server’s calls are looked up, and left out here', () => {
    const { messages } = fromResponsesInput([
      user('Hi'),
      { type: 'reasoning', id: 'rs_run-1_0', summary: [], encrypted_content: 'x', content: null },
      { type: 'mcp_call', id: 'mcp_run-1_1', name: 'f', arguments: '{}', server_label: 'a' },
      { type: 'message', id: 'msg_run-1_2', role: 'assistant', content: [{ type: 'output_text', text: 'Yo' }] },
      user('And?'),
      { type: 'item_reference', id: 'msg_run-2_0' },
      user('Bye'),
    ])
    expect(messages.map(({ run, isReference }) => [run, isReference])).toEqual([
      [undefined, undefined],
      ['run-1', undefined],
      [undefined, undefined],
      ['run-2', true],
      [undefined, undefined],
    ])
    expect(messages[1]!.message).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'Yo' }] })
  })

  test.each([
    ['msg_01a2-b_3_12', '01a2-b_3'],
    ['fc_x_0', 'x'],
    // Codex makes ids of its own.
    ['msg_00000000-0000-4000-8000-000000000012', undefined],
    ['msg_1', undefined],
    ['resp_x_0', undefined],
    [7, undefined],
    [`msg_${'x'.repeat(600)}_1`, undefined],
  ])('the run in the id %s', (id, run) => {
    expect(runOfItem(id)).toBe(run)
  })
})
