import { describe, expect, test } from 'vitest'
import { hasRedis, redisFault } from './redis-server.ts'

describe('Redis for all tests', () => {
  // In the place of the tests that cannot run.
  test.skipIf(!hasRedis)(`all tests of test/server once more, with Redis behind them${redisFault}`, () => {
    expect(hasRedis).toBe(true)
  })
})
