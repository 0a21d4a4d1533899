import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import type { Usage } from '../part/usage.ts'
import { createUsageFold, sumUsed } from './usage-fold.ts'

const tokens = (n: number): Usage => ({ inputTokens: n, outputTokens: 1, totalTokens: n + 1, source: 'reported' })

function fold(parts: object[]) {
  const fold = createUsageFold()
  for (const [i, part] of parts.entries()) fold.apply({ seq: i + 1, timestamp: 0, step: '', ...part } as Entry)
  return fold.read()
}

describe('usage fold', () => {
  test('by model, by step of the pipeline and by the agent that was called', () => {
    const used = fold([
      { type: 'run-start', agent: 'boss' },
      { type: 'usage', step: 'main/plan/1', model: 'm:a', usage: tokens(10), cost: 0.5 },
      { type: 'step-start', step: 'main/ask', stepType: 'call-agent', agent: 'helper' },
      { type: 'usage', step: 'main/ask/answer/1', model: 'm:a', usage: tokens(20), cost: 0.25 },
      { type: 'usage', step: 'main/ask/answer/2', model: 'm:b', usage: tokens(30) },
      { type: 'usage', step: 'main/plan/2', model: 'm:b', usage: tokens(1), cost: 1 },
    ])
    expect(used.usageByModel).toEqual([
      {
        model: 'm:a',
        calls: 2,
        usage: { ...tokens(30), outputTokens: 2, totalTokens: 32 },
        cost: 0.75,
        knownCost: 0.75,
        unpriced: 0,
      },
      // One price is unknown: there is no cost, and what is known is not it.
      { model: 'm:b', calls: 2, usage: { ...tokens(31), outputTokens: 2, totalTokens: 33 }, knownCost: 1, unpriced: 1 },
    ])
    expect(used.usageByStep.map(({ step, calls, cost }) => [step, calls, cost])).toEqual([
      ['main/plan', 2, 1.5],
      ['main/ask', 2, undefined],
    ])
    expect(used.usageByAgent.map(({ agent, knownCost, unpriced }) => [agent, knownCost, unpriced])).toEqual([
      ['boss', 1.5, 0],
      ['helper', 0.25, 1],
    ])
    expect(sumUsed(used.usageByModel)).toEqual(sumUsed(used.usageByAgent))
  })

  test('a CLI agent that reports in pieces is one call; the last piece corrects the sum', () => {
    const used = fold([
      { type: 'usage', step: 'main/cli', model: 'm', usage: tokens(10), cost: 0.5 },
      { type: 'usage', step: 'main/cli', model: 'm', usage: { ...tokens(-4), outputTokens: -1 }, cost: -0.25 },
    ])
    expect(used.usageByModel).toMatchObject([{ calls: 1, usage: { inputTokens: 6, outputTokens: 0 }, cost: 0.25 }])
  })

  test('a model may be called like a key of every object', () => {
    expect(fold([{ type: 'usage', step: 's', model: '__proto__', usage: tokens(1) }]).usageByModel).toMatchObject([
      { model: '__proto__', unpriced: 1 },
    ])
  })
})
