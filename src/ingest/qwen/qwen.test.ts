import { describe, expect, test } from 'vitest'
import { expectSameAtAnyCut, faultsOf, lines, play, short } from '../testing/play.ts'

const session = { session_id: 's', parent_tool_use_id: null }
const init = {
  type: 'system',
  subtype: 'init',
  model: 'qwen-x',
  tools: ['read_file'],
  qwen_code_version: '0.24.4',
  ...session,
}
const none = { input_tokens: 0, output_tokens: 0 }
const first = { input_tokens: 160, output_tokens: 30, cache_read_input_tokens: 50, total_tokens: 190 }
const second = { input_tokens: 160, output_tokens: 12, cache_read_input_tokens: 50, total_tokens: 172 }
const sum = { input_tokens: 320, output_tokens: 42, cache_read_input_tokens: 100, total_tokens: 362 }
const block = (id: string, content: object, usage: object = none, parent: string | null = null) => {
  return {
    type: 'assistant',
    message: { id, role: 'assistant', model: 'qwen-x', content: [content], usage },
    ...session,
    parent_tool_use_id: parent,
  }
}
const event = (body: object) => ({ type: 'stream_event', event: body, ...session })
const pieces = (kind: string, key: string, ...texts: string[]) => [
  event({ type: 'content_block_start', index: 0, content_block: { type: kind, [kind]: '' } }),
  ...texts.map((text) =>
    event({ type: 'content_block_delta', index: 0, delta: { type: `${kind}_delta`, [key]: text } }),
  ),
  event({ type: 'content_block_stop', index: 0 }),
]
const thinking = { type: 'thinking', thinking: 'I look.', signature: '' }
const text = (content: string) => ({ type: 'text', text: content })
const call = { type: 'tool_use', id: 'c1', name: 'read_file', input: { path: 'a' } }
const answered = {
  type: 'user',
  message: { content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }] },
  ...session,
}
const result = { type: 'result', subtype: 'success', is_error: false, result: 'Done.', usage: sum, ...session }

const whole = [
  init,
  event({ type: 'goal_state', goal_state: {} }),
  block('1', thinking),
  block('2', text('Let me look.')),
  block('3', call, first),
  answered,
  block('4', thinking),
  block('5', text('Done.'), second),
  result,
]
const streamed = [
  init,
  event({ type: 'message_start', message: { id: '1', model: 'qwen-x', content: [] } }),
  ...pieces('thinking', 'thinking', 'I ', 'look.'),
  block('1', thinking),
  ...pieces('text', 'text', 'Let me ', 'look.'),
  block('2', text('Let me look.')),
  event({ type: 'content_block_start', index: 0, content_block: { ...call, input: {} } }),
  event({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"path":"a"}' } }),
  event({ type: 'content_block_stop', index: 0 }),
  block('3', call, first),
  event({ type: 'message_stop' }),
  answered,
  event({ type: 'message_start', message: { id: '4', model: 'qwen-x', content: [] } }),
  ...pieces('thinking', 'thinking', 'I look.'),
  block('4', thinking),
  ...pieces('text', 'text', 'Done.'),
  block('5', text('Done.'), second),
  event({ type: 'message_stop' }),
  result,
]

describe('Qwen Code', () => {
  test.each([
    ['whole', whole],
    ['in pieces', streamed],
  ])('%s: blocks of one message are one model call, each said once, cached tokens are in the input', (_, events) => {
    const { parts, outcome } = expectSameAtAnyCut('qwen', new TextEncoder().encode(lines(...events)))
    const said = short(parts)
    expect(said.filter((line) => line.startsWith('response-metadata'))).toEqual([
      'response-metadata 1',
      'response-metadata 4',
    ])
    const joined = (type: string) =>
      parts.flatMap((part) => (part.type === type && 'delta' in part ? [part.delta] : [])).join('')
    expect([joined('text-delta'), joined('reasoning-delta')]).toEqual(['Let me look.Done.', 'I look.I look.'])
    expect(said.filter((line) => /^tool-(call|result)/u.test(line))).toEqual([
      'tool-call c1 {"path":"a"}',
      'tool-result c1 "x"',
    ])
    expect(parts.flatMap((part) => (part.type === 'usage' ? [part.usage.inputTokens] : []))).toEqual([160, 160])
    expect(outcome).toMatchObject({
      outcome: 'completed',
      text: 'Done.',
      model: 'qwen-x',
      usage: { inputTokens: 320, cachedInputTokens: 100, outputTokens: 42 },
    })
    expect(said.filter((line) => line.startsWith('cli-output'))).toEqual([])
  })

  test('it says who it is: in its metadata, and in its errors', () => {
    const failed = {
      ...result,
      subtype: 'error_during_execution',
      is_error: true,
      result: undefined,
      error: { message: 'No key' },
    }
    const { parts, outcome } = play('qwen', lines(init, failed))
    expect(outcome.error).toEqual({ code: 'cli-failed', message: 'No key' })
    expect(parts[0]).toMatchObject({ providerMetadata: { qwen: { version: '0.24.4' } } })
    expect(play('qwen', lines(init)).outcome.error?.message).toBe('The output of Qwen Code ended without a result.')
    expect(play('claude', lines(...whole)).outcome.error).toMatchObject({
      code: 'unknown-format',
      message: expect.stringContaining('qwen instead of claude'),
    })
  })

  test('a sub-agent between the blocks of the agent is a message of its own', () => {
    const { parts } = play(
      'qwen',
      lines(
        init,
        block('1', { type: 'tool_use', id: 'agent', name: 'agent', input: {} }, first),
        block('2', text('Sub.'), none, 'agent'),
        block('3', { ...call, id: 'c2' }, second, 'agent'),
        {
          ...answered,
          parent_tool_use_id: 'agent',
          message: { content: [{ type: 'tool_result', tool_use_id: 'c2', content: 'y' }] },
        },
        { ...answered, message: { content: [{ type: 'tool_result', tool_use_id: 'agent', content: 'done' }] } },
        block('4', text('Done.'), second),
        result,
      ),
    )
    expect(faultsOf(parts)).toEqual([])
    const ofSub = parts.filter((part) => JSON.stringify(part).includes('"qwen":{"parentToolUseId":"agent"}'))
    expect(ofSub.map(({ type }) => type)).toContain('text-delta')
  })
})
