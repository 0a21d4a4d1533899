import { describe, expect, test } from 'vitest'
import { costOf } from './model-call.ts'

const usage = { source: 'reported' } as const
const whole = { ...usage, inputTokens: 1000, outputTokens: 100, cachedInputTokens: 600, cacheWriteInputTokens: 100 }

describe('pricing', () => {
  test.each([
    ['no price', whole, undefined, undefined],
    ['no tokens, no price', { ...usage, inputTokens: 0, outputTokens: 0 }, undefined, 0],
    ['one price for all input', whole, { input: 10, output: 20 }, 1000 * 10 + 100 * 20],
    [
      'cached and written input of their own price',
      whole,
      { input: 10, output: 20, cachedInput: 1, cacheWriteInput: 12 },
      300 * 10 + 600 * 1 + 100 * 12 + 100 * 20,
    ],
    [
      'reasoning',
      { ...usage, inputTokens: 1, outputTokens: 100, reasoningTokens: 40 },
      { input: 0, output: 1, reasoning: 3 },
      60 + 120,
    ],
    // What some servers report: cached tokens beside the input, not in it.
    [
      'more cached than input',
      { ...usage, inputTokens: 10, cachedInputTokens: 50 },
      { input: 2, output: 1, cachedInput: 1 },
      10,
    ],
    ['a correction', { ...usage, inputTokens: -10, outputTokens: 0 }, { input: 2, output: 1 }, -20],
  ])('%s', (_, tokens, pricing, millionths) => {
    const cost = costOf(tokens, pricing)
    if (millionths === undefined) expect(cost).toBeUndefined()
    else expect(cost).toBeCloseTo(millionths / 1e6, 12)
  })
})
