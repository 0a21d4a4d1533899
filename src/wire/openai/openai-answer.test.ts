/** How an answer begins and ends for an OpenAI client, its traces, and the older Completions. */
import { describe, expect, test } from 'vitest'
import {
  at,
  start,
  begin,
  end,
  answerEnd,
  runEnd,
  say,
  call,
  toolCall,
  inputs,
  outcome,
  handedOver,
  handOver,
  answering,
  encode,
  last,
  reason,
  bodyOf,
  errorOf,
} from '../../../test/openai-items.ts'
import type { RecordedPart } from '../../part/entry.ts'
import type { Usage } from '../../part/usage.ts'
import { openaiJsonWire } from './openai-completion.ts'
import type { OpenAiOptions } from './openai-output.ts'

describe('the head', () => {
  test('the role is sent at once; id, created and model are the run’s, in every frame', () => {
    const first = encode(start())
    expect(first).toMatchObject({
      state: 'open',
      frames: [{ choices: [{ delta: { role: 'assistant', content: '' } }] }],
    })
    const { frames } = encode([...start(), ...answering, ...say('main/a/1', 'Hi'), ...answerEnd()])
    for (const frame of frames) {
      expect(frame).toMatchObject({ id: 'chatcmpl-run-1', created: 1_705_584_896, model: 'assistant' })
    }
    expect(frames).toHaveLength(3)
  })

  test('the model is the requested one, else the label, else the agent', () => {
    const labels = { model: 'bernard-v1' }
    expect(last(start({ labels }))['model']).toBe('bernard-v1')
    expect(last(start({ labels }), { model: 'mine' })['model']).toBe('mine')
    expect(last(start())['model']).toBe('assistant')
  })
})

