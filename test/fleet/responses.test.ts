/** `/v1/responses` over several instances of one store: a client reads on at any of them, also when the one that runs the agent is killed. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { describeRedis } from '../support/redis.ts'
import { lastNumberOf, readResponseStream, responseFrames } from '../support/response-stream.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { count, endedRun, startFleet, type Fleet, type Instance } from './fleet.ts'

const desk =
  'recover: true\nworkflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [buy] } }]'
const resultsOf = (reply: UpstreamReply) => reply.body.messages.filter(({ role }) => role === 'tool').length

describeRedis('Responses over three instances', (redis) => {
  let fleet: Fleet
  let instances: [Instance, Instance, Instance]
  /** The last words of each answer wait for it. */
  let words: PromiseWithResolvers<void>

  beforeEach(async () => {
    words = Promise.withResolvers()
    fleet = await startFleet(redis(), { desk }, async (reply) => {
      if (resultsOf(reply) === 0) {
        reply.say('Let me ')
        reply.say('see.')
        reply.call('call_1', 'buy', { what: 'it' })
        return reply.finish('tool_calls')
      }
      for (const word of ['I ', 'have ', 'it']) reply.say(word)
      await words.promise
      reply.say(', at last.')
      return reply.finish()
    })
    instances = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
  })
  afterEach(async () => {
    words.resolve()
    await fleet.close()
  })

  const ask = (instance: Instance) =>
    readResponseStream(instance.post('/v1/responses', { model: 'desk', input: 'please buy', stream: true }))
  const from = (instance: Instance, run: string, after: number) =>
    readResponseStream(fetch(`${instance.url}/v1/responses/resp_${run}?stream=true&starting_after=${after}`))
  /** Up to the word before the gate: added, part, three deltas. */
  const beforeGate = (frames: readonly string[]) => frames.some((frame) => frame.includes('"delta":"it"'))

  test('the events up to any number and the rest from another instance are the whole', async () => {
    const [one, two, three] = instances
    const first = await ask(one)
    for (let n = 1; !beforeGate(first.frames()); n++) await first.reaches(n)
    // While it runs.
    const had = first.frames()
    const cuts = [3, 6, had.length]
    const live = await Promise.all(cuts.map((cut) => from(two, first.run, lastNumberOf(had.slice(0, cut)))))
    words.resolve()
    await Promise.all([first, ...live].map(({ end }) => end))
    const whole = first.frames().join('')
    expect(whole).toContain('event: response.completed')
    for (const [i, cut] of cuts.entries()) {
      expect(had.slice(0, cut).join('') + live[i]!.frames().join('')).toBe(whole)
    }
    // Afterwards, at every number.
    const all = first.frames().slice(0, -1)
    for (const [i] of all.entries()) {
      const start = all.slice(0, i + 1)
      const rest = await from(three, first.run, lastNumberOf(start))
      await rest.end
      expect(start.join('') + rest.frames().join('')).toBe(whole)
    }
    expect(responseFrames(await endedRun(fleet.store, first.run), 'desk')).toBe(whole)
  })

  test('over a kill -9 of the instance that runs it, live and afterwards', async () => {
    const [one, two, three] = instances
    const first = await ask(one)
    for (let n = 1; !beforeGate(first.frames()); n++) await first.reaches(n)
    const live = await from(two, first.run, lastNumberOf(first.frames().slice(0, 5)))
    const early = first.frames().slice(0, 5)
    await one.kill()
    await first.end
    const had = first.frames()
    expect(had.join('')).not.toContain('event: response.completed')
    words.resolve()
    const entries = await endedRun(fleet.store, first.run)
    expect(count(entries, 'run-end')).toBe(1)
    expect(count(entries, 'step-reset')).toBeGreaterThan(0)
    const whole = responseFrames(entries, 'desk')
    await live.end
    expect(early.join('') + live.frames().join('')).toBe(whole)
    for (const instance of [two, three]) {
      const rest = await from(instance, first.run, lastNumberOf(had))
      await rest.end
      expect(had.join('') + rest.frames().join('')).toBe(whole)
      // Read from the start, the attempt that was lost is not there.
      const fresh = await (await fetch(`${instance.url}/v1/responses/resp_${first.run}?stream=true`)).text()
      expect(fresh).toContain('event: response.completed')
      expect(fresh).not.toContain('"status":"incomplete"')
      const json = await (await fetch(`${instance.url}/v1/responses/resp_${first.run}`)).text()
      expect(json).toContain('I have it, at last.')
    }
    expect(fleet.effects()).toHaveLength(1)
  })
})
