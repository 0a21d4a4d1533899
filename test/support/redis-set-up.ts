import { basename } from 'node:path'
import { beforeEach } from 'vitest'
import { testsNotOnRedis } from './not-on-redis.ts'

beforeEach(({ task, skip }) => {
  const reason = testsNotOnRedis[basename(task.file.name)]?.[task.name]
  if (reason !== undefined) skip(`on Redis: ${reason}`)
})
