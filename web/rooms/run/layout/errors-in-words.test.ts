import { expect, test } from 'vitest'
import { buildTree, labelOf } from '../../../../src/fold/step-tree.ts'
import type { OutlineItem } from '../../../../src/fold/outline-item.ts'
import { errorsInWords } from './errors-in-words.ts'

let seq = 0
const step = (path: string, more: object): OutlineItem => ({
  k: 'step',
  path,
  stepType: 'llm',
  kind: 'model-call',
  attempt: 1,
  from: ++seq,
  to: ++seq,
  at: seq,
  end: seq,
  ...more,
})
const error = { code: 'tool-failed', message: 'no' }

test('errors are those of tools where all of them are', () => {
  const failed = (path: string, kind: string) => step(path, { kind, toolName: 'pay', toolCallId: path, error })
  const tree = buildTree([failed('main/a', 'tool-call'), step('main/b', {})])
  expect(errorsInWords(1, tree)).toBe('1 tool error')
  expect(errorsInWords(2, tree)).toBe('2 errors')
  expect(errorsInWords(1, buildTree([step('main/b', { error })]))).toBe('1 error')
})

test('steps have names that people say: rounds count from 1, ids of calls are no names', () => {
  const { all } = buildTree([
    step('main/refine', { kind: 'container', stepType: 'loop' }),
    step('main/refine/0', { kind: 'container', stepType: 'round' }),
    step('main/answer', { kind: 'tool-loop' }),
    step('main/answer/1', { model: 'demo:assistant' }),
    step('main/answer/2', { kind: 'tool-call', toolName: 'pay', toolCallId: 'c1' }),
    step('main/answer/3', { kind: 'approval', toolName: 'pay', toolCallId: 'c2' }),
  ])
  expect(all.map((node) => Object.values(labelOf(node)).filter(Boolean).join(' · '))).toEqual([
    'refine · loop',
    'Round 1',
    'answer · llm',
    'Model call · demo:assistant',
    'pay',
    'Approval of pay',
  ])
})
