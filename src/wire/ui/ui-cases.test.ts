/** What random runs do not reach: several sources at once, cut-off inputs, flags, what only version 7 is sent. */
import { describe, expect, test } from 'vitest'
import { buildRun, startPart, type Item } from '../../../test/build-run.ts'
import type { RecordedPart } from '../../part/entry.ts'
import { noUsage } from '../../part/usage.ts'
import { v6Fault } from '../../../test/ui-v6-chunks.ts'
import { uiWire } from './ui.ts'
import type { UiOptions } from './ui-chunk.ts'

type Chunk = { type: string; [field: string]: unknown }

const at = (step: string, ...parts: RecordedPart[]): Item[] => parts.map((part) => ({ step, part }))
const answering = { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } satisfies RecordedPart
const modelCall = (attempt = 1): RecordedPart => ({ type: 'step-start', stepType: 'model-call', attempt })
const finished: RecordedPart = { type: 'step-finish', duration: 1 }
const failed = (outcome: 'failed' | 'aborted'): Item[] =>
  at('', { type: 'run-end', outcome, usage: noUsage, error: { code: outcome, message: `It ${outcome}.` } })

function chunks(items: Item[], options?: Partial<UiOptions>): Chunk[] {
  const encoder = uiWire.createEncoder({}, options)
  const body = buildRun([...at('', startPart), ...items]).map((entry) => encoder.encode(entry))
  const frames = body.join('').split('\n\n').slice(1, -1)
  return frames.filter((frame) => !frame.includes('[DONE]')).map((frame) => JSON.parse(frame.slice('data: '.length)))
}
const types = (items: Item[], options?: Partial<UiOptions>) => chunks(items, options).map(({ type }) => type)