describe('the end', () => {
  const said = [...start(handOver), ...answering, ...say('main/a/1', 'Words')]
  const client = [...start(handOver), ...answering, ...call('main/a/1', toolCall('c1', 'own'))]
  const given = [...client, ...at('main/a/2', outcome('c1', 'own', handedOver))]

  test.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content-filter', 'content_filter'],
    ['interrupted', 'length'],
    ['other', 'length'],
    ['a-new-one', 'length'],
    ['tool-calls', 'length'],
  ])('%s without a call for the client is %s', (finishReason, expected) => {
    expect(reason([...said, ...answerEnd(finishReason)])).toBe(expected)
  })

  test('with a call for the client it is tool_calls, also where the provider said stop; not when it was cut off', () => {
    expect(reason([...given, ...answerEnd('tool-calls')])).toBe('tool_calls')
    expect(reason([...given, ...answerEnd('stop')])).toBe('tool_calls')
    expect(reason([...given, ...answerEnd('length')])).toBe('length')
  })

  test('a model that says that its answer is an error is believed', () => {
    expect(errorOf([...said, ...answerEnd('error')]).code).toBe('model-failed')
  })

  test('of several answers the one that was cut off decides', () => {
    const branch = (name: string, finishReason: string) => [
      ...begin(`main/${name}`, 'llm', { answer: true }),
      ...say(`main/${name}/1`, name),
      ...end(`main/${name}`, { finishReason }),
    ]
    const both = (a: string, b: string) => reason([...start(), ...branch('a', a), ...branch('b', b), ...answerEnd(a)])
    expect(both('stop', 'stop')).toBe('stop')
    expect(both('stop', 'length')).toBe('length')
    expect(both('stop', 'tool-calls')).toBe('length')
    expect(both('content-filter', 'stop')).toBe('content_filter')
  })

  test('a branch that failed in the middle of its words makes the answer incomplete; one that had said nothing does not', () => {
    const failed = end('main/b', { error: { code: 'x', message: 'x' } })
    const b = begin('main/b', 'llm', { answer: true })
    expect(reason([...said, ...b, ...say('main/b/1', 'Half'), ...failed, ...answerEnd()])).toBe('length')
    expect(reason([...said, ...b, ...failed, ...answerEnd()])).toBe('stop')
  })

  test.each(['failed', 'aborted', 'timed-out', 'budget-exceeded', 'interrupted'] as const)(
    '%s is an error, without a finish frame and without hidden details',
    (ended) => {
      const error = { code: ended, message: 'Why.', detail: 'secret words', status: 400 }
      const items = [...said, ...runEnd({ outcome: ended, error })]
      const { frames, state } = encode(items, { includeUsage: true })
      expect(state).toBe('complete')
      expect(frames.at(-1)).toEqual({ error: { message: 'Why.', type: 'server_error', code: ended, param: null } })
      expect(JSON.stringify(frames)).not.toMatch(/secret|"finish_reason":"/u)
      expect(last([...said, ...runEnd({ outcome: ended })])['error'].message).toContain(ended)
    },
  )

  test('a run that waits for an answer is an error, unless it went on since', () => {
    const suspend = at('', { type: 'suspend', requests: [] })
    expect(last([...said, ...suspend])['error'].code).toBe('suspended')
    expect(encode([...said, ...suspend], {}, 99).state).toBe('open')
  })

  test.each([
    ['plain', 'plain'],
    [{ a: 1 }, '{"a":1}'],
    [undefined, ''],
  ])('a run in which no step answers sends its output: %j', (output, content) => {
    expect(bodyOf([...start(), ...runEnd({ output })])['choices']).toMatchObject([
      { finish_reason: 'stop', message: { content } },
    ])
  })

  test('one in which a step answered does not send it, also when nothing told the end of the answer', () => {
    expect(bodyOf([...said, ...runEnd({ output: 'more' })])['choices'][0].message.content).toBe('Words')
  })

  test('the usage is the run’s; counts that nobody gave are 0, details that nobody gave are left out', () => {
    const usage: Usage = {
      inputTokens: 10,
      outputTokens: 4,
      cachedInputTokens: 3,
      reasoningTokens: 2,
      source: 'reported',
    }
    expect(last([...said, ...answerEnd('stop', usage)], { includeUsage: true })).toMatchObject({
      choices: [],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 4,
        total_tokens: 14,
        prompt_tokens_details: { cached_tokens: 3 },
        completion_tokens_details: { reasoning_tokens: 2 },
      },
    })
    expect(bodyOf([...said, ...answerEnd('stop', { source: 'estimated' })])['usage']).toEqual({
      prompt_tokens: 0,
      completion_tokens: 0,
      total_tokens: 0,
    })
  })

  test('text sent before a crash cannot be withdrawn; hidden text can', () => {
    const reset = at('main/a/1', { type: 'step-reset', attempt: 1 })
    const ran = [...start(), ...answering, ...call('main/a/1', toolCall('c1', 'server')), ...reset]
    expect(encode(ran).state).toBe('open')
    expect(last(ran, { extensions: ['tools'] })['error'].code).toBe('interrupted')
    expect(last([...said, ...reset])['error'].code).toBe('interrupted')
    const id = 'r'
    const thought = at('main/a/1', { type: 'reasoning-start', id }, { type: 'reasoning-delta', id, delta: 'Hm' })
    const thinking = [...start(), ...answering, ...thought, ...reset]
    expect(last(thinking)['error'].code).toBe('interrupted')
    expect(encode(thinking, { object: 'text_completion' }).state).toBe('open')
  })
})

