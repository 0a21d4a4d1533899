/**
 * Three instances on one Redis under load, while they and Redis are killed, stopped and replaced by a seed. By hand for hours: `npm run chaos -- --seconds 3600`.
 * A seed that has once found something stays in the list.
 */
import { describe, expect, test } from 'vitest'
import { hasRedis, redisFault } from '../support/redis-server.ts'
import { chaos, type ChaosOptions } from './chaos.ts'
import { planOf, type Fault } from './faults.ts'

/** Seeds and faults of the sessions, about half a minute together. */
const sessions: (ChaosOptions & { what: string })[] = [
  {
    what: 'everything but a loss of Redis',
    seed: 1,
    seconds: 10,
    kinds: ['kill', 'stop', 'term', 'redis-kill', 'redis-freeze'],
  },
  { what: 'instances are killed and stopped', seed: 2, seconds: 6, kinds: ['kill', 'stop'] },
  { what: 'a rolling deploy', seed: 3, seconds: 6, kinds: ['term'], leastRefusals: 1 },
  {
    what: 'Redis is killed, frozen, and loses its last second',
    seed: 4,
    seconds: 12,
    kinds: ['redis-kill', 'redis-freeze', 'redis-loss'],
  },
]

describe.skipIf(!hasRedis)(`chaos over three instances${redisFault}`, () => {
  test.each(sessions)(
    '$what: each client has the bytes of the log, every run ends once, no tool runs twice',
    { timeout: 120_000 },
    async ({ what, ...session }) => {
      const { faults, runs, refusals, log } = await chaos(session)
      expect(faults, `${what}, seed ${session.seed}:\n${log.join('\n')}`).toEqual([])
      expect(runs).toBeGreaterThan(session.seconds / 2)
      console.log(`${what}: ${runs} runs, ${refusals} requests to instances that were ending`)
    },
  )
})

test('a seed is a plan', () => {
  function first(seed: number): Fault[] {
    const plan = planOf(seed, ['kill', 'stop', 'term'], 3)
    return Array.from({ length: 20 }, () => plan.next().value as Fault)
  }
  expect(first(1)).toEqual(first(1))
  expect(first(1)).not.toEqual(first(2))
  expect(new Set(first(1).map(({ kind }) => kind)).size).toBe(3)
})
