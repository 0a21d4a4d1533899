import { describe, expect, test } from 'vitest'
import { addUsage, type Usage } from '../../part/usage.ts'
import { createClaudeParser } from '../cli-parser.ts'
import {
  assistant,
  blockDelta,
  blockStart,
  blockStop,
  init,
  messageStart,
  result,
  session,
  stream,
  toolResult,
  usage,
} from '../testing/claude-lines.ts'
import { faultsOf, lines, play, short, textIn, type PlayOptions } from '../testing/play.ts'

function read(events: (object | string)[], options?: PlayOptions) {
  const played = play('claude', lines(...events), options)
  expect(faultsOf(played.parts)).toEqual([])
  return { ...played, said: short(played.parts) }
}

const text = (content: string) => ({ type: 'text', text: content })
const partials = [
  messageStart('m1', { input_tokens: 3, output_tokens: 1 }),
  blockStart(0, text('')),
  blockDelta(0, { type: 'text_delta', text: 'Hi' }),
  blockDelta(0, { type: 'text_delta', text: '!' }),
  assistant('m1', [text('Hi!')]),
  blockStop(0),
  stream({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }),
  stream({ type: 'message_stop' }),
]

describe('Claude Code', () => {
  test('a text that comes in pieces is not said again by its assistant line', () => {
    const { said, outcome } = read([init, ...partials, result])
    expect(said).toEqual([
      'session-info',
      'stream-start',
      'response-metadata m1',
      'text-start b1',
      'text-delta b1 Hi',
      'text-delta b1 !',
      'text-end b1',
      'usage',
      'usage',
      'finish',
    ])
    expect(outcome).toMatchObject({ outcome: 'completed', text: 'Hi!', sessionId: 's1', model: 'claude-x', cost: 0.5 })
  })

  test('an assistant line that comes late, after the next message has begun, says nothing twice', () => {
    const { parts } = read([
      init,
      messageStart('m1'),
      blockStart(0, text('')),
      blockDelta(0, { type: 'text_delta', text: 'a' }),
      blockStop(0),
      messageStart('m2'),
      blockStart(0, text('')),
      assistant('m1', [text('a')]),
      blockDelta(0, { type: 'text_delta', text: 'b' }),
      blockStop(0),
      assistant('m2', [text('b')]),
      result,
    ])
    expect(textIn(parts)).toBe('ab')
  })

  test('without pieces, the blocks come from the assistant lines: one each, of one message', () => {
    const { said } = read([
      init,
      assistant('m1', [{ type: 'thinking', thinking: 'Hm.', signature: 'sig' }]),
      assistant('m1', [text('Hi!')]),
      assistant('m2', [text('Again.')]),
      result,
    ])
    expect(said.filter((line) => /^(text|reasoning)/u.test(line))).toEqual([
      'reasoning-start b1',
      'reasoning-delta b1 Hm.',
      'reasoning-end b1',
      'text-start b2',
      'text-delta b2 Hi!',
      'text-end b2',
      'text-start b3',
      'text-delta b3 Again.',
      'text-end b3',
    ])
  })

  test('the session comes first, whatever was printed before it; when it is repeated it is output', () => {
    const hook = { type: 'system', subtype: 'hook_started', hook_id: 'h', ...session }
    const { said, parts } = read(['Welcome!', hook, init, init, ...partials, result])
    expect(said.slice(0, 5)).toEqual([
      'session-info',
      'stream-start',
      'cli-output Welcome!',
      `cli-output ${JSON.stringify(hook)}`,
      `cli-output ${JSON.stringify(init)}`,
    ])
    expect(parts[0]).toEqual({
      type: 'session-info',
      sessionId: 's1',
      model: 'claude-x',
      providerMetadata: { claude: { cwd: '/w', tools: ['Bash'] } },
    })
  })

  test('output without end is not held back for a session that never comes', () => {
    const parser = createClaudeParser()
    const line = `${'x'.repeat(1000)}\n`
    expect(parser.feed(line)).toEqual([])
    const said = short(parser.feed(line.repeat(100)))
    expect(said[0]).toBe('stream-start')
    expect(said.filter((each) => each.startsWith('cli-output')).length).toBeGreaterThan(60)
    expect(short(parser.feed(line))).toHaveLength(1)
  })

  test('a message that begins ends what the one before has left open: its blocks are other blocks', () => {
    const { said } = read([
      init,
      messageStart('m1'),
      blockStart(0, text('')),
      blockDelta(0, { type: 'text_delta', text: 'a' }),
      messageStart('m2'),
      blockDelta(0, { type: 'text_delta', text: 'lost' }),
      blockStart(0, text('')),
      blockDelta(0, { type: 'text_delta', text: 'b' }),
      blockStart(0, text('')),
      result,
    ])
    expect(said.slice(2, 7)).toEqual([
      'response-metadata m1',
      'text-start b1',
      'text-delta b1 a',
      'text-end b1',
      'response-metadata m2',
    ])
    expect(said[7]).toMatch(/^cli-output .*lost/u)
    expect(said.slice(8, 12)).toEqual(['text-start b2', 'text-delta b2 b', 'text-end b2', 'text-start b3'])
  })

  test('lines that are no events are output, unchanged: never text', () => {
    const strange = [
      '{"type":',
      '[1,2]',
      '"text"',
      'null',
      '42',
      '{"type":"unknown"}',
      '{}',
      `${'['.repeat(9999)}`,
      ' {x ',
    ]
    const { said, parts } = read([init, ...strange, result])
    expect(said.filter((line) => line.startsWith('cli-output'))).toEqual(strange.map((line) => `cli-output ${line}`))
    expect(textIn(parts)).toBe('Hi!')
  })

  test('a call: its arguments in pieces, then the call, then its result with its name', () => {
    const { said, parts } = read([
      init,
      messageStart('m1'),
      blockStart(0, { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }),
      blockDelta(0, { type: 'input_json_delta', partial_json: '' }),
      blockDelta(0, { type: 'input_json_delta', partial_json: '{"command":' }),
      blockDelta(0, { type: 'input_json_delta', partial_json: '"ls"}' }),
      assistant('m1', [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } }]),
      blockStop(0),
      toolResult('toolu_1', 'README.md'),
      result,
    ])
    expect(said.filter((line) => line.startsWith('tool'))).toEqual([
      'tool-input-start toolu_1',
      'tool-input-delta toolu_1 {"command":',
      'tool-input-delta toolu_1 "ls"}',
      'tool-input-end toolu_1',
      'tool-call toolu_1 {"command":"ls"}',
      'tool-result toolu_1 "README.md"',
    ])
    expect(parts).toContainEqual(
      expect.objectContaining({ type: 'tool-call', toolName: 'Bash', providerExecuted: true }),
    )
    expect(parts).toContainEqual(expect.objectContaining({ type: 'tool-result', toolName: 'Bash', isError: false }))
  })

  test('a line that is repeated calls nothing twice; a result ends the arguments of a call whose end is missing', () => {
    const call = assistant('m1', [{ type: 'tool_use', id: 'a', name: 'Bash', input: { x: 1 } }])
    const { said } = read([
      init,
      call,
      toolResult('a', 'ok'),
      call,
      messageStart('m2'),
      blockStart(0, { type: 'tool_use', id: 'b', name: 'Bash', input: {} }),
      blockDelta(0, { type: 'input_json_delta', partial_json: '{"y":2}' }),
      toolResult('b', 'ok'),
      result,
    ])
    expect(said.filter((line) => /^tool-(call|result)/u.test(line))).toEqual([
      'tool-call a {"x":1}',
      'tool-result a "ok"',
      'tool-call b {"y":2}',
      'tool-result b "ok"',
    ])
  })

  test('parallel calls, whole: results join by id; an error and a refusal say so', () => {
    const denied = { type: 'system', subtype: 'permission_denied', tool_use_id: 'b', message: 'no', ...session }
    const { parts } = read([
      init,
      assistant('m1', [
        { type: 'tool_use', id: 'a', name: 'Read', input: { path: 'x' } },
        { type: 'tool_use', id: 'b', name: 'Write', input: {} },
        { type: 'tool_use', id: 'c', name: 'Bash', input: {} },
      ]),
      toolResult('c', [{ type: 'text', text: 'ok' }]),
      denied,
      toolResult('b', 'not allowed', { is_error: true }),
      toolResult('a', 'gone', { is_error: true }),
      toolResult('a', 'a second time'),
      result,
    ])
    expect(parts.filter(({ type }) => type === 'tool-result')).toEqual([
      expect.objectContaining({
        toolCallId: 'c',
        toolName: 'Bash',
        result: [{ type: 'text', text: 'ok' }],
        isError: false,
      }),
      expect.objectContaining({ toolCallId: 'b', toolName: 'Write', isError: true, outcome: 'denied' }),
      expect.objectContaining({ toolCallId: 'a', toolName: 'Read', result: 'gone', isError: true }),
    ])
  })

  test('a call that was killed before its result has an outcome; one that was never complete is closed', () => {
    const { said, parts } = read(
      [
        init,
        assistant('m1', [{ type: 'tool_use', id: 'a', name: 'Bash', input: {} }]),
        messageStart('m2'),
        blockStart(0, { type: 'tool_use', id: 'b', name: 'Bash', input: {} }),
        blockDelta(0, { type: 'input_json_delta', partial_json: '{"com' }),
      ],
      { exit: { code: null, signal: 'SIGKILL' } },
    )
    expect(parts).toContainEqual(expect.objectContaining({ toolCallId: 'a', outcome: 'aborted', isError: true }))
    expect(said).toContain('tool-input-end b')
    expect(said).not.toContain('tool-call b {"com')
  })

  test('thinking never is text; an empty one has the estimate of its tokens', () => {
    const tokens = (count: number) => ({
      type: 'system',
      subtype: 'thinking_tokens',
      estimated_tokens: count,
      ...session,
    })
    const { parts } = read([
      init,
      messageStart('m1'),
      blockStart(0, { type: 'thinking', thinking: '', signature: '' }),
      tokens(10),
      tokens(40),
      blockDelta(0, { type: 'signature_delta', signature: 'sig' }),
      assistant('m1', [{ type: 'thinking', thinking: '', signature: 'sig' }]),
      blockStop(0),
      blockStart(1, text('')),
      blockDelta(1, { type: 'text_delta', text: 'Hi!' }),
      blockStop(1),
      result,
    ])
    expect(parts.filter(({ type }) => type.startsWith('reasoning'))).toEqual([
      { type: 'reasoning-start', id: 'b1' },
      {
        type: 'reasoning-end',
        id: 'b1',
        providerMetadata: { claude: { thinkingTokens: 40 }, anthropic: { signature: 'sig' } },
      },
    ])
    expect(textIn(parts)).toBe('Hi!')
  })

  test('a sub-agent says whose it is, between the blocks of others, and is no part of the answer', () => {
    const sub = (event: object) => stream(event, 'toolu_9')
    const { parts, outcome } = read([
      init,
      assistant('m1', [{ type: 'tool_use', id: 'toolu_9', name: 'Agent', input: {} }]),
      sub({ type: 'message_start', message: { id: 'x1' } }),
      sub({ type: 'content_block_start', index: 0, content_block: text('') }),
      messageStart('m2'),
      blockStart(0, text('')),
      sub({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'sub' } }),
      blockDelta(0, { type: 'text_delta', text: 'main' }),
      sub({ type: 'content_block_stop', index: 0 }),
      assistant('x2', [{ type: 'tool_use', id: 'toolu_10', name: 'Read', input: {} }], { parent: 'toolu_9', usage }),
      toolResult('toolu_10', 'file', { parent: 'toolu_9' }),
      toolResult('toolu_9', 'done'),
      blockStop(0),
    ])
    const isOfSub = (part: object) => JSON.stringify(part).includes('"parentToolUseId":"toolu_9"')
    expect(short(parts.filter(isOfSub))).toEqual([
      'text-start b1',
      'text-delta b1 sub',
      'text-end b1',
      'tool-input-start toolu_10',
      'tool-input-end toolu_10',
      'tool-call toolu_10 {}',
      'tool-result toolu_10 "file"',
    ])
    expect(textIn(parts)).toBe('main')
    expect(outcome.text).toBe('main')
    // What sub-agents use is no part of what the result reports.
    expect(parts.filter(({ type }) => type === 'usage')).toEqual([])
  })

  test('usage parts add up to the result, each message counted once; its price and its models come with the end', () => {
    const { parts, outcome } = read([
      init,
      ...partials,
      assistant('m2', [text('a')], { usage: { input_tokens: 4, output_tokens: 1 } }),
      assistant('m2', [text('b')], { usage: { input_tokens: 4, output_tokens: 1 } }),
      { ...result, usage: { ...usage, input_tokens: 100, output_tokens: 50 } },
    ])
    const usages = parts.flatMap((part) => (part.type === 'usage' ? [part] : []))
    expect(usages.map(({ usage: { inputTokens, outputTokens }, cost }) => [inputTokens, outputTokens, cost])).toEqual([
      [15, 11, 0],
      [4, 1, 0],
      [93, 38, 0.5],
    ])
    const sum = usages.reduce<Usage | undefined>((all, each) => addUsage(all, each.usage), undefined)
    expect(sum).toEqual(outcome.usage)
    expect(sum).toEqual({
      source: 'reported',
      inputTokens: 112,
      outputTokens: 50,
      totalTokens: 162,
      reasoningTokens: 2,
      cachedInputTokens: 7,
      cacheWriteInputTokens: 5,
    })
    expect(parts.at(-1)).toMatchObject({
      usage: {
        inputTokens: { total: 112, noCache: 100, cacheRead: 7, cacheWrite: 5 },
        outputTokens: { total: 50, reasoning: 2 },
      },
      providerMetadata: {
        claude: {
          costUsd: 0.5,
          modelUsage: { 'claude-x': { costUSD: 0.5 } },
          cacheCreationInputTokens: 5,
          cacheReadInputTokens: 7,
          thinkingTokens: 2,
        },
      },
    })
  })

  test('without a result the price is unknown, whatever was used', () => {
    const { parts } = read([init, ...partials])
    expect(parts.flatMap((part) => (part.type === 'usage' ? [part.cost] : []))).toEqual([0, undefined])
  })

  test.each([
    ['result and exit 0', [result], { code: 0, signal: null }, 'completed', undefined],
    ['result, exit unknown', [result], undefined, 'completed', undefined],
    [
      'result is_error, exit 1',
      [{ ...result, is_error: true, result: 'API Error: 401' }],
      { code: 1, signal: null },
      'failed',
      'API Error: 401',
    ],
    [
      'result is_error, exit 0',
      [{ ...result, is_error: true, result: 'no' }],
      { code: 0, signal: null },
      'failed',
      'no',
    ],
    [
      'errors of the result',
      [{ ...result, subtype: 'error_during_execution', is_error: true, result: undefined, errors: ['a', 'b'] }],
      undefined,
      'failed',
      'a; b',
    ],
    [
      'no result, exit 0',
      [],
      { code: 0, signal: null },
      'interrupted',
      'The output of Claude Code ended without a result.',
    ],
    ['no result, exit 1', [], { code: 1, signal: null }, 'failed', 'Claude Code exited with code 1 without a result.'],
    ['no result, signal', [], { code: null, signal: 'SIGTERM' }, 'interrupted', 'Claude Code was ended by SIGTERM.'],
    ['no result, exit 130', [], { code: 130, signal: null }, 'interrupted', 'Claude Code was ended by SIGINT.'],
    [
      'result, exit 3',
      [result],
      { code: 3, signal: null },
      'failed',
      'Claude Code exited with code 3, although it said that it had succeeded.',
    ],
    ['result, signal', [result], { code: null, signal: 'SIGKILL' }, 'interrupted', 'Claude Code was ended by SIGKILL.'],
  ])('how it ended: %s', (_, end, exit, outcome, message) => {
    const { parts, outcome: came } = read([init, ...partials, ...end], exit === undefined ? {} : { exit })
    expect([came.outcome, came.error?.message]).toEqual([outcome, message])
    expect(parts.filter(({ type }) => type === 'error')).toEqual(
      message === undefined ? [] : [{ type: 'error', error: came.error }],
    )
    const unified = { completed: 'stop', failed: 'error', interrupted: 'other' }[outcome]
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified } })
  })

  test('one that had the time to say that it was stopped is interrupted, and what it has used counts', () => {
    const none = { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 }
    const aborted = {
      ...result,
      subtype: 'error_during_execution',
      is_error: true,
      result: undefined,
      errors: ['[diagnostic] stop_reason=null'],
      terminal_reason: 'aborted_streaming',
      usage: none,
    }
    const { outcome, parts } = read([init, ...partials, aborted], { exit: { code: 0, signal: null } })
    expect(outcome).toMatchObject({
      outcome: 'interrupted',
      error: { code: 'interrupted', message: 'Claude Code was interrupted.' },
      usage: { inputTokens: 15, outputTokens: 11 },
      cost: 0.5,
    })
    expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'other' }, usage: { inputTokens: { total: 15 } } })
    expect(parts.flatMap((part) => (part.type === 'usage' ? [part.cost] : []))).toEqual([0, 0.5])
  })

  test('the answer of a command that says nothing but its result is that', () => {
    expect(textIn(read([init, { ...result, result: 'Total cost: $0' }]).parts)).toBe('Total cost: $0')
    expect(textIn(read([init, { ...result, is_error: true }]).parts)).toBe('')
  })

  test('old versions call the price otherwise', () => {
    const { total_cost_usd: cost_usd, ...rest } = result
    expect(read([init, ...partials, { ...rest, cost_usd }]).outcome.cost).toBe(0.5)
  })

  test('a rate limit is normal, unless it rejects', () => {
    const limit = (status: string) => ({ type: 'rate_limit_event', rate_limit_info: { status }, ...session })
    expect(read([init, limit('allowed'), result]).said).not.toContain('warning')
    expect(read([init, limit('rejected'), result]).said).toContain('warning')
  })

  test('a session file of Claude Code looks alike: an error says so, and nothing of it is an answer', () => {
    const entry = {
      parentUuid: null,
      isSidechain: false,
      sessionId: 's',
      type: 'assistant',
      message: { content: [text('Hi')] },
    }
    const { parts, outcome } = read([{ type: 'summary', summary: 'x', leafUuid: 'y' }, entry, entry])
    expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'session-file' } })
    expect(outcome.error?.message).toContain('~/.claude/projects')
    expect(textIn(parts)).toBe('')
    expect(play('claude', lines(entry)).outcome.error?.code).toBe('session-file')
  })
})
