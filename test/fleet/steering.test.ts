/** A message into a running turn, sent five times to three instances, whose owner is killed (SIGKILL). */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { describeRedis } from '../support/redis.ts'
import { createHeldModel, killAgents, killPlaces } from '../support/steering-kills.ts'
import { startFleet, type Fleet } from './fleet.ts'

describeRedis('a message into a running turn, and a kill', (redis) => {
  let fleet: Fleet
  afterEach(() => fleet.close())

  test.each(Object.keys(killPlaces))('%s', { timeout: 60_000 }, async (place) => {
    const model = createHeldModel()
    fleet = await startFleet(redis(), killAgents, model.answer)
    const instances = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
    // Who has just started judges nobody.
    await sleep(2300)
    const site = {
      urls: () => instances.filter((each) => !each.isGone()).map(({ url }) => url),
      kill: () => instances[0].kill(),
    }
    await killPlaces[place]!(site, model)
    expect(site.urls()).toHaveLength(2)
  })
})
