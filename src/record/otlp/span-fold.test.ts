import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryNestedRun, arbitraryRun } from '../../../test/arbitrary-run.ts'
import { decodeTraces, type ReceivedSpan } from '../../../test/support/collector.ts'
import { endFaults } from '../../../test/support/engine.ts'
import type { Entry } from '../../part/entry.ts'
import { traceparentAt } from '../../fold/trace-place.ts'
import { recordedEntries } from '../../part/recording.ts'
import { exportTraces } from './export-traces.ts'
import { toOtlp } from './otlp-json.ts'
import { spansOf, type SpanOptions } from './span-fold.ts'

const secret = 'What the user said'
const usage = {
  inputTokens: 10,
  outputTokens: 5,
  totalTokens: 15,
  cachedInputTokens: 4,
  reasoningTokens: 2,
  source: 'reported',
}
const start = {
  type: 'run-start',
  runId: 'run_1',
  agent: 'a',
  pipeline: secret,
  threadId: 't1',
  protocol: 'api',
  input: { q: secret },
}

function entries(...parts: object[]): Entry[] {
  return parts.map((part, i) => ({ seq: i + 1, timestamp: 1000 + i, step: '', ...part }) as unknown as Entry)
}

function decoded(list: Entry[], options?: SpanOptions): ReceivedSpan[] {
  return decodeTraces(JSON.parse(JSON.stringify(toOtlp(spansOf(list, options), { serviceName: 's' }))))
}

const call = (step: string, attempt = 1) => ({
  type: 'step-start',
  step,
  stepType: 'model-call',
  kind: 'model-call',
  attempt,
})
const whole = entries(
  start,
  { type: 'step-start', step: 'main/answer', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true },
  call('main/answer/1'),
  {
    type: 'prompt',
    step: 'main/answer/1',
    stage: 'answer',
    model: 'openai:gpt-5',
    system: secret,
    messages: [{ role: 'user', content: secret }],
  },
  { type: 'response-metadata', step: 'main/answer/1', id: 'resp_1', modelId: 'gpt-5-2026' },
  { type: 'text-start', step: 'main/answer/1', id: 'x' },
  { type: 'text-delta', step: 'main/answer/1', id: 'x', delta: secret },
  { type: 'text-end', step: 'main/answer/1', id: 'x' },
  { type: 'tool-call', step: 'main/answer/1', toolCallId: 'c1', toolName: 'look', input: `{"q":"${secret}"}` },
  { type: 'usage', step: 'main/answer/1', model: 'openai:gpt-5', usage, cost: 1 },
  { type: 'step-finish', step: 'main/answer/1', duration: 9, finishReason: 'tool-calls', usage },
  {
    type: 'step-start',
    step: 'main/answer/2',
    stepType: 'tool-call',
    kind: 'tool-call',
    attempt: 1,
    toolCallId: 'c1',
    toolName: 'look',
  },
  { type: 'tool-result', step: 'main/answer/2', toolCallId: 'c1', toolName: 'look', result: secret, isError: true },
  { type: 'step-finish', step: 'main/answer/2', duration: 2 },
  { type: 'step-finish', step: 'main/answer', duration: 12, error: { code: 'step-failed', message: secret } },
  { type: 'run-end', outcome: 'failed', usage, cost: 1, error: { code: 'step-failed', message: secret } },
)

