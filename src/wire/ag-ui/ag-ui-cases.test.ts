/** What random runs do not reach: ids that repeat, what ends with open items, options, and what only some runs have. */
import { describe, expect, test } from 'vitest'
import { showAgUi } from '../../../test/ag-ui-client.ts'
import { agUiRuns } from '../../../test/ag-ui-judge.ts'
import { buildRun, startPart, type Item } from '../../../test/build-run.ts'
import type { RecordedPart } from '../../part/entry.ts'
import { noUsage, type Usage } from '../../part/usage.ts'
import type { WireContext } from '../wire.ts'
import type { AgUiEvent, AgUiOptions } from './ag-ui-event.ts'
import { toolResults } from './ag-ui-answers.ts'
import { agUiObjectsWire, agUiWire } from './ag-ui.ts'
import { fromAgUiMessages } from './from-ag-ui-messages.ts'

const at = (step: string, ...parts: RecordedPart[]): Item[] => parts.map((part) => ({ step, part }))
const answering = { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } satisfies RecordedPart
const modelCall = (attempt = 1): RecordedPart => ({ type: 'step-start', stepType: 'model-call', attempt })
const finished: RecordedPart = { type: 'step-finish', duration: 1 }
const call = (toolCallId: string, input = '{}'): RecordedPart => ({
  type: 'tool-call',
  toolCallId,
  toolName: 't',
  input,
})
const result = (toolCallId: string, value: unknown): RecordedPart => {
  return { type: 'tool-result', toolCallId, toolName: 't', result: value as never }
}
const usage = (inputTokens: number): Usage => ({ inputTokens, source: 'reported' })
const answered: Item[] = at('', { type: 'answer-end', finishReason: 'stop', usage: noUsage })
const ended = (outcome: 'failed' | 'aborted'): Item[] =>
  at('', { type: 'run-end', outcome, usage: noUsage, error: { code: 'why', message: `It ${outcome}.` } })
const text = (id: string, delta = id): RecordedPart[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta },
  { type: 'text-end', id },
]
const start = { ...startPart, labels: { runId: 'client-1' } } as RecordedPart

interface Asked extends Partial<AgUiOptions>, WireContext {
  /** Entries that the client has. */
  after?: number
  start?: RecordedPart
}

function events(items: Item[], { resumedAt, history, after = 0, start: first = start, ...options }: Asked = {}) {
  const encoder = agUiObjectsWire.createEncoder({ resumedAt, history } as WireContext, options)
  const entries = buildRun([...at('', first), ...items])
  for (const entry of entries.slice(0, after)) encoder.skip(entry)
  return entries.slice(after).flatMap((entry) => encoder.encode(entry))
}
const types = (items: Item[], asked?: Asked) => events(items, asked).map(({ type }) => type)
const only = <T extends AgUiEvent['type']>(list: AgUiEvent[], type: T) =>
  list.filter((event): event is Extract<AgUiEvent, { type: T }> => event.type === type)
const bodyOf = (list: AgUiEvent[]) => list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')

const again: Item[] = [
  ...at('main/a', answering),
  ...at('main/a/1', modelCall(), { type: 'tool-input-start', id: 'c', toolName: 't' }),
  ...at('main/a/1', { type: 'tool-input-delta', id: 'c', delta: '{"n":1}' }, { type: 'tool-input-end', id: 'c' }),
  ...at('main/a/1', call('c', '{"n":1}'), finished),
  ...at('main/a/2', { type: 'step-start', stepType: 'tool-call', attempt: 1, toolCallId: 'c', toolName: 't' }),
  ...at('main/a/2', result('c', 'one'), finished),
  ...at('main/a/3', modelCall(), call('c', '{"n":2}'), finished),
  ...at('main/a/4', { type: 'step-start', stepType: 'client-tool', attempt: 1, toolCallId: 'c', toolName: 't' }),
  ...at('main/a/4', {
    type: 'request',
    requestId: 'q',
    kind: 'tool',
    toolCallId: 'c',
    toolName: 't',
    input: {},
    deadline: 0,
  }),
  ...at('', { type: 'suspend', requests: ['q'] }),
]

