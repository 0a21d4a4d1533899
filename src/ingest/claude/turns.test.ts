/** Claude Code over several turns, over sessions that it resumes, and over connections that break. */
import { describe, expect, test } from 'vitest'
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
import { createClaudeParser } from '../cli-parser.ts'
import { faultsOf, lines, play, short, textIn, type PlayOptions } from '../testing/play.ts'

function read(events: object[], options?: PlayOptions) {
  const played = play('claude', lines(...events), options)
  expect(faultsOf(played.parts)).toEqual([])
  const usages = played.parts.flatMap((part) => (part.type === 'usage' ? [part] : []))
  const warnings = played.parts.flatMap((part) => (part.type === 'warning' ? [part.message] : []))
  return { ...played, said: short(played.parts), usages, warnings }
}

const text = (content: string) => ({ type: 'text', text: content })
const { usage: _, ...bare } = result
const turn = (n: number, cost: number) => ({
  ...bare,
  result: `Answer ${n}.`,
  total_cost_usd: cost,
  usage: { input_tokens: n, cache_creation_input_tokens: 100, cache_read_input_tokens: 10, output_tokens: n * 2 },
})

describe('Claude Code turns', () => {
  test('each result is that of its turn: tokens add up, the price is that of the whole, the answer is the last', () => {
    for (const events of [
      // Texts that stand in the results only, and such as came before them.
      [init, turn(1, 0.25), turn(2, 0.375)],
      [
        init,
        assistant('a', [text('Answer 1.')], { usage }),
        turn(1, 0.25),
        init,
        assistant('b', [text('Answer 2.')]),
        turn(2, 0.375),
      ],
    ]) {
      const { parts, outcome, usages } = read(events)
      expect(textIn(parts)).toBe('Answer 1.Answer 2.')
      expect(outcome).toMatchObject({ outcome: 'completed', text: 'Answer 2.', cost: 0.375 })
      expect(outcome.usage).toMatchObject({ inputTokens: 223, outputTokens: 6, cacheWriteInputTokens: 200 })
      expect(usages.reduce((sum, part) => sum + part.usage.inputTokens!, 0)).toBe(223)
      expect(usages.reduce((sum, part) => sum + part.cost!, 0)).toBe(0.375)
      expect(parts.at(-1)).toMatchObject({ usage: { inputTokens: { total: 223 } } })
    }
  })

  test('what is said behind a result is another turn: it is not the end, and breaking off is not success', () => {
    const more = [blockStart(0, text('')), blockDelta(0, { type: 'text_delta', text: 'More.' })]
    const first = [init, assistant('a', [text('One.')]), { ...result, result: 'One.' }]
    const done = { type: 'system', subtype: 'task_notification', task_id: 't', status: 'completed', ...session }
    const parser = createClaudeParser()
    parser.feed(lines(...first))
    expect(parser.isDone).toBe(true)
    parser.feed(lines(done, ...more))
    expect(parser.isDone).toBe(false)
    parser.feed(lines({ ...result, result: 'More.' }))
    expect(parser.isDone).toBe(true)
    expect(read([...first, done, ...more, { ...result, result: 'More.' }]).outcome).toMatchObject({
      outcome: 'completed',
      text: 'More.',
    })
    expect(read([...first, done, ...more]).outcome.outcome).toBe('interrupted')
  })

  test('as long as something goes on in the background, a result is not the end', () => {
    const system = (subtype: string, more: object) => ({ type: 'system', subtype, ...more, ...session })
    for (const [begin, end] of [
      [system('task_started', { task_id: 't' }), system('task_notification', { task_id: 't', status: 'completed' })],
      [system('task_started', { task_id: 't' }), system('task_updated', { task_id: 't', patch: { status: 'killed' } })],
      [
        system('background_tasks_changed', { tasks: [{ task_id: 't' }] }),
        system('background_tasks_changed', { tasks: [] }),
      ],
    ]) {
      const parser = createClaudeParser()
      parser.feed(lines(init, begin!, assistant('a', [text('Hi!')]), result))
      expect(parser.isDone).toBe(false)
      parser.feed(lines(end!))
      expect(parser.isDone).toBe(true)
      parser.end()
      expect(parser.outcome().outcome).toBe('completed')
    }
  })

  test('zeros are a report: nothing is left to estimate, and nothing to pay', () => {
    const none = { input_tokens: 0, output_tokens: 0 }
    const failed = { ...bare, is_error: true, total_cost_usd: 0, usage: none }
    const { usages, outcome } = read([init, assistant('a', [text('No key.')], { usage: none }), failed])
    expect(usages).toEqual([
      {
        type: 'usage',
        model: 'claude-x',
        usage: { source: 'reported', inputTokens: 0, outputTokens: 0, totalTokens: 0 },
        cost: 0,
      },
    ])
    expect(outcome).toMatchObject({ cost: 0, usage: { inputTokens: 0, outputTokens: 0 } })
  })

  test('a resumed session names what it has cost in all: only what this run has used counts, over all its turns', () => {
    const since = (costUSD: number, inputTokens: number) => ({
      model_usage_since_last_result: { 'claude-x': { inputTokens, costUSD, contextWindow: 1000 } },
    })
    const { outcome, usages, parts } = read([
      init,
      assistant('a', [text('Hi!')]),
      { ...turn(1, 5.25), ...since(0.25, 3) },
      { ...turn(2, 5.375), ...since(0.125, 4) },
    ])
    expect(outcome.cost).toBe(0.375)
    expect(usages.reduce((sum, part) => sum + part.cost!, 0)).toBe(0.375)
    expect(parts.at(-1)).toMatchObject({
      providerMetadata: {
        claude: { costUsd: 0.375, modelUsage: { 'claude-x': { inputTokens: 7, costUSD: 0.375, contextWindow: 1000 } } },
      },
    })
    // Stopped in the middle of a message, a price is all that it names.
    const stopped = {
      ...turn(0, 0.5),
      is_error: true,
      terminal_reason: 'aborted_streaming',
      model_usage_since_last_result: {},
    }
    expect(read([init, stopped]).outcome.cost).toBe(0.5)
  })

  const toolStart = blockStart(2, { type: 'tool_use', id: 'cut', name: 'Bash', input: {} })
  const half = blockDelta(2, { type: 'input_json_delta', partial_json: '{"comm' })
  const abandoned = { ...stream({ type: 'message_stop' }), abandoned_blocks: { from_block_index: 2 } }

  test.each([
    ['the message says so', [half, abandoned], true],
    [
      'the message says so, and its JSON happens to be whole',
      [blockDelta(2, { type: 'input_json_delta', partial_json: '{}' }), abandoned],
      true,
    ],
    ['the message ends', [half, stream({ type: 'message_stop' })], false],
    ['the next message begins', [half], false],
    ['nothing of its arguments has come', [], false],
  ])('a tool call that a broken connection cuts is no call: %s', (_case, events, isTold) => {
    const again = assistant('m2', [{ type: 'tool_use', id: 'whole', name: 'Bash', input: { command: 'ls' } }])
    const { said, warnings, prompt } = read([
      init,
      messageStart('m1'),
      toolStart,
      ...events,
      { type: 'user', message: { content: [text('Your response was cut off.')] }, isSynthetic: true, ...session },
      messageStart('m2'),
      again,
      toolResult('whole', 'a.txt'),
      result,
    ])
    expect(said.filter((line) => /^tool-(call|result)/u.test(line))).toEqual([
      'tool-call whole {"command":"ls"}',
      'tool-result whole "a.txt"',
    ])
    expect(said).toContain('tool-input-end cut')
    expect(warnings).toEqual(
      isTold ? [expect.stringContaining('in the middle of a tool call, which was not made')] : [],
    )
    expect(prompt).toBe(undefined)
  })

  test('arguments that broke off are a call all the same once it has a result', () => {
    const { said } = read([
      init,
      messageStart('m1'),
      toolStart,
      half,
      messageStart('m2'),
      toolResult('cut', 'bad input'),
      result,
    ])
    expect(said.filter((line) => /^tool-(call|result)/u.test(line))).toEqual([
      'tool-call cut {"comm',
      'tool-result cut "bad input"',
    ])
  })

  test('a request that it makes again is a warning with its reason, which is the error if nothing comes of it', () => {
    const retry = (attempt: number) => ({
      type: 'system',
      subtype: 'api_retry',
      attempt,
      max_retries: 10,
      retry_delay_ms: 551,
      error_status: 401,
      error: 'authentication_failed',
      ...session,
    })
    const { warnings, outcome, said } = read([init, retry(1), retry(2)], { exit: { code: 0, signal: null } })
    expect(warnings).toEqual([
      'Claude Code got no answer from its model: authentication_failed (HTTP 401). It tries again in 0.6 s (attempt 1 of 10).',
      expect.stringContaining('(attempt 2 of 10)'),
    ])
    expect(outcome).toMatchObject({
      outcome: 'failed',
      error: { message: 'Claude Code failed: authentication_failed (HTTP 401).' },
    })
    expect(said.filter((line) => line.startsWith('cli-output'))).toEqual([])
    expect(read([init, retry(1), assistant('a', [text('Hi!')])]).outcome.outcome).toBe('interrupted')
    expect(read([init, { type: 'system', subtype: 'api_retry' }]).warnings).toEqual([
      expect.stringContaining('the request failed'),
    ])
  })

  test('what says only that it is at work is not in the log', () => {
    const noise = [
      { type: 'system', subtype: 'status', status: 'requesting', ...session },
      { type: 'system', subtype: 'thinking_tokens', estimated_tokens: 3, ...session },
    ]
    const { said } = read([init, ...noise, messageStart('m1'), blockStart(0, text('')), ...noise, blockStop(0), result])
    expect(said.filter((line) => line.startsWith('cli-output'))).toEqual([])
  })
})
