import { expect, test } from 'vitest'
import type { OutlineItem } from '../../../src/fold/outline-item.ts'
import { pairSteps, stepsOf } from './steps.ts'

let seq = 0
const step = (path: string, more: object = {}): OutlineItem => ({
  k: 'step',
  path,
  stepType: 'llm',
  kind: 'model-call',
  attempt: 1,
  from: ++seq,
  to: ++seq,
  at: seq,
  ...more,
})
const tool = (path: string, toolName: string) =>
  step(path, { kind: 'tool-call', toolName, toolCallId: path.split('/').at(-1) })

test('calls stand beside the same calls, whatever their ids and numbers are', () => {
  const a = stepsOf([step('main/answer'), step('main/answer/1'), tool('main/answer/x1', 'calc'), step('main/answer/2')])
  const b = stepsOf([
    step('main/answer'),
    step('main/answer/1'),
    tool('main/answer/y7', 'time'),
    tool('main/answer/y8', 'calc'),
    step('main/answer/5'),
  ])
  expect(pairSteps(a, b).map(([x, y]) => [x?.path, y?.path])).toEqual([
    ['main/answer', 'main/answer'],
    ['main/answer/1', 'main/answer/1'],
    [undefined, 'main/answer/y7'],
    ['main/answer/x1', 'main/answer/y8'],
    ['main/answer/2', 'main/answer/5'],
  ])
})

test('attempts that a crash discarded do not count', () => {
  expect(stepsOf([step('main/a', { superseded: 9 }), step('main/a', { attempt: 2 })])).toHaveLength(1)
})

test('steps of branches that ran at the same time stand below their branch', () => {
  const began = ['main/panel', 'main/panel/a', 'main/panel/b', 'main/panel/a/1', 'main/panel/b/1', 'main/end']
  expect(stepsOf(began.map((path) => step(path))).map(({ path }) => path)).toEqual([
    'main/panel',
    'main/panel/a',
    'main/panel/a/1',
    'main/panel/b',
    'main/panel/b/1',
    'main/end',
  ])
})
