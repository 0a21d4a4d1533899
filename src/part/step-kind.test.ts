import { describe, expect, test } from 'vitest'
import { kindOf } from './step-kind.ts'

describe('kindOf', () => {
  test.each([
    ['llm', 'main/a', undefined, 'tool-loop'],
    ['router', 'main/a', undefined, 'router'],
    ['model-call', 'main/a/1', undefined, 'model-call'],
    ['model-call', 'main/a', undefined, 'custom'],
    ['tool-call', 'main/a/2', 'c', 'tool-call'],
    ['tool-call', 'main/a', undefined, 'custom'],
    ['approval', 'main/a/2', 'c', 'approval'],
    ['round', 'main/a/2', undefined, 'container'],
    ['stream', 'main/a/1', undefined, 'custom'],
    ['toString', 'main/a', undefined, 'custom'],
  ])('in a log without kinds, %s at %s with call %s is %s', (stepType, step, toolCallId, kind) => {
    expect(kindOf({ stepType, step, ...(toolCallId !== undefined && { toolCallId }) })).toBe(kind)
  })

  test('a kind in the log counts, whatever the type is called', () => {
    expect(kindOf({ kind: 'custom', stepType: 'model-call', step: 'main/a/1' })).toBe('custom')
  })
})
