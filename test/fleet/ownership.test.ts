/** Three instances, any of which may be asked: one owner, one answer that counts, one run for a key, one run at a time in a thread. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { only } from '../support/engine.ts'
import { describeRedis } from '../support/redis.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { count, endedRun, entryOf, followRun, startFleet, startRun, type Fleet, type Instance } from './fleet.ts'

const agents = {
  says: 'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]',
  asks: 'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [{ name: buy, approval: true }] } }]',
}

describeRedis('three instances', (redis) => {
  let fleet: Fleet
  let instances: Instance[]
  let answer: (reply: UpstreamReply) => unknown

  beforeAll(async () => {
    fleet = await startFleet(redis(), agents, (reply) => answer(reply))
    instances = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
  }, 30_000)
  afterAll(() => fleet?.close())

  test('a stop that is sent elsewhere reaches the provider', async () => {
    const left: number[] = []
    for (let i = 0; i < 5; i++) {
      const asked = Promise.withResolvers<UpstreamReply>()
      answer = (reply) => {
        reply.say('I ')
        asked.resolve(reply)
      }
      const run = await startRun(instances[0]!, 'says', `stop ${i}`)
      const reply = await asked.promise
      await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
      const sent = performance.now()
      const response = instances[1 + (i % 2)]!.post(`/api/runs/${run}/stop`)
      await reply.left
      left.push(performance.now() - sent)
      expect((await response).status).toBe(202)
      const entries = await endedRun(fleet.store, run)
      expect(entries.at(-1)).toMatchObject({ type: 'run-end', outcome: 'aborted' })
    }
    console.log('stop elsewhere → provider, ms:', left.map(Math.round).join(' '))
    expect(Math.min(...left)).toBeLessThan(1500)
  })

  test('of 51 answers at three instances one counts, and the run is resumed once', async () => {
    answer = (reply) => {
      if (reply.body.messages.some(({ role }) => role === 'tool')) {
        reply.say('bought')
        reply.finish()
      } else {
        reply.call('call_1', 'buy', { what: 'tea' })
        reply.finish('tool_calls')
      }
    }
    const run = await startRun(instances[0]!, 'asks', 'tea')
    const clients = instances.map((each) => followRun(each, run))
    const request = await entryOf(fleet.store, run, ({ type }) => type === 'request')
    await entryOf(fleet.store, run, ({ type }) => type === 'suspend')
    const requestId = (request as { requestId: string }).requestId
    const answers = await Promise.all(
      Array.from({ length: 51 }, async (_, i) => {
        const response = await instances[i % 3]!.post(`/api/runs/${run}/requests/${requestId}`, {
          approved: i % 2 === 0,
        })
        // An answer that says otherwise than the one that counts is refused.
        expect([200, 409]).toContain(response.status)
        return response.status === 200 ? ((await response.json()) as { duplicate: boolean }) : { duplicate: true }
      }),
    )
    const entries = await endedRun(fleet.store, run)
    expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect([count(entries, 'resume'), count(entries, 'response'), count(entries, 'run-end')]).toEqual([1, 1, 1])
    const bought = fleet.effects().filter((line) => line.startsWith(run))
    const response = only(entries, 'response')[0]!
    expect(bought).toHaveLength(response.answer?.kind === 'approval' && response.answer.approved ? 1 : 0)
    for (const { end, lines } of clients) {
      await end
      expect(lines).toEqual(entries.map((entry) => JSON.stringify(entry)))
    }
  })

  test('one idempotency key, six times at once at three instances: one run', async () => {
    answer = (reply) => {
      reply.say('once')
      reply.finish()
    }
    const body = {
      agentId: 'says',
      input: { messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'k' }] }] },
    }
    const before = fleet.upstream.requests.length
    const ids = await Promise.all(
      Array.from({ length: 6 }, async (_, i) => {
        const response = await instances[i % 3]!.post('/api/runs', body, { 'idempotency-key': 'the-key' })
        expect(response.status).toBe(202)
        return ((await response.json()) as { id: string }).id
      }),
    )
    expect(new Set(ids).size).toBe(1)
    await endedRun(fleet.store, ids[0]!)
    expect(fleet.upstream.requests.length - before).toBe(1)
  })

  test('the queue of a thread over three instances never overlaps', async () => {
    let active = 0
    let most = 0
    answer = async (reply) => {
      most = Math.max(most, ++active)
      reply.say('word')
      await new Promise((done) => setTimeout(done, 20))
      active--
      reply.finish()
    }
    const runs = await Promise.all(
      Array.from({ length: 9 }, (_, i) => startRun(instances[i % 3]!, 'says', `turn ${i}`, { threadId: 'queue' })),
    )
    const ended = await Promise.all(runs.map((run) => endedRun(fleet.store, run)))
    expect(new Set(runs).size).toBe(9)
    for (const entries of ended) expect(entries.at(-1)).toMatchObject({ outcome: 'completed' })
    expect(most).toBe(1)
  }, 30_000)
})
