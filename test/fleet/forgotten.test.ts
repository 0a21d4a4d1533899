/** Runs whose owner died so long ago that Redis has forgotten its beat. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { describeRedis } from '../support/redis.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { count, endedRun, entryOf, startFleet, startRun, type Fleet } from './fleet.ts'

const agent = (keys: string) => `${keys}
workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [buy] } }]`
const agents = { shop: agent('recover: true'), frail: agent('recover: false') }

describeRedis('an owner that Redis has forgotten', (redis) => {
  let fleet: Fleet
  let answer: (reply: UpstreamReply) => unknown
  beforeEach(async () => {
    answer = (reply) => reply.say('I ')
    fleet = await startFleet(redis(), agents, (reply) => answer(reply))
  })
  afterEach(() => fleet.close())

  /** As if a minute had passed since the last beat of all others: the next beat of anybody removes theirs. */
  async function forget(): Promise<void> {
    const beats = `{${fleet.prefix}:fleet}:beats`
    const others = async () => (await fleet.store.fleet.processes!()).filter(({ self }) => !self)
    // Again while one is left: Redis may have taken the last beat of a killed process only after the first time.
    const isAlone = async () => {
      const ids = (await others()).map(({ id }) => id)
      if (ids.length > 0) await redis().command('ZADD', beats, 'XX', ...ids.flatMap((id) => ['1', id]))
      return ids.length === 0
    }
    await expect.poll(isAlone).toBe(true)
  }
  const running = async () => (await fleet.store.runs.list({ status: 'running' })).map(({ id }) => id).toSorted()

  test('all instances are away for longer than that: the one that comes goes on with their runs, or ends them, and their threads go on', async () => {
    const [a, b] = await Promise.all([fleet.start(), fleet.start()])
    const goes = await startRun(a, 'shop', 'goes on')
    const ends = await startRun(b, 'frail', 'ends')
    const first = await startRun(a, 'frail', 'first', { threadId: 'thread' })
    for (const run of [goes, ends, first]) await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
    const second = await startRun(b, 'shop', 'second', { threadId: 'thread' })
    await Promise.all([a.kill(), b.kill()])
    await forget()
    expect(await running()).toEqual([goes, ends, first, second].toSorted())
    answer = (reply) => {
      reply.say('done')
      reply.finish()
    }
    const next = await fleet.start()
    const third = await startRun(next, 'shop', 'third', { threadId: 'thread' })
    const outcomes = [goes, second, third, ends, first].map(async (run) => {
      const entries = await endedRun(fleet.store, run)
      expect(count(entries, 'run-end')).toBe(1)
      return entries.at(-1)
    })
    const [completed, interrupted] = [{ outcome: 'completed' }, { outcome: 'interrupted' }]
    expect(await Promise.all(outcomes)).toMatchObject([completed, completed, completed, interrupted, interrupted])
    expect((await fleet.store.runs.get(goes))!.epoch).toBe(2)
  }, 40_000)

  test('an instance that has the tools comes later than that: it goes on with what the others could not', async () => {
    const owner = await fleet.start()
    const lacking = await fleet.start({ agents: {}, tools: [] })
    const run = await startRun(owner, 'shop', 'tea')
    await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
    await owner.kill()
    await lacking.kill()
    await forget()
    const deaf = await fleet.start({ agents: {}, tools: [] })
    await expect.poll(() => deaf.stderr()).toContain('unknown tool "buy"')
    expect(await running()).toEqual([run])
    answer = (reply) => {
      reply.say('done')
      reply.finish()
    }
    await fleet.start()
    expect((await endedRun(fleet.store, run)).at(-1)).toMatchObject({ outcome: 'completed' })
    expect((await fleet.store.runs.get(run))!.epoch).toBe(2)
  }, 40_000)
})
