/** Whose a call is, and what an OpenAI client is shown of it. */
import { describe, expect, test } from 'vitest'
import {
  at,
  start,
  begin,
  answerEnd,
  runEnd,
  call,
  toolCall,
  inputs,
  outcome,
  handedOver,
  handOver,
  answering,
  deltas,
  callDeltas,
  last,
  reason,
  bodyOf,
  errorOf,
  encode,
  type Json,
} from '../../../test/openai-items.ts'
import type { Item } from '../../../test/build-run.ts'
import type { RecordedPart } from '../../part/entry.ts'
import { toOpenAiCallId } from '../../part/openai-call-id.ts'
import type { OpenAiOptions } from './openai-output.ts'

describe('calls of the client’s tools', () => {
  const one = (...parts: RecordedPart[]) => [...start(handOver), ...answering, ...call('main/a/1', ...parts)]

  test('index, id and name once, the arguments in fragments; a provider that streams none gives one frame', () => {
    const items = one(
      ...inputs('call_1', 'own', '{"a"', '', ':1}'),
      toolCall('call_1', 'own', '{"a":1}'),
      toolCall('call_2', 'own', '{"b":2}'),
    )
    expect(callDeltas(items)).toEqual([
      { index: 0, id: 'call_1', type: 'function', function: { name: 'own', arguments: '' } },
      { index: 0, function: { arguments: '{"a"' } },
      { index: 0, function: { arguments: ':1}' } },
      { index: 1, id: 'call_2', type: 'function', function: { name: 'own', arguments: '{"b":2}' } },
    ])
  })

  test('arguments are never empty: a call without any has {}', () => {
    const items = one(...inputs('call_1', 'own'), toolCall('call_1', 'own', ''), toolCall('call_2', 'own', ''))
    expect(callDeltas(items).map((each) => each['function'].arguments)).toEqual(['', '{}', '{}'])
  })

  test('arguments that are no JSON are the client’s to judge', () => {
    const items = one(...inputs('call_1', 'own', '{"a'), toolCall('call_1', 'own', '{"a'))
    expect(
      reason([...items, ...at('main/a/1', outcome('call_1', 'own', handedOver)), ...answerEnd('tool-calls')]),
    ).toBe('tool_calls')
  })

  test('branches that use the same ids get ids of their own', () => {
    const branch = (name: string) => [
      ...begin(`main/${name}`, 'llm', { answer: true }),
      ...call(`main/${name}/1`, ...inputs('call_0', 'own', '{}'), toolCall('call_0', 'own')),
    ]
    const settle = (name: string) => at(`main/${name}/2`, outcome('call_0', 'own', handedOver))
    const items = [...start(handOver), ...branch('a'), ...branch('b'), ...settle('b'), ...settle('a'), ...answerEnd()]
    expect(callDeltas(items).flatMap(({ id, index }) => (id === undefined ? [] : [[index, id]]))).toEqual([
      [0, 'call_0'],
      [1, toOpenAiCallId('call_0-2')],
    ])
    expect(reason(items)).toBe('tool_calls')
  })

  test('one that a provider runs itself, and one of a run that waits for its client, is not handed to anybody', () => {
    expect(callDeltas(one(toolCall('call_1', 'own', '{}', { providerExecuted: true })))).toEqual([])
    const waiting = [
      ...start(),
      ...answering,
      ...call('main/a/1', ...inputs('call_1', 'own'), toolCall('call_1', 'own')),
    ]
    const items = [...waiting, ...at('main/a/2', outcome('call_1', 'own')), ...answerEnd()]
    expect(callDeltas(items)).toEqual([])
    expect(reason(items)).toBe('stop')
  })

  test('one that was shown and not handed over is an error, when the answer would have been complete', () => {
    const items = one(toolCall('call_1', 'own'))
    const aborted = at(
      'main/a/1',
      outcome('call_1', 'own', { outcome: 'aborted', isError: true, result: 'It was aborted.' }),
    )
    const error = { code: 'tool-call-lost', message: 'The call of own must not be run: It was aborted.' }
    expect(last([...items, ...aborted, ...answerEnd()])).toEqual({
      error: { ...error, type: 'server_error', param: null },
    })
    expect(errorOf([...items, ...aborted, ...answerEnd()])).toEqual(error)
    expect(errorOf([...items, ...answerEnd('tool-calls')]).message).toContain('no outcome')
  })

  test('one whose arguments were cut off is an error', () => {
    const items = one(...inputs('call_1', 'own', '{"a'))
    expect(errorOf([...items, ...answerEnd()]).message).toBe(
      'The call of own must not be run: its arguments were cut off.',
    )
  })

  test('a step that does not answer may hand over as well: then its value is not the answer', () => {
    const items = [...start(handOver), ...begin('main/a', 'llm'), ...call('main/a/1', toolCall('call_1', 'own'))]
    const rest = [...at('main/a/2', outcome('call_1', 'own', handedOver)), ...runEnd({ output: { text: '' } })]
    const { choices } = bodyOf([...items, ...rest])
    expect(choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: null, tool_calls: [{ id: 'call_1' }] },
    })
  })
})