describe('spansOf', () => {
  test('agents, model calls and tool calls have the names and attributes of the conventions', () => {
    const spans = decoded(whole)
    const named = (name: string) => spans.find((span) => span.name === name)!
    const [root, llm, chat, tool] = ['invoke_agent a', 'llm answer', 'chat gpt-5', 'execute_tool look'].map(named)
    expect(spans).toHaveLength(4)
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    expect([root!.parentSpanId, llm!.parentSpanId, chat!.parentSpanId, tool!.parentSpanId]).toEqual([
      undefined,
      root!.spanId,
      llm!.spanId,
      llm!.spanId,
    ])
    expect([root!.kind, chat!.kind, tool!.kind]).toEqual([1, 3, 1])
    expect([chat!.start, chat!.end]).toEqual([1_002_000_000n, 1_010_000_000n])
    expect(chat!.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-5',
      'gen_ai.response.model': 'gpt-5-2026',
      'gen_ai.response.id': 'resp_1',
      'gen_ai.response.finish_reasons': ['tool-calls'],
      'gen_ai.response.time_to_first_chunk': 0.004,
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.cache_read.input_tokens': 4,
      'gen_ai.usage.reasoning.output_tokens': 2,
      'gen_ai.usage.cost': 1,
      'gen_ai.conversation.id': 't1',
    })
    expect(tool!.attributes).toMatchObject({
      'gen_ai.tool.name': 'look',
      'gen_ai.tool.call.id': 'c1',
      'error.type': 'tool_error',
    })
    expect(root!.attributes).toMatchObject({
      'gen_ai.agent.name': 'a',
      'error.type': 'step-failed',
      'millrace.outcome': 'failed',
    })
    expect(root!.status.code).toBe(2)
  })

  test('what was said is in them only when it is asked for', () => {
    expect(JSON.stringify(spansOf(whole))).not.toContain(secret)
    const [chat, tool] = ['chat gpt-5', 'execute_tool look'].map((name) =>
      decoded(whole, { content: true }).find((span) => span.name === name)!,
    )
    const messages = (key: string) => JSON.parse(String(chat!.attributes[key])) as unknown
    expect(messages('gen_ai.input.messages')).toEqual([{ role: 'user', parts: [{ type: 'text', content: secret }] }])
    expect(messages('gen_ai.output.messages')).toMatchObject([
      { role: 'assistant', parts: [{ content: secret }, { type: 'tool_call', name: 'look' }] },
    ])
    expect(tool!.attributes).toMatchObject({
      'gen_ai.tool.call.arguments': `{"q":"${secret}"}`,
      'gen_ai.tool.call.result': secret,
    })
  })

  test('a run is in the trace of its caller, under the ids that it handed on; not if the caller does not record it', () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const given = (flags: string) => [
      { ...whole[0]!, traceparent: traceparent.replace(/01$/u, flags) } as Entry,
      ...whole.slice(1),
    ]
    const spans = decoded(given('01'))
    expect(spans.find(({ name }) => name === 'invoke_agent a')).toMatchObject({
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      parentSpanId: '00f067aa0ba902b7',
    })
    const { spanId } = spans.find(({ name }) => name === 'chat gpt-5')!
    expect(traceparentAt({ runId: 'run_1', traceparent }, 'main/answer/1', new Map())).toBe(
      `00-4bf92f3577b34da6a3ce929d0e0e4736-${spanId}-01`,
    )
    expect(spansOf(given('00'))).toEqual([])
    // The same each time, and another for another run.
    expect(spansOf(whole)).toEqual(spansOf(whole))
    const other = [{ ...whole[0]!, runId: 'run_2' } as Entry, ...whole.slice(1)]
    const ids = [...decoded(whole), ...decoded(other)].map((span) => span.spanId)
    expect(new Set(ids).size).toBe(8)
  })

  test.each([
    [{ user: 'ada' }, 'ada'],
    [{ user: { id: 'u1', name: 'Ada' } }, 'u1'],
    [{ safety_identifier: 's1' }, 's1'],
    [{ metadata: { user_id: 'm1' } }, 'm1'],
    [{ metadata: { userId: 'm2' } }, 'm2'],
    [{ user: 'ada', metadata: { user_id: 'm1' } }, 'ada'],
    [{ user: { name: 'Ada' } }, undefined],
    [{ user: '' }, undefined],
    [{ user: 7, metadata: 'x' }, undefined],
    [{ user: null, metadata: null }, undefined],
    [{ user: 'u'.repeat(201) }, undefined],
    [{ user: 'key [redacted]' }, undefined],
    [{}, undefined],
  ])('every span has the thread as session.id, and the user that %j names', (input, user) => {
    const spans = decoded([{ ...whole[0]!, input } as unknown as Entry, ...whole.slice(1)])
    expect(spans).toHaveLength(4)
    for (const { attributes: a } of spans) expect([a['session.id'], a['user.id']]).toEqual(['t1', user])
  })

  test('what a crash has superseded is marked and closed; the new attempt and the steps in it have ids of their own', () => {
    const list = entries(
      start,
      { type: 'step-start', step: 'main/x', stepType: 'call-agent', kind: 'container', attempt: 1, agent: 'helper' },
      call('main/x/1'),
      { type: 'step-reset', step: 'main/x', attempt: 1 },
      { type: 'step-start', step: 'main/x', stepType: 'call-agent', kind: 'container', attempt: 2, agent: 'helper' },
      call('main/x/1'),
      { type: 'suspend', requests: ['r'] },
      { type: 'resume', protocol: 'api' },
    )
    const open = decoded(list)
    expect(open.map(({ name, attributes: a }) => [name, a['millrace.superseded'], a['millrace.incomplete']])).toEqual([
      ['chat', true, undefined],
      ['invoke_agent helper', true, undefined],
      ['invoke_agent a', undefined, true],
      ['invoke_agent helper', undefined, true],
      ['chat', undefined, true],
    ])
    expect(new Set(open.map(({ spanId }) => spanId)).size).toBe(5)
    const resets = new Map([['main/x', 1]])
    expect(traceparentAt({ runId: 'run_1' }, 'main/x/1', resets)).toContain(open[4]!.spanId)
    // A run that has ended leaves none open, whatever its log has left open.
    const end = {
      seq: 9,
      timestamp: 5000,
      step: '',
      type: 'run-end',
      outcome: 'interrupted',
      usage,
    } as unknown as Entry
    const ended = decoded([...list, end])
    expect(ended.filter(({ attributes: a }) => a['millrace.incomplete'] === true)).toEqual([])
    expect(ended.find(({ name }) => name === 'invoke_agent a')).toMatchObject({
      end: 5_000_000_000n,
      events: ['suspend', 'resume'],
    })
  })

  test('an agent that a model calls as a tool is invoke_agent, and what it does is below it', () => {
    const source = readFileSync(new URL('../../wire/golden/agent-tools.ndjson', import.meta.url), 'utf8').trimEnd()
    const spans = decoded(source.split('\n').map((line) => JSON.parse(line) as Entry))
    const of = (name: string) => spans.find((span) => span.name === name)!
    const above = (span: (typeof spans)[number]): string[] => {
      const parent = spans.find(({ spanId }) => spanId === span.parentSpanId)
      return parent === undefined ? [span.name] : [...above(parent), span.name]
    }
    expect(above(of('invoke_agent publish'))).toEqual([
      'invoke_agent desk',
      'llm desk',
      'invoke_agent writer',
      'llm write',
      'invoke_agent publish',
    ])
    expect(of('invoke_agent writer').attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'writer',
      'gen_ai.tool.name': 'write_article',
      'gen_ai.tool.call.id': 'call_2',
      'gen_ai.conversation.id': 'thread_01',
    })
    expect(of('invoke_agent checker').attributes['error.type']).toBe('tool_error')
    // The usage of a model call is in its own span alone, and that of the run in the run's.
    const used = spans.filter((span) => span.attributes['gen_ai.usage.input_tokens'] !== undefined)
    expect(used.map(({ name }) => name.split(' ')[0]).filter((name) => name !== 'chat')).toEqual(['invoke_agent'])
  })

  test('a fork has the spans of what it has done itself, from when it was forked; its source has the others', () => {
    const at = (list: Entry[], from: number, ms: number) =>
      list.map((entry) => (entry.seq > from ? { ...entry, timestamp: entry.timestamp + ms } : entry))
    const forkedFrom = { runId: 'source', seq: 11, at: 60_000 }
    // Between the model call and the tool call.
    const forked = decoded(at([{ ...whole[0]!, forkedFrom } as Entry, ...whole.slice(1)], 11, 60_000))
    const ms = (value: bigint) => Number(value / 1_000_000n)
    expect(forked.map(({ name, start: from, end }) => [name, ms(from), ms(end)])).toEqual([
      ['execute_tool look', 61_011, 61_013],
      ['llm answer', 60_000, 61_014],
      ['invoke_agent a', 60_000, 61_015],
    ])
    // In the middle of the model call, which begins again.
    const reset = { seq: 9, timestamp: 61_000, step: 'main/answer/1', type: 'step-reset', attempt: 1 }
    const again = at([{ ...whole[0]!, forkedFrom: { ...forkedFrom, seq: 8 } } as Entry, ...whole.slice(1, 8)], 8, 0)
    const list = [...again, reset, { ...whole[2]!, seq: 10, timestamp: 61_001 }] as Entry[]
    expect(decoded(list).map(({ name }) => name)).toEqual(['invoke_agent a', 'llm answer', 'chat'])
  })

  test('tools that a CLI agent or a model server runs itself are spans; pieces of usage are added up', () => {
    const step = 'main/code'
    const cost = (usd: number) => ({ type: 'usage', step, model: 'claude-x', usage, cost: usd })
    const [code, tool] = ['invoke_agent code', 'execute_tool Bash'].map((name) =>
      decoded(
        entries(
          start,
          { type: 'step-start', step, stepType: 'cli-agent', kind: 'task', attempt: 1 },
          { type: 'tool-call', step, toolCallId: 'b', toolName: 'Bash', input: '{}', providerExecuted: true },
          cost(0.5),
          { type: 'tool-result', step, toolCallId: 'b', toolName: 'Bash', result: 'ok' },
          cost(0.25),
          { type: 'step-finish', step, duration: 1 },
          { type: 'run-end', outcome: 'completed', usage },
        ),
      ).find((span) => span.name === name)!,
    )
    expect(code!.attributes).toMatchObject({ 'gen_ai.usage.input_tokens': 20, 'gen_ai.usage.cost': 0.75 })
    expect(tool).toMatchObject({ parentSpanId: code!.spanId, start: 1_002_000_000n, end: 1_004_000_000n })
  })

  test('an export of one run has its spans, also if the caller does not record them', async () => {
    const unsampled = { ...whole[0]!, traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00' } as Entry
    const recording = recordedEntries('run_1', [unsampled, ...whole.slice(1)])
    let text = ''
    for await (const piece of exportTraces(recording, 99, false)) text += piece
    expect(decodeTraces(JSON.parse(text)).map(({ name }) => name)).toContain('invoke_agent a')
    expect(text).not.toContain(secret)
  })

  /** All spans of a run that has ended have ended, and each but the first has one of them as its parent. */
  function expectWhole(list: readonly Entry[]): void {
    expect(endFaults(list)).toEqual([])
    const spans = decoded([...list])
    const ids = new Set(spans.map(({ spanId }) => spanId))
    expect(ids.size).toBe(spans.length)
    expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined || !ids.has(parentSpanId))).toHaveLength(1)
    for (const { start: began, end } of spans) expect(end >= began).toBe(true)
  }

  const folder = new URL('../../wire/golden/', import.meta.url)
  const goldens = readdirSync(folder).filter((file) => file.endsWith('.ndjson'))

  test.each(goldens)('%s: the run has ended with its usage, and so has every span', (file) => {
    const lines = readFileSync(new URL(file, folder), 'utf8').trimEnd().split('\n')
    expectWhole(lines.map((line) => JSON.parse(line) as Entry))
  })

  test('however a run ends, all of its spans have ended, and it says where its usage is from', () => {
    fc.assert(
      fc.property(fc.oneof(arbitraryRun, arbitraryNestedRun), (list) => {
        if (list.at(-1)?.type === 'run-end') expectWhole(list)
      }),
      { numRuns: 60 },
    )
  })
})
