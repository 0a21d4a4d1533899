import { describe, expect, test } from 'vitest'
import type { ProviderMetadata } from '../../part/model-part.ts'
import { threadUsageOf } from './codex-dialect.ts'
import { faultsOf, lines, play, short, textIn, type PlayOptions } from '../testing/play.ts'

function read(events: (object | string)[], options?: PlayOptions) {
  const played = play('codex', lines(...events), options)
  expect(faultsOf(played.parts)).toEqual([])
  return { ...played, said: short(played.parts) }
}

const thread = { type: 'thread.started', thread_id: 't1' }
const turn = { type: 'turn.started' }
const started = (item: object) => ({ type: 'item.started', item })
const updated = (item: object) => ({ type: 'item.updated', item })
const completed = (item: object) => ({ type: 'item.completed', item })
const message = (id: string, text: string) => ({ id, type: 'agent_message', text })
const command = (id: string, more: object = {}) => {
  return {
    id,
    type: 'command_execution',
    command: 'ls',
    aggregated_output: '',
    exit_code: null,
    status: 'in_progress',
    ...more,
  }
}
const usage = {
  input_tokens: 100,
  cached_input_tokens: 40,
  cache_write_input_tokens: 10,
  output_tokens: 20,
  reasoning_output_tokens: 5,
}
const done = { type: 'turn.completed', usage }

