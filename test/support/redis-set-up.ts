import { beforeEach } from 'vitest'
import { testsNotOnRedis } from './not-on-redis.ts'

beforeEach(({ task, skip }) => {
  const reason = testsNotOnRedis[task.name]
  if (reason !== undefined) skip(`on Redis: ${reason}`)
})
