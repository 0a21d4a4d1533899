import { expect, test } from 'vitest'
import { agentUses } from './agent-use.ts'

test('runs, failures, the last use and the known cost of each agent', () => {
  const row = (agent: string, status: 'completed' | 'timed-out' | 'aborted', startedAt: number, cost?: number) => ({
    agent,
    status,
    startedAt,
    ...(cost !== undefined && { cost }),
  })
  const uses = agentUses([
    row('shop', 'completed', 30, 0.5),
    row('shop', 'timed-out', 20),
    row('desk', 'aborted', 25),
    row('shop', 'completed', 10, 0.25),
  ])
  expect(Object.fromEntries(uses)).toEqual({
    shop: { runs: 3, failed: 1, lastAt: 30, cost: 0.75 },
    desk: { runs: 1, failed: 0, lastAt: 25, cost: undefined },
  })
})