describe('UI wire: cases', () => {
  test('finish-step waits for the text of a stream beside it, because version 6 forgets open text there', () => {
    const items = [
      ...at('main/a', answering),
      ...at('main/b', answering, { type: 'text-start', id: 't1' }),
      ...at('main/a/1', modelCall(), finished),
      ...at('main/b', { type: 'text-delta', id: 't1', delta: 'x' }, { type: 'text-end', id: 't1' }),
    ]
    expect(types(items)).toEqual(['text-start', 'start-step', 'text-delta', 'text-end', 'finish-step'])
  })

  test('no step begins inside an open tool input: the client would add the rest as a second part', () => {
    const items = [
      ...at('main/a', answering),
      ...at('main/b', answering, { type: 'tool-input-start', id: 'c', toolName: 't' }),
      ...at('main/a/1', modelCall(), finished),
      ...at('main/b', { type: 'tool-input-end', id: 'c' }),
      ...at('main/b', { type: 'tool-call', toolCallId: 'c', toolName: 't', input: '{}' }),
    ]
    expect(types(items)).toEqual(['tool-input-start', 'tool-input-available'])
  })

  test('parallel model calls share one step', () => {
    const items = [
      ...at('main/a', answering),
      ...at('main/b', answering),
      ...at('main/a/1', modelCall()),
      ...at('main/b/1', modelCall(), finished),
      ...at('main/a/1', finished),
      ...at('main/a/2', modelCall(), finished),
    ]
    expect(types(items)).toEqual(['start-step', 'finish-step', 'start-step', 'finish-step'])
  })

  const aborted: Item[] = [
    ...at('main/a', answering),
    ...at('main/a/1', modelCall(), { type: 'tool-call', toolCallId: 'c', toolName: 't', input: '{}' }, finished),
    ...at('main/a/2', { type: 'step-start', stepType: 'tool-call', attempt: 1, toolCallId: 'c', toolName: 't' }),
    ...at('main/a/2', {
      type: 'tool-result',
      toolCallId: 'c',
      toolName: 't',
      result: 'aborted',
      isError: true,
      outcome: 'aborted',
    }),
  ]

  test('the outcome of an aborted call is told when the run goes on or fails, not when it is aborted', () => {
    expect(types([...aborted, ...failed('aborted')]).slice(-2)).toEqual(['finish-step', 'abort'])
    expect(types([...aborted, ...failed('failed')]).slice(-2)).toEqual(['tool-output-error', 'error'])
    expect(types([...aborted, ...at('main/a/3', modelCall())]).slice(-2)).toEqual(['tool-output-error', 'start-step'])
  })

  test('an input that was cut off is finished with an error frame, but only in the step where the client finds it', () => {
    const cutOff = [
      ...at('main/a', answering),
      ...at(
        'main/a/1',
        modelCall(),
        { type: 'tool-input-start', id: 'c', toolName: 't' },
        { type: 'tool-input-end', id: 'c' },
        finished,
      ),
    ]
    const error = {
      type: 'tool-input-error',
      toolCallId: 'c',
      toolName: 't',
      input: null,
      errorText: expect.any(String),
    }
    expect(chunks([...cutOff, ...failed('failed')]).at(-2)).toEqual(error)
    const later = [...cutOff, ...at('main/a/2', modelCall(), finished), ...failed('failed')]
    expect(types(later)).toEqual([
      'start-step',
      'tool-input-start',
      'finish-step',
      'start-step',
      'finish-step',
      'error',
    ])
  })

  const attempt = (n: number, ...parts: RecordedPart[]) => at('main/a/1', modelCall(n), ...parts)
  const reset = (step: string): Item[] => at(step, { type: 'step-reset', attempt: 1 })

  test('a reset that touches nothing shown is no affair of the client', () => {
    const items = [...at('main/a', answering), ...attempt(1), ...reset('main/a/1'), ...attempt(2, finished)]
    expect(types(items)).toEqual(['start-step', 'finish-step'])
  })

  test('a reset forgets inputs that were open, so that steps go on', () => {
    const open: RecordedPart = { type: 'tool-input-start', id: 'c', toolName: 't' }
    const items = [...at('main/a', answering), ...attempt(1, open), ...reset('main/a/1'), ...attempt(2, finished)]
    expect(types(items, { ui7: true })).toEqual(['start-step', 'tool-input-start', 'reset-step', 'finish-step'])
    const ended = [...items, ...at('main/a/2', modelCall()), ...failed('failed')]
    expect(types(ended, { ui7: true }).slice(-2)).toEqual(['start-step', 'error'])
  })

  test('nothing is sent later about calls that a reset took back', () => {
    const open: RecordedPart = { type: 'tool-input-start', id: 'c', toolName: 't' }
    const inputs = [
      ...at('main/a', answering),
      ...attempt(1, open),
      ...reset('main/a/1'),
      ...attempt(2),
      ...failed('failed'),
    ]
    expect(types(inputs, { ui7: true }).slice(-2)).toEqual(['reset-step', 'error'])
    const outcomes = [...aborted, ...reset('main/a'), ...at('main/a', { ...answering, attempt: 2 }), ...attempt(2)]
    expect(types([...outcomes, ...failed('failed')], { ui7: true }).slice(-3)).toEqual([
      'reset-step',
      'start-step',
      'error',
    ])
  })

  const text = (id: string): RecordedPart[] => [
    { type: 'text-start', id },
    { type: 'text-end', id },
  ]
  test.each<[string, Item[]]>([
    [
      'two steps',
      [...attempt(1, ...text('t1'), finished), ...at('main/a/2', modelCall(), ...text('t2')), ...reset('main/a')],
    ],
    [
      'another answer in the same step',
      [...attempt(1, ...text('t1')), ...at('main/b', answering, ...text('t2')), ...reset('main/a/1')],
    ],
    [
      'data that stays',
      [...attempt(1, ...text('t1')), ...at('main', { type: 'data', name: 'n', data: 1 }), ...reset('main/a/1')],
    ],
    [
      'a call of a step before the answer, told with what is asked of the client',
      [
        ...attempt(1, ...text('t1')),
        ...at('main/r/2', {
          type: 'request',
          requestId: 'q',
          kind: 'approval',
          toolCallId: 'c',
          toolName: 't',
          input: {},
          deadline: 0,
        }),
        ...reset('main/a/1'),
      ],
    ],
    [
      'a text open from an earlier step',
      [
        ...at('main/b', answering, { type: 'text-start', id: 't2' }),
        ...attempt(1, ...text('t1')),
        ...reset('main/a/1'),
      ],
    ],
  ])('version 7 cannot take back exactly: %s', (_, items) => {
    expect(types([...at('main/a', answering), ...items], { ui7: true }).at(-1)).toBe('error')
  })

  test('data with an id and transient data need no taking back', () => {
    const shown: RecordedPart[] = [
      { type: 'data', name: 'p', id: '1', data: 1 },
      { type: 'data', name: 'toast', data: 1, transient: true },
    ]
    const items = [
      ...at('main/a', answering),
      ...attempt(1, ...shown),
      ...reset('main/a/1'),
      ...attempt(2, ...text('t1')),
    ]
    expect(types(items)).toEqual(['start-step', 'data-p', 'data-toast', 'text-start', 'text-end'])
  })

  const marked: Item[] = [
    ...at('main/a', answering),
    ...at(
      'main/a/1',
      {
        type: 'tool-input-start',
        id: 'c',
        toolName: 't',
        dynamic: true,
        title: 'T',
        providerMetadata: { p: { a: 1 } },
      },
      { type: 'tool-input-end', id: 'c' },
      {
        type: 'tool-call',
        toolCallId: 'c',
        toolName: 't',
        input: '{}',
        providerExecuted: true,
        providerMetadata: { p: { b: 1 } },
      },
      { type: 'tool-result', toolCallId: 'c', toolName: 't', result: 1, providerMetadata: { p: { c: 1 } } },
      { type: 'text-start', id: 't1', providerMetadata: { p: { d: 1 } } },
      { type: 'text-delta', id: 't1', delta: 'x', providerMetadata: { p: { e: 1 } } },
      { type: 'text-end', id: 't1', citations: [] },
    ),
    ...at('', { type: 'answer-end', finishReason: 'interrupted', usage: noUsage }),
  ]

  test('a call keeps the flags of its input, and metadata goes where the client takes it', () => {
    expect(chunks(marked, { ui7: true })).toEqual([
      {
        type: 'tool-input-start',
        toolCallId: 'c',
        toolName: 't',
        dynamic: true,
        title: 'T',
        providerMetadata: { p: { a: 1 } },
      },
      {
        type: 'tool-input-available',
        toolCallId: 'c',
        toolName: 't',
        input: {},
        dynamic: true,
        title: 'T',
        providerExecuted: true,
        providerMetadata: { p: { b: 1 } },
      },
      {
        type: 'tool-output-available',
        toolCallId: 'c',
        output: 1,
        dynamic: true,
        providerExecuted: true,
        providerMetadata: { p: { c: 1 } },
      },
      { type: 'text-start', id: 't1', providerMetadata: { p: { d: 1 } } },
      { type: 'text-delta', id: 't1', delta: 'x', providerMetadata: { p: { e: 1 } } },
      { type: 'text-end', id: 't1', citations: [] },
      expect.objectContaining({ type: 'finish', finishReason: 'interrupted' }),
    ])
  })

  test('version 6 is sent nothing that its strict schema refuses', () => {
    const sent = chunks(marked)
    expect(sent.map(v6Fault)).toEqual(sent.map(() => undefined))
    expect(sent.at(-1)).toMatchObject({ finishReason: 'other' })
  })
})
