/** What all builds of `data` have left, in folders, in Redis and in archives: with the build of today nothing of it is lost. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach } from 'vitest'
import { describeRedis } from '../support/redis.ts'
import { data, inFolder, inRedis, passesTheList } from './opens.ts'

const names = readdirSync(data)

for (const name of names) passesTheList(name, () => inFolder, 'folder')

describeRedis('what is in Redis and in an archive', (redis) => {
  beforeEach(async () => void (await redis().command('FLUSHALL')))
  for (const name of names)
    if (existsSync(join(data, name, 'redis.gz'))) passesTheList(name, () => inRedis(redis().url), 'redis')
})