describe('the extension trace', () => {
  const prompt = (more: object): RecordedPart => {
    return { type: 'prompt', stage: 'response', model: 'test:m', messages: [], ...more } as RecordedPart
  }
  const user = { role: 'user', content: 'Hi' }

  test('every prompt is told whole: system, history and the earlier turns of its loop, outputs cut as elsewhere', () => {
    const items = [
      ...start(),
      ...answering,
      ...begin('main/a/1', 'model-call'),
      ...at('main/a/1', prompt({ system: 'Be brief.', messages: [user] })),
      ...say('main/a/1', 'I look.'),
      ...at('main/a/1', toolCall('call_1', 'server', '{"a":1}')),
      ...end('main/a/1'),
      ...begin('main/a/2', 'tool-call', { toolCallId: 'call_1', toolName: 'server' }),
      ...at('main/a/2', outcome('call_1', 'server', { result: '123456' })),
      ...end('main/a/2'),
      ...begin('main/a/3', 'model-call'),
      ...at('main/a/3', prompt({ system: 'Be brief.' })),
    ]
    const openai: OpenAiOptions = { extensions: ['trace'], traceKey: 'mine', includeUsage: true, toolOutputMaxChars: 5 }
    const traces = encode(items, openai).frames.filter(({ mine }) => mine !== undefined)
    const told = [{ role: 'system', content: 'Be brief.' }, user]
    expect(traces).toMatchObject([
      { choices: [], usage: null, mine: { type: 'llm_prompt', stage: 'response', model: 'test:m', messages: told } },
      { mine: { messages: { length: 4 } } },
    ])
    expect(traces[1]!['mine'].messages.slice(2)).toEqual([
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'server', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '12345… [truncated: 5 of 6 characters]' },
    ])
    expect(encode(items).frames).toHaveLength(2)
  })

  test('a second attempt is told as the first was; the one JSON holds them as a list', () => {
    const one = [...begin('main/a/1', 'model-call'), ...at('main/a/1', prompt({ messages: [user] }))]
    const reset = at('main/a/1', { type: 'step-reset', attempt: 1 })
    const items = [...start(), ...answering, ...one, ...reset, ...one, ...answerEnd()]
    const { bernard } = bodyOf(items, { extensions: ['trace'] })
    expect(bernard).toEqual(
      [1, 2].map(() => ({ type: 'llm_prompt', stage: 'response', model: 'test:m', messages: [user] })),
    )
    expect(bodyOf(items)).not.toHaveProperty('bernard')
  })
})

describe('text completions', () => {
  const openai: OpenAiOptions = { object: 'text_completion', includeUsage: true, extensions: ['tools'] }
  const items = [
    ...start(handOver),
    ...answering,
    ...at('main/a/1', { type: 'reasoning-start', id: 'r' }, { type: 'reasoning-delta', id: 'r', delta: 'Hm' }),
    ...say('main/a/1', 'Words'),
    ...call('main/a/2', toolCall('call_1', 'server')),
  ]

  test('choices with text, no role, no thoughts, no calls', () => {
    const { frames } = encode([...items, ...answerEnd()], openai)
    expect(frames).toMatchObject([
      { id: 'cmpl-run-1', object: 'text_completion', choices: [{ text: 'Words', finish_reason: null }], usage: null },
      { choices: [{ text: '', index: 0, logprobs: null, finish_reason: 'stop' }], usage: null },
      { choices: [], usage: { total_tokens: 0 } },
    ])
    expect(bodyOf([...items, ...answerEnd()], openai)).toMatchObject({
      id: 'cmpl-run-1',
      object: 'text_completion',
      choices: [{ text: 'Words', index: 0, logprobs: null, finish_reason: 'stop' }],
    })
  })

  test('a call of the client’s tool cannot be said, and nothing that says less looks complete', () => {
    const asks = [...items, ...call('main/a/3', ...inputs('d', 'own'), toolCall('d', 'own'))]
    const given = [...asks, ...at('main/a/4', outcome('d', 'own', handedOver)), ...answerEnd('tool-calls')]
    expect(last(given, openai)['error'].message).toContain('/v1/chat/completions')
    expect(encode(given, openai).frames.every((frame) => 'error' in frame || 'text' in frame['choices'][0])).toBe(true)
  })
})

test('the one JSON: a failure that the log does not hold ends it once', () => {
  const encoder = openaiJsonWire.createEncoder()
  const error = { code: 'store-failed', message: 'The store broke.' }
  expect(encoder.fail(error)).toEqual([{ error }])
  expect(encoder.fail({ code: 'later', message: 'Later.' })).toEqual([])
})
