import { describe, expect, test } from 'vitest'
import { SummaryFold } from './run-fold.ts'

describe('summary fold', () => {
  test('a reset subtracts the counts of its step’s last attempt and of the steps below it, and nothing else', () => {
    const fold = new SummaryFold()
    const { counts } = fold
    fold.begin('main/a')
    fold.add('main/a', 'textBlocks')
    fold.begin('main/b')
    fold.begin('main/a')
    fold.add('main/a/1', 'toolCalls')
    fold.add('main/ab', 'errors')
    fold.add('main/b', 'toolCalls')
    fold.add('main/a', 'reasoningBlocks')
    fold.reset('main/a')
    expect(counts).toEqual({ textBlocks: 1, reasoningBlocks: 0, toolCalls: 1, toolResults: 0, errors: 1 })
    fold.reset('main/a')
    fold.begin('main/a')
    fold.reset('main/a')
    expect(counts).toEqual({ textBlocks: 1, reasoningBlocks: 0, toolCalls: 1, toolResults: 0, errors: 1 })
    // One that has no start here.
    fold.reset('main')
    expect(counts).toEqual({ textBlocks: 0, reasoningBlocks: 0, toolCalls: 0, toolResults: 0, errors: 0 })
  })
})
