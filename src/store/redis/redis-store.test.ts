/** The contract of stores on Redis: one server, and a cluster of three nodes. */
import { describeRedis, describeRedisCluster, freshPrefix } from '../../../test/support/redis.ts'
import { sharedContract } from '../contract/shared.contract.ts'
import { storeContract } from '../store.contract.ts'
import { redisStore } from './redis-store.ts'

const open = (url: string, prefix = freshPrefix()) => redisStore(`${url}?prefix=${prefix}`)

async function openTwo(url: string) {
  const prefix = freshPrefix()
  return Promise.all([open(url, prefix), open(url, prefix)])
}

describeRedis('redis', (redis) => {
  storeContract('redis', () => open(redis().url))
  sharedContract('redis', () => openTwo(redis().url))
})

describeRedisCluster('redis cluster', (cluster) => {
  storeContract('cluster', () => open(cluster().url))
  sharedContract('cluster', () => openTwo(cluster().url))
})
