/** Tests that need a Redis server. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe } from 'vitest'
import {
  hasRedis,
  redisFault,
  startRedis,
  startRedisCluster,
  type RedisCluster,
  type RedisOptions,
  type RedisServer,
} from './redis-server.ts'

export { redisFault, startRedis, startRedisCluster, type RedisCluster, type RedisServer }

/** Tests with one server for all of them, each with keys of its own; skipped by name where there is none. */
export function describeRedis(
  name: string,
  tests: (redis: () => RedisServer) => void,
  options: RedisOptions = {},
): void {
  describe.skipIf(!hasRedis)(name + redisFault, () => {
    let server: RedisServer
    beforeAll(async () => void (server = await startRedis(options)))
    afterAll(() => server.close())
    tests(() => server)
  })
}

/** The same with a cluster of three nodes. */
export function describeRedisCluster(name: string, tests: (cluster: () => RedisCluster) => void): void {
  describe.skipIf(!hasRedis)(name + redisFault, () => {
    let cluster: RedisCluster
    beforeAll(async () => void (cluster = await startRedisCluster()))
    afterAll(() => cluster.close())
    tests(() => cluster)
  })
}

/** A prefix of keys that nothing else has. */
export const freshPrefix = (): string => `t${randomUUID().slice(0, 8)}`