describe('AG-UI wire: cases', () => {
  test.each([false, true])('a provider numbers calls from 1: clients keep them apart (old: %s)', async (old) => {
    const messages = [
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 't', input: {} }] },
    ]
    const first = { ...startPart, input: { messages } } as RecordedPart
    const list = events(again, { old, start: first })
    expect(only(list, 'TOOL_CALL_START').map(({ toolCallId }) => toolCallId)).toEqual(['c~2', 'c~3'])
    const pending = old ? undefined : ['c~3']
    expect(only(list, 'RUN_FINISHED')[0]!.outcome).toEqual({
      type: 'success',
      ...(pending && { pendingToolCallIds: pending }),
    })
    agUiRuns(list, { isWhole: true })
    const shown = await showAgUi(bodyOf(list), old)
    const calls = shown.messages.flatMap((message) => ('toolCalls' in message ? (message.toolCalls ?? []) : []))
    expect(calls.map(({ id, function: { arguments: args } }) => [id, args])).toEqual([
      ['c', '{}'],
      ['c~2', '{"n":1}'],
      ['c~3', '{"n":2}'],
    ])
    expect(shown.messages.find(({ role }) => role === 'tool')).toMatchObject({ toolCallId: 'c~2', content: 'one' })
  })

  test('the result of an earlier call with the same id answers nothing', () => {
    const ask = (id: string) => ({ role: 'assistant', toolCalls: [{ id, function: { name: 't', arguments: '{}' } }] })
    const tell = (toolCallId: string) => ({ role: 'tool', toolCallId, content: toolCallId })
    const messages = [{ role: 'user', content: 'Hi' }, ask('c'), tell('c'), ask('c~2')]
    expect(toolResults(messages)).toEqual([])
    const answer = { kind: 'tool', output: 'c~2' }
    expect(toolResults([...messages, tell('c~2')])).toEqual([{ toolCallId: 'c', answer }])
    const calls = fromAgUiMessages([...messages, tell('c~2')]).flatMap(({ role, content }) => {
      return role === 'tool'
        ? content.map(({ toolCallId, output }) => [toolCallId, 'value' in output && output.value])
        : []
    })
    expect(calls).toEqual([
      ['c', 'c'],
      ['c', 'c~2'],
    ])
  })

  const going: Item[] = [
    ...at('main/a/4', {
      type: 'response',
      requestId: 'q',
      outcome: 'answered',
      answer: { kind: 'tool', output: 'red' },
    }),
    ...at('', { type: 'resume', protocol: 'ag-ui', labels: { runId: 'client-2' }, input: { state: { n: 1 } } }),
    ...at('main/a/4', result('c', 'red'), finished),
    ...at('main/a/5', modelCall(), ...text('t'), finished),
    ...answered,
  ]

  test('a request that continues a run has an AG-UI run of its own, which begins there', () => {
    const resumedAt = again.length + 3
    const list = events([...again, ...going], { resumedAt, after: resumedAt - 1 })
    expect(list.map(({ type }) => type)).toEqual([
      'RUN_STARTED',
      'STATE_SNAPSHOT',
      'STEP_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'STEP_FINISHED',
      'RUN_FINISHED',
    ])
    expect(list[0]).toMatchObject({
      threadId: 'thread-1',
      runId: 'client-2',
      metadata: { millrace: { runId: 'run-1' } },
    })
    expect(list.at(-1)).toMatchObject({ runId: 'client-2', result: 't', outcome: { type: 'success' } })
    const whole = agUiRuns(events([...again, ...going], { resumedAt }), { isWhole: true })
    expect(whole.map((run) => only(run, 'RUN_STARTED')[0]!.runId)).toEqual(['client-1', 'client-2'])
  })

  test('where the stream stays open, it is one AG-UI run with one result of the client’s tool', () => {
    const list = events([...again, ...going], { live: true })
    expect(agUiRuns(list, { isWhole: true })).toHaveLength(1)
    const results = only(list, 'TOOL_CALL_RESULT').map(({ toolCallId, content }) => [toolCallId, content])
    expect(results).toEqual([
      ['c', 'one'],
      ['c~2', 'red'],
    ])
  })

  test('a client’s tool that nobody answered in time has a result, because the client has none', () => {
    const late: Item[] = [
      ...at('main/a/4', { type: 'response', requestId: 'q', outcome: 'closed', reason: 'deadline' }),
      ...at('', { type: 'resume', protocol: 'ag-ui' }),
      ...at('main/a/4', {
        ...(result('c', 'too late') as object),
        isError: true,
        outcome: 'unavailable',
      } as RecordedPart),
    ]
    const list = events([...again, ...late], { resumedAt: again.length + 3, after: again.length + 2 })
    expect(list[0]).toMatchObject({ type: 'RUN_STARTED', runId: 'run-1' })
    expect(list[1]).toMatchObject({
      toolCallId: 'c~2',
      content: 'too late',
      metadata: { isError: true, outcome: 'unavailable' },
    })
  })

  const approval: RecordedPart = {
    type: 'request',
    requestId: 'ok',
    kind: 'approval',
    toolCallId: 'd',
    toolName: 'rm',
    input: { path: 'x' },
    deadline: 1_705_670_896_150,
  }

  test('an approval precedes the client’s own abilities; a question has its own words; a call before the answer is sent first', () => {
    const question: RecordedPart = {
      type: 'request',
      requestId: 'ask',
      kind: 'input',
      reason: 'which',
      message: 'Which?',
      schema: { type: 'string' },
      deadline: 0,
    }
    const items = [...again.slice(0, -1), ...at('main/r/1', approval), ...at('main/q', question)]
    for (const live of [false, true]) {
      const list = events([...items, ...at('', { type: 'suspend', requests: ['q', 'ok', 'ask'] })], { live })
      agUiRuns(list, { isWhole: true })
      expect(only(list, 'RUN_FINISHED')).toMatchObject([
        {
          outcome: {
            type: 'interrupt',
            interrupts: [
              { id: 'ok', reason: 'tool_call', toolCallId: 'd', expiresAt: '2024-01-19T13:28:16.150Z' },
              { id: 'ask', reason: 'which', message: 'Which?', responseSchema: { type: 'string' } },
            ],
          },
        },
      ])
      expect(only(list, 'TOOL_CALL_ARGS').at(-1)).toMatchObject({ toolCallId: 'd', delta: '{"path":"x"}' })
    }
  })

  const cutOff: Item[] = [
    ...at('main/a', answering),
    ...at('main/a/1', modelCall(), { type: 'text-start', id: 't' }, { type: 'reasoning-start', id: 'r' }),
    ...at('main/a/1', { type: 'tool-input-start', id: 'c', toolName: 't' }),
    ...at('main/a/1', { type: 'tool-input-start', id: 'd', toolName: 't' }),
    ...at('main/a/1', { type: 'tool-input-delta', id: 'd', delta: '{"a' }),
  ]

  test.each<[string, Item[], Asked, object]>([
    ['stopped', ended('aborted'), {}, { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } }],
    ['stopped, old', ended('aborted'), { old: true }, { type: 'RUN_ERROR', code: 'cancelled', message: 'It aborted.' }],
    ['failed', ended('failed'), {}, { type: 'RUN_ERROR', code: 'why', message: 'It failed.' }],
  ])('%s: everything is closed, then one end; arguments that were cut off are said to be', (_, items, asked, last) => {
    const list = events([...cutOff, ...items], asked)
    agUiRuns(list, { isWhole: true })
    expect(list.at(-1)).toMatchObject(last)
    const content = 'The arguments of this tool call were cut off.'
    expect(only(list, 'TOOL_CALL_RESULT').map((event) => [event.toolCallId, event.content])).toEqual([
      ['c', content],
      ['d', content],
    ])
    expect(only(list, 'TOOL_CALL_ARGS').map(({ delta }) => delta)).toEqual(['{"a', '{}'])
  })

  test('a failure that the log does not have closes everything, too, also before the run', () => {
    const encoder = agUiObjectsWire.createEncoder()
    const list = buildRun([...at('', start), ...cutOff]).flatMap((entry) => encoder.encode(entry))
    agUiRuns([...list, ...encoder.fail({ code: 'store', message: 'Broken.', retryAfter: 2, detail: 'INTERNALS' })])
    const nothing = agUiObjectsWire.createEncoder().fail({ code: 'store', message: 'Broken.', retryAfter: 2 })
    expect(nothing).toEqual([{ type: 'RUN_ERROR', message: 'Broken. Try again in 2 seconds.', code: 'store' }])
  })

  test('calls of a model call belong to one message: its first text, before or after them', () => {
    const before = [
      ...at('main/a', answering),
      ...at('main/a/1', modelCall(), ...text('x'), call('c'), ...text('y'), call('d')),
    ]
    expect(only(events(before), 'TOOL_CALL_START').map(({ parentMessageId: id }) => id)).toEqual(['run-1:1', 'run-1:1'])
    expect(only(events(before), 'TEXT_MESSAGE_START').map(({ messageId }) => messageId)).toEqual(['run-1:1', 'run-1:2'])
    const behind = [...at('main/a', answering), ...at('main/a/1', modelCall(), call('c'), ...text('x'), call('d'))]
    expect(only(events(behind), 'TOOL_CALL_START').map(({ parentMessageId: id }) => id)).toEqual(['run-1:1', 'run-1:1'])
    expect(only(events(behind), 'TEXT_MESSAGE_START').map(({ messageId }) => messageId)).toEqual(['run-1:1'])
  })

  test('arguments sent at once give one ARGS event, and empty arguments give {}', () => {
    const start = (id: string): RecordedPart => ({ type: 'tool-input-start', id, toolName: 't' })
    const blank: RecordedPart = { type: 'tool-input-delta', id: 'd', delta: ' ' }
    const parts = [call('a', '{"b":1}'), call('b', ' '), start('c'), call('c', ''), start('d'), blank, call('d', ' ')]
    const list = events([...at('main/a', answering), ...at('main/a/1', modelCall(), ...parts)])
    expect(only(list, 'TOOL_CALL_ARGS').map(({ toolCallId, delta }) => `${toolCallId}${delta}`)).toEqual([
      'a{"b":1}',
      'b{}',
      'c{}',
      'd ',
      'd{}',
    ])
  })

  test('usage for each model, in a step’s metadata and at the end; a part of a run has its own', () => {
    const spent = (model: string, n: number): RecordedPart => ({ type: 'usage', model, usage: usage(n) })
    const items = [
      ...at('main/a', answering, spent('openai:gpt', 1), spent('local', 2), spent('openai:gpt', 3)),
      ...at('main/a', { ...(finished as object), usage: usage(6), finishReason: 'stop' } as RecordedPart),
    ]
    const list = events([...items, ...answered])
    expect(only(list, 'STEP_FINISHED')[0]!.metadata).toEqual({ usage: usage(6), finishReason: 'stop' })
    const sums = [
      { provider: 'openai', model: 'gpt', inputTokens: 4 },
      { model: 'local', inputTokens: 2 },
    ]
    expect(only(list, 'RUN_FINISHED')[0]!.usage).toEqual(sums)
    expect(only(events([...items, ...ended('failed')]), 'RUN_ERROR')[0]!.usage).toEqual(sums)
    const more = [...items, ...at('', { type: 'suspend', requests: [] }, { type: 'resume', protocol: 'ag-ui' })]
    const parts = events([...more, ...at('main', spent('local', 5)), ...answered], { resumedAt: more.length + 1 })
    expect(only(parts, 'RUN_FINISHED').map((event) => event.usage)).toEqual([
      sums,
      [{ model: 'local', inputTokens: 5 }],
    ])
  })

  test('a step restarted after a crash is closed first; sent text cannot be withdrawn', () => {
    const reset: Item[] = at('main/a/1', { type: 'step-reset', attempt: 1 })
    const hidden = [
      ...at('main/a', answering),
      ...at('main/a/1', modelCall()),
      ...reset,
      ...at('main/a/1', modelCall(2)),
    ]
    expect(types(hidden).slice(2)).toEqual(['STEP_STARTED', 'STEP_STARTED', 'STEP_FINISHED', 'STEP_STARTED'])
    const shown = [...at('main/a', answering), ...at('main/a/1', modelCall(), ...text('x')), ...reset]
    expect(events(shown).at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'interrupted' })
  })

  test('steps of a tool are the tool’s, unless they answer', () => {
    const inner = (answer: boolean) => [
      ...at('main/a', answering),
      ...at('main/a/1', modelCall(), call('c')),
      ...at('main/a/2', { type: 'step-start', stepType: 'tool-call', attempt: 1, toolCallId: 'c', toolName: 't' }),
      ...at('main/a/2/x', { ...answering, ...(answer ? {} : { answer: undefined }) } as RecordedPart),
      ...at('main/a/2/x/1', modelCall(), ...text('inner')),
    ]
    const names = (items: Item[]) => only(events(items), 'STEP_STARTED').map(({ stepName }) => stepName)
    expect(names(inner(false))).toEqual(['a', 'a/1'])
    expect(names(inner(true))).toEqual(['a', 'a/1', 'a/2/x', 'a/2/x/1'])
    expect(types(inner(false))).not.toContain('TEXT_MESSAGE_START')
    expect(types(inner(true))).toContain('TEXT_MESSAGE_START')
  })

  test('the output of a run in which no step answers', () => {
    const done = (output: unknown): Item[] => at('', { type: 'run-end', outcome: 'completed', usage: noUsage, output })
    const said = events(done('Hi'))
    expect(only(said, 'TEXT_MESSAGE_CONTENT')).toMatchObject([{ messageId: 'run-1:1', delta: 'Hi' }])
    expect(said.at(-1)).toMatchObject({ result: 'Hi', outcome: { type: 'success' } })
    expect(types(done({ n: 1 }))).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED'])
    expect(events(done({ n: 1 })).at(-1)).toMatchObject({ result: { n: 1 } })
    expect(events(done(undefined)).at(-1)).not.toHaveProperty('result')
    // One that answered, and was cut off before the end of its answer, has said what there is to say.
    const cut = events([
      ...at('main/a', answering),
      ...at('main/a/1', modelCall(), ...text('t'), finished),
      ...done('Hi'),
    ])
    expect(only(cut, 'TEXT_MESSAGE_CONTENT')).toMatchObject([{ delta: 't' }])
    expect(cut.at(-1)).toMatchObject({ result: 't' })
  })

  test('structured output comes whole, with the time at which it was', () => {
    const items = [
      ...at('main/a', { ...answering, object: true }),
      ...at('main/a/1', modelCall(), ...text('t', '{"n":1}'), finished),
    ]
    const list = events([...items, ...answered])
    agUiRuns(list, { isWhole: true })
    expect(list.slice(4).map(({ type }) => type)).toEqual([
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'STEP_FINISHED',
      'STEP_FINISHED',
      'RUN_FINISHED',
    ])
    expect(list.at(-1)).toMatchObject({ result: '{"n":1}' })
  })

  test('the input has the conversation and the state, after the server’s own messages of the thread', () => {
    const first = {
      ...startPart,
      input: { messages: [{ role: 'user', content: 'Now' }], state: { a: 1 } },
    } as RecordedPart
    const history = [{ id: 'm', role: 'user' as const, content: 'Before' }]
    const own = [{ id: 'own', role: 'user' as const, content: 'Mine' }]
    const list = events([], { start: first, history })
    expect(only(list, 'MESSAGES_SNAPSHOT')[0]!.messages.map(({ content }) => content)).toEqual(['Before', 'Now'])
    expect(only(list, 'STATE_SNAPSHOT')).toMatchObject([{ snapshot: { a: 1 } }])
    expect(only(events([], { messages: own }), 'MESSAGES_SNAPSHOT')[0]!.messages).toEqual(own)
    expect(types([], { start: { ...startPart, input: { state: null } } as RecordedPart })).not.toContain(
      'STATE_SNAPSHOT',
    )
    // A log may have an input that no route would take.
    expect(
      types([], { start: { ...startPart, input: { messages: [null, 1, { role: 'assistant' }] } } as RecordedPart }),
    ).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT'])
  })

  test('parts without an AG-UI event are dropped', () => {
    const prompt: RecordedPart = { type: 'prompt', stage: 's', model: 'm', system: 'Be brief.', messages: [] }
    const items = [
      ...at('main/a', answering, { type: 'data', name: 'n', id: 'i', data: null, transient: true }),
      ...at('main/a/1', modelCall(), prompt, { type: 'cli-output', stream: 'stderr', raw: 'line' }),
      ...at('main/b', { type: 'cli-output', stream: 'stdout', raw: 'HIDDEN' }),
      ...at('after/x', { type: 'data', name: 'late', data: 1 }),
    ]
    expect(events(items).slice(3)).toEqual([
      { type: 'CUSTOM', timestamp: expect.any(Number), name: 'n', value: null, metadata: { id: 'i', transient: true } },
      { type: 'STEP_STARTED', timestamp: expect.any(Number), stepName: 'a/1' },
      { type: 'RAW', timestamp: expect.any(Number), event: { stream: 'stderr', raw: 'line' }, source: 'cli' },
    ])
    expect(only(events(items, { traces: true }), 'CUSTOM')[1]).toMatchObject({
      name: 'prompt',
      value: { stage: 's', model: 'm', messages: [{ role: 'system', content: 'Be brief.' }] },
    })
  })

  test('an image that a tool returns is a part, and for older clients a word', () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
    const items = [
      ...at('main/a', answering),
      ...at('main/a/1', modelCall(), call('c'), result('c', [{ type: 'text', text: 'A' }, image])),
    ]
    const content = (asked?: Asked) => only(events(items, asked), 'TOOL_CALL_RESULT')[0]!.content
    expect(content()).toEqual([
      { type: 'text', text: 'A' },
      { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } },
    ])
    expect(content({ old: true })).toBe('A\n[image/png]')
  })

  test('over SSE a delta is the event that transports with messages send', () => {
    const items = [
      ...at('main/a', answering),
      ...at('main/a/1', modelCall(), ...text('t', '"😀"\n'), finished),
      ...answered,
    ]
    const encoder = agUiWire.createEncoder()
    const body = buildRun([...at('', start), ...items]).map((entry) => encoder.encode(entry))
    expect(body.join('')).toBe(bodyOf(events(items)))
  })

  test('time does not go back in a stream, whatever a recording says', () => {
    const encoder = agUiObjectsWire.createEncoder({}, {})
    const entries = buildRun([
      ...at('', start),
      ...at('main/a', answering, ...text('t')),
      ...at('main/a', finished),
      ...answered,
    ])
    const times = entries.flatMap((entry, i) =>
      encoder.encode({ ...entry, timestamp: 1000 - i }).map(({ timestamp }) => timestamp),
    )
    expect(new Set(times)).toEqual(new Set([1000]))
  })

  test('what came while no run was open has the time of the next run’s start', () => {
    const encoder = agUiObjectsWire.createEncoder({ roles: ['user'], resumedAt: 9 }, {})
    const requestId = 'r-1'
    const entries = buildRun([
      ...at('', start),
      ...at('main/a', answering),
      ...at('main/a/1', modelCall(), call('c'), finished),
      ...at('main/a/2', { type: 'step-start', stepType: 'approval', attempt: 1, toolCallId: 'c', toolName: 't' }),
      ...at('main/a/2', {
        type: 'request',
        requestId,
        kind: 'approval',
        toolCallId: 'c',
        toolName: 't',
        input: '{}',
        roles: ['operator'],
        deadline: 0,
      }),
      ...at('', { type: 'suspend', requests: [requestId] }),
      ...at('main/a/2', {
        type: 'response',
        requestId,
        outcome: 'answered',
        answer: { kind: 'approval', approved: true },
        protocol: 'ui',
      }),
      ...at('', { type: 'resume', protocol: 'ui' }),
      ...at('main/a/2', result('c', 1), finished),
      ...at('main/a', finished),
      ...answered,
    ])
    const sent = entries.flatMap((entry) => encoder.encode(entry)).map(({ timestamp }) => timestamp)
    expect(sent).toEqual(sent.toSorted((a = 0, b = 0) => a - b))
  })
})
