/** An instance that is paused for longer than its connections and its writes wait. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { describeRedis } from '../support/redis.ts'
import { often } from '../support/thorough.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { count, endedRun, entryOf, followRun, startFleet, startRun } from './fleet.ts'

const agents = {
  says: 'recover: true\nworkflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]',
}
/** A connection is broken after 12 s of silence, a write is refused after 15 s. */
const pausedFor = often(30_000, 30 / 17)

describeRedis('SIGSTOP for a long time', (redis) => {
  test('its runs go on elsewhere; then it is refused, says nothing more, serves its readers, and takes new runs', async () => {
    let answer = (reply: UpstreamReply): unknown => reply.say('I ')
    const fleet = await startFleet(redis(), agents, (reply) => answer(reply))
    onTestFinished(() => fleet.close())
    const [a, b] = await Promise.all([fleet.start(), fleet.start()])
    await sleep(2300)
    const ends = await startRun(a, 'says', 'ends')
    const goesOn = await startRun(a, 'says', 'goes on')
    const runs = [ends, goesOn]
    for (const run of runs) await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
    const followers = runs.flatMap((run) => [followRun(a, run), followRun(b, run)])
    for (const { lines } of followers) await expect.poll(() => lines.length).toBeGreaterThan(0)
    const held = [...fleet.upstream.requests]
    const later: UpstreamReply[] = []
    answer = (reply) => {
      reply.say('am back')
      if (JSON.stringify(reply.body).includes('goes on')) later.push(reply)
      else reply.finish()
    }
    a.signal('SIGSTOP')
    const stopped = performance.now()
    for (const run of runs) await entryOf(fleet.store, run, ({ type }) => type === 'warning')
    expect((await endedRun(fleet.store, ends)).at(-1)).toMatchObject({ outcome: 'completed' })
    // It finds more of its answers when it goes on, and writes them.
    for (const [i, reply] of held.entries()) {
      reply.say('am late')
      if (i === 0) reply.finish()
    }
    await sleep(Math.max(0, pausedFor - (performance.now() - stopped)))
    a.signal('SIGCONT')
    // It knows by now what it has lost.
    await Promise.all(held.slice(1).map(({ left }) => left))
    for (const reply of later) reply.finish()
    for (const [i, run] of runs.entries()) {
      const entries = await endedRun(fleet.store, run)
      expect([entries.at(-1), count(entries, 'run-end')]).toMatchObject([{ outcome: 'completed' }, 1])
      expect(JSON.stringify(entries)).not.toContain('am late')
      expect((await fleet.store.runs.get(run))!.epoch).toBe(2)
      for (const { lines, end } of followers.slice(2 * i, 2 * i + 2)) {
        await end
        expect(lines).toEqual(entries.map((entry) => JSON.stringify(entry)))
      }
    }
    expect(a.stderr()).toBe('')
    // The connection that was kept from before was idle for too long.
    const start = () => startRun(a, 'says', 'again')
    const again = await start().catch(start)
    expect((await endedRun(fleet.store, again)).at(-1)).toMatchObject({ outcome: 'completed' })
    expect((await fleet.store.runs.get(again))!.epoch).toBe(1)
  }, 90_000)
})
