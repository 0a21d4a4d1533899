import { describe, expect, test } from 'vitest'
import { faultsOf, lines, play, short, textIn, type PlayOptions } from '../testing/play.ts'

function read(events: (object | string)[], options?: PlayOptions) {
  const played = play('gemini', lines(...events), options)
  expect(faultsOf(played.parts)).toEqual([])
  return { ...played, said: short(played.parts) }
}

const init = { type: 'init', session_id: 's1', model: 'gemini-x', timestamp: '2026-01-01T00:00:00Z' }
const prompt = { type: 'message', role: 'user', content: 'Tell me the secret' }
const says = (content: string, more: object = { delta: true }) => ({
  type: 'message',
  role: 'assistant',
  content,
  ...more,
})
const call = { type: 'tool_use', tool_name: 'ls', tool_id: 'c1', parameters: { dir: '.' } }
const stats = {
  total_tokens: 30,
  input_tokens: 20,
  output_tokens: 10,
  cached: 5,
  input: 15,
  tool_calls: 1,
  duration_ms: 9,
}
const result = { type: 'result', status: 'success', stats }

describe('Gemini CLI', () => {
  test('texts before and after a tool, and the prompt, which is not repeated', () => {
    const {
      said,
      parts,
      outcome,
      prompt: repeated,
    } = read([
      'Loaded cached credentials.',
      init,
      prompt,
      says('Let me '),
      says('see.'),
      call,
      { type: 'tool_result', tool_id: 'c1', status: 'success', output: 'a.txt' },
      says('One file.'),
      result,
    ])
    expect(said).toEqual([
      'session-info',
      'stream-start',
      'cli-output Loaded cached credentials.',
      'text-start b1',
      'text-delta b1 Let me ',
      'text-delta b1 see.',
      'text-end b1',
      'tool-input-start c1',
      'tool-input-delta c1 {"dir":"."}',
      'tool-input-end c1',
      'tool-call c1 {"dir":"."}',
      'tool-result c1 "a.txt"',
      'text-start b2',
      'text-delta b2 One file.',
      'text-end b2',
      'usage',
      'finish',
    ])
    expect(JSON.stringify(parts)).not.toContain('secret')
    expect(repeated).toBe('Tell me the secret')
    expect(outcome).toEqual({
      outcome: 'completed',
      text: 'One file.',
      sessionId: 's1',
      model: 'gemini-x',
      usage: { source: 'reported', inputTokens: 20, cachedInputTokens: 5, outputTokens: 10, totalTokens: 30 },
    })
  })

  test('a message that is no piece is a text of its own', () => {
    const { said } = read([init, says('a'), says('b', {}), says('c'), result])
    expect(said.filter((line) => line.startsWith('text-start'))).toHaveLength(3)
  })

  test('a tool that failed; a result without its call', () => {
    const error = { type: 'FileNotFound', message: 'There is no file x.' }
    const { parts } = read([
      init,
      call,
      { type: 'tool_result', tool_id: 'c1', status: 'error', error },
      { type: 'tool_result', tool_id: 'c2', status: 'success' },
      result,
    ])
    expect(parts.filter(({ type }) => type === 'tool-result')).toEqual([
      { type: 'tool-result', toolCallId: 'c1', toolName: 'ls', result: error.message, isError: true },
      { type: 'tool-result', toolCallId: 'c2', toolName: 'unknown', result: '', isError: false },
    ])
  })

  test.each([
    ['success', [result], { code: 0, signal: null }, 'completed', undefined],
    [
      'an error that it got over',
      [{ type: 'error', severity: 'error', message: 'hm' }, result],
      undefined,
      'completed',
      undefined,
    ],
    [
      'status error',
      [{ type: 'result', status: 'error', error: { type: 'T', message: 'no' } }],
      { code: 1, signal: null },
      'failed',
      'no',
    ],
    ['an error and no result', [{ type: 'error', message: 'API key invalid' }], undefined, 'failed', 'API key invalid'],
    [
      'a warning and no result',
      [{ type: 'error', severity: 'warning', message: 'w' }],
      undefined,
      'interrupted',
      'The output of Gemini CLI ended without a result.',
    ],
    [
      'exit 42',
      [],
      { code: 42, signal: null },
      'failed',
      'Gemini CLI exited with code 42 (bad input) without a result.',
    ],
    [
      'exit 53',
      [],
      { code: 53, signal: null },
      'failed',
      'Gemini CLI exited with code 53 (turn limit) without a result.',
    ],
    ['no result', [], { code: 0, signal: null }, 'interrupted', 'The output of Gemini CLI ended without a result.'],
  ])('how it ended: %s', (_, end, exit, outcome, error) => {
    const { outcome: came, parts } = read([init, says('x'), ...end], exit === undefined ? {} : { exit })
    expect([came.outcome, came.error?.message]).toEqual([outcome, error])
    expect(textIn(parts)).toBe('x')
  })

  test('lines that are no events are output', () => {
    const strange = { type: 'message', role: 'assistant', content: 5 }
    const { said } = read([init, strange, 'YOLO mode is on.', { type: 'thought' }, result])
    expect(said.filter((line) => line.startsWith('cli-output'))).toHaveLength(3)
  })

  test('thinking is in the total of the stats only: it counts as output', () => {
    const { outcome } = read([init, says('Hi'), { ...result, stats: { ...stats, total_tokens: 37 } }])
    expect(outcome.usage).toMatchObject({ inputTokens: 20, outputTokens: 17, reasoningTokens: 7, totalTokens: 37 })
  })

  test('the session names "auto": the stats say which models were used, each with its tokens', () => {
    const used = (input: number, output: number) => ({
      total_tokens: input + output,
      input_tokens: input,
      output_tokens: output,
      cached: 0,
    })
    const models = { 'gemini-flash': used(5, 1), 'gemini-pro': used(15, 9), 'gemini-idle': used(0, 0) }
    const { parts, outcome } = read([
      { ...init, model: 'auto' },
      says('Hi'),
      { ...result, stats: { ...stats, models } },
    ])
    const usages = parts.flatMap((part) => (part.type === 'usage' ? [part] : []))
    expect(usages.map(({ model, usage }) => [model, usage.inputTokens, usage.outputTokens])).toEqual([
      ['gemini-flash', 5, 1],
      ['gemini-pro', 15, 9],
      // What the models lack of the total: the cached tokens.
      ['gemini-pro', 0, 0],
    ])
    expect(outcome).toMatchObject({
      model: 'gemini-pro',
      usage: { inputTokens: 20, outputTokens: 10, cachedInputTokens: 5 },
    })
  })
})