describe('Codex', () => {
  test('a turn: reasoning, commands that complete in any order, the answer, its usage', () => {
    const { said, parts, outcome } = read([
      thread,
      turn,
      completed({ id: 'r', type: 'reasoning', text: '**Thinking**' }),
      started(command('a')),
      started(command('b')),
      completed(command('b', { aggregated_output: 'x\n', exit_code: 0, status: 'completed' })),
      completed(command('a', { exit_code: 2, status: 'failed' })),
      completed(message('m', 'Done.')),
      done,
    ])
    expect(said).toEqual([
      'session-info',
      'stream-start',
      'reasoning-start b1',
      'reasoning-delta b1 **Thinking**',
      'reasoning-end b1',
      'tool-input-start a',
      'tool-input-delta a {"command":"ls"}',
      'tool-input-end a',
      'tool-call a {"command":"ls"}',
      'tool-input-start b',
      'tool-input-delta b {"command":"ls"}',
      'tool-input-end b',
      'tool-call b {"command":"ls"}',
      'tool-result b {"output":"x\\n","exitCode":0,"status":"completed"}',
      'tool-result a {"output":"","exitCode":2,"status":"failed"}',
      'text-start b2',
      'text-delta b2 Done.',
      'text-end b2',
      'usage',
      'finish',
    ])
    expect(parts.flatMap((part) => (part.type === 'tool-result' ? [part.isError] : []))).toEqual([false, true])
    expect(outcome).toEqual({
      outcome: 'completed',
      text: 'Done.',
      sessionId: 't1',
      usage: {
        source: 'reported',
        inputTokens: 100,
        cachedInputTokens: 40,
        cacheWriteInputTokens: 10,
        outputTokens: 20,
        reasoningTokens: 5,
        totalTokens: 120,
      },
    })
  })

  test('a text that grows is said as it grows, and once', () => {
    const { said } = read([
      thread,
      turn,
      started(message('m', '')),
      updated(message('m', 'Hel')),
      updated(message('m', 'Hello')),
      completed(message('m', 'Hello')),
      { type: 'item.plan.delta', item_id: 'p', delta: 'Step' },
      { type: 'item.plan.delta', item_id: 'p', delta: ' 1' },
      completed({ id: 'p', type: 'plan', text: 'Step 1.' }),
      done,
    ])
    expect(said.filter((line) => line.startsWith('text'))).toEqual([
      'text-start b1',
      'text-delta b1 Hel',
      'text-delta b1 lo',
      'text-end b1',
      'text-start b2',
      'text-delta b2 Step',
      'text-delta b2  1',
      'text-delta b2 .',
      'text-end b2',
    ])
  })

  test.each([
    [
      'a file change that is only reported',
      { type: 'file_change', changes: [{ path: 'a', kind: 'add' }], status: 'completed' },
      'file_change',
      false,
    ],
    [
      'a kind that is an object',
      { type: 'file_change', changes: [{ path: 'a', kind: { type: 'update', move_path: 'b' } }], status: 'failed' },
      'file_change',
      true,
    ],
    [
      'a call of an MCP server',
      {
        type: 'mcp_tool_call',
        server: 's',
        tool: 't',
        arguments: { q: 1 },
        result: { content: [] },
        error: null,
        status: 'completed',
      },
      'mcp__s__t',
      false,
    ],
    [
      'one that failed, without arguments',
      {
        type: 'mcp_tool_call',
        server: 's',
        tool: 't',
        arguments: null,
        result: null,
        error: { message: 'timeout' },
        status: 'failed',
      },
      'mcp__s__t',
      true,
    ],
    ['a search', { type: 'web_search', query: 'q' }, 'web_search', false],
    ['a command that was declined', command('x', { status: 'declined' }), 'command_execution', true],
    [
      'another agent',
      { type: 'collab_tool_call', tool: 'wait', status: 'completed', agents_states: {} },
      'collab_tool_call',
      false,
    ],
  ])('%s is a call with its result', (_, item, toolName, isError) => {
    const { parts } = read([thread, turn, completed({ ...item, id: 'x' }), done])
    expect(parts).toContainEqual(
      expect.objectContaining({ type: 'tool-call', toolCallId: 'x', toolName, providerExecuted: true }),
    )
    const results = parts.filter(({ type }) => type === 'tool-result')
    expect(results).toEqual([expect.objectContaining({ toolCallId: 'x', toolName, isError })])
  })

  test('old versions have other words for the same', () => {
    const old = (item_type: string, more: object) => completed({ id: item_type, item_type, ...more })
    const { parts, outcome } = read([
      { type: 'session.created', session_id: 'old' },
      old('command_execution', { command: 'ls', aggregated_output: 'x', exit_code: 0, status: 'completed' }),
      old('assistant_message', { text: 'Hi!' }),
      done,
    ])
    expect([outcome.sessionId, textIn(parts)]).toEqual(['old', 'Hi!'])
    expect(parts.some(({ type }) => type === 'tool-result')).toBe(true)
  })

  test('a to-do list is data, an error on the way a warning, an unknown item output', () => {
    const unknown = completed({ id: 'u', type: 'telepathy' })
    const { parts, outcome } = read([
      thread,
      turn,
      updated({ id: 'l', type: 'todo_list', items: [{ text: 'a', completed: true }] }),
      completed({ id: 'e', type: 'error', message: 'truncated' }),
      { type: 'error', message: 'Reconnecting... 1/5' },
      unknown,
      done,
    ])
    expect(parts.slice(2, 6)).toEqual([
      { type: 'data', name: 'todo-list', id: 'l', data: { items: [{ text: 'a', completed: true }] } },
      { type: 'warning', code: 'codex-error', message: 'truncated' },
      { type: 'warning', code: 'codex-error', message: 'Reconnecting... 1/5' },
      { type: 'cli-output', stream: 'stdout', raw: JSON.stringify(unknown) },
    ])
    expect(outcome.outcome).toBe('completed')
  })

  test.each([
    ['turn.completed and exit 0', [done], { code: 0, signal: null }, 'completed', undefined],
    ['turn.failed', [{ type: 'turn.failed', error: { message: 'no' } }], { code: 1, signal: null }, 'failed', 'no'],
    [
      'turn.failed after a turn that completed',
      [done, turn, { type: 'turn.failed', error: { message: 'no' } }],
      undefined,
      'failed',
      'no',
    ],
    ['an error and no end', [{ type: 'error', message: 'gone' }], undefined, 'failed', 'gone'],
    ['no end', [], { code: 0, signal: null }, 'interrupted', 'The output of Codex ended without a result.'],
    ['a signal', [], { code: null, signal: 'SIGINT' }, 'interrupted', 'Codex was ended by SIGINT.'],
    ['a turn that goes on', [done, turn], undefined, 'interrupted', 'The output of Codex ended without a result.'],
  ])('how it ended: %s', (_, end, exit, outcome, error) => {
    const { outcome: came } = read([thread, turn, ...end], exit === undefined ? {} : { exit })
    expect([came.outcome, came.error?.message]).toEqual([outcome, error])
  })

  test('the usage of a second turn includes that of the first: the parts add up to it', () => {
    const { parts, outcome } = read([
      thread,
      turn,
      done,
      turn,
      { type: 'turn.completed', usage: { ...usage, input_tokens: 150 } },
    ])
    const inputs = parts.flatMap((part) => (part.type === 'usage' ? [part.usage.inputTokens] : []))
    expect(inputs).toEqual([100, 50])
    expect(outcome.usage?.inputTokens).toBe(150)
  })

  test('a session file of Codex is refused', () => {
    const { outcome, parts } = read([
      { timestamp: 'x', type: 'session_meta', payload: { id: 's' } },
      completed(message('m', 'Hi')),
    ])
    expect(outcome.error?.code).toBe('session-file')
    expect(textIn(parts)).toBe('')
  })

  test('Ctrl-C ends it with code 1 and without a word: in a turn that said no error, that is interrupted', () => {
    const one = { exit: { code: 1, signal: null } }
    expect(read([thread, turn, started(command('a'))], one).outcome).toMatchObject({
      outcome: 'interrupted',
      error: { code: 'interrupted', message: 'Codex was interrupted in the middle of its turn.' },
    })
    const error = { type: 'error', message: 'stream disconnected' }
    expect(read([thread, turn, error], one).outcome).toMatchObject({
      outcome: 'failed',
      error: { message: 'stream disconnected' },
    })
    expect(read([thread], one).outcome.error?.code).toBe('cli-exit')
    expect(read([thread, turn], { exit: { code: 101, signal: null } }).outcome.error?.code).toBe('cli-exit')
  })

  test('a thread that is resumed counts its earlier runs: what is known of them is taken off', () => {
    const usedBefore = (id: string) => {
      return id === 't1'
        ? { source: 'reported' as const, inputTokens: 60, cachedInputTokens: 40, outputTokens: 8, reasoningTokens: 5 }
        : undefined
    }
    const { outcome, parts } = read([thread, turn, completed(message('m', 'Done.')), done], { usedBefore })
    expect(outcome.usage).toMatchObject({
      inputTokens: 40,
      cachedInputTokens: 0,
      cacheWriteInputTokens: 10,
      outputTokens: 12,
      reasoningTokens: 0,
    })
    expect(threadUsageOf((parts.at(-1) as { providerMetadata?: ProviderMetadata }).providerMetadata)).toMatchObject({
      inputTokens: 100,
      outputTokens: 20,
    })
  })
})