describe('the extension tools', () => {
  const extended: OpenAiOptions = { extensions: ['tools'] }
  const shown = (items: Item[]) => deltas(items, extended).filter((delta) => delta['role'] === undefined)

  test('a call is one whole frame before it runs, its output one frame behind it, also of steps that do not answer', () => {
    const items = [
      ...start(),
      ...begin('main/look', 'llm'),
      ...call('main/look/1', ...inputs('call_1', 'server', '{"a":1}'), toolCall('call_1', 'server', '{"a":1}')),
      ...begin('main/look/2', 'tool-call', { toolCallId: 'call_1', toolName: 'server' }),
      ...at('main/look/2', outcome('call_1', 'server', { preliminary: true, result: 'so far' })),
      ...at('main/look/2', outcome('call_1', 'server', { result: { n: 1 } })),
    ]
    expect(shown(items)).toEqual([
      {
        tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'server', arguments: '{"a":1}' } }],
      },
      { tool_outputs: [{ id: 'call_1', content: '{"n":1}' }] },
    ])
    expect(deltas(items).filter((delta) => delta['role'] === undefined)).toEqual([])
  })

  test('an id that comes again in a later message is another call', () => {
    const round = (n: number) => [
      ...call(`main/a/${n}`, toolCall('call_0', 'server', `{"n":${n}}`)),
      ...at(`main/a/${n + 1}`, outcome('call_0', 'server', { result: `r${n}` })),
    ]
    const all = shown([...start(), ...answering, ...round(1), ...round(3)])
    expect(all.map((delta) => (delta['tool_calls'] ?? delta['tool_outputs'])[0].id)).toEqual([
      'call_0',
      'call_0',
      toOpenAiCallId('call_0-2'),
      toOpenAiCallId('call_0-2'),
    ])
  })

  test('agents called by a step are shown; agents inside a tool and calls after the answer are not', () => {
    const sub = (path: string) => call(path, toolCall('call_1', 'server'))
    const items = (path: string, ...first: Item[]) => [...start(), ...first, ...sub(path)]
    expect(shown(items('main/b/child/1', ...begin('main/b', 'call-agent')))).toHaveLength(1)
    const tool = begin('main/a/2', 'tool-call', { toolCallId: 't', toolName: 'ask' })
    expect(shown(items('main/a/2/child/1', ...answering, ...tool))).toEqual([])
    expect(shown(items('after/x/1'))).toEqual([])
  })

  test('the respond of a router is on no wire, its siblings are; elsewhere it is a name like any other', () => {
    const looks = (stepType: string) => [
      ...start(),
      ...begin('main/r', stepType),
      ...call('main/r/1', toolCall('call_1', 'respond'), toolCall('call_2', 'server')),
      ...at('main/r/1', outcome('call_1', 'respond')),
      ...at('main/r/2', outcome('call_2', 'server')),
    ]
    const ids = (items: Item[]) => shown(items).map((delta) => (delta['tool_calls'] ?? delta['tool_outputs'])[0].id)
    expect(ids(looks('router'))).toEqual(['call_2', 'call_2'])
    expect(ids(looks('llm'))).toEqual(['call_1', 'call_2', 'call_1', 'call_2'])
  })
})

test('an id of another form has one of OpenAI’s, the same in frames, in the JSON and in traces', () => {
  const id = toOpenAiCallId('toolu_01A')
  const given = '{"a":1}'
  const items = [
    ...start(),
    ...answering,
    ...call('main/a/1', ...inputs('toolu_01A', 'server', given), toolCall('toolu_01A', 'server', given)),
    ...at('main/a/2', outcome('toolu_01A', 'server')),
    ...call('main/a/3'),
    ...answerEnd(),
  ]
  const options: OpenAiOptions = { extensions: ['tools', 'trace'] }
  const { message } = bodyOf(items, options)['choices'][0]
  expect([message.tool_calls[0].id, message.tool_outputs[0].id]).toEqual([id, id])
  const { frames } = encode(items, options)
  expect(
    frames.flatMap(({ choices }) => choices.flatMap((choice: Json) => choice['delta'].tool_calls ?? [])),
  ).toMatchObject([{ id }])
  expect(JSON.stringify(frames.at(-2))).toContain(`"tool_call_id":"${id}"`)
  expect(JSON.stringify([frames, bodyOf(items, options)])).not.toContain('toolu')
})
