/** Redis is away for some seconds while three instances work: all goes on where it was. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { only } from '../support/engine.ts'
import { describeRedis } from '../support/redis.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { endedRun, entryOf, followRun, startFleet, startRun, type Fleet, type Instance } from './fleet.ts'

const agents = {
  says: 'recover: true\nworkflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]',
}

describeRedis(
  'Redis is away',
  (redis) => {
    let fleet: Fleet
    let instances: Instance[]
    /** Answers that are being given: what each has said. */
    let answers: { reply: UpstreamReply; said: string }[]
    let isOver: boolean
    beforeEach(async () => {
      answers = []
      isOver = false
      fleet = await startFleet(redis(), agents, (reply) => {
        const answer = { reply, said: '' }
        answers.push(answer)
        speak(answer)
        if (isOver) reply.finish()
      })
      instances = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
    }, 30_000)
    afterEach(() => fleet.close())

    function speak(answer: (typeof answers)[number]): void {
      const word = `${answer.said.length} `
      answer.reply.say(word)
      answer.said += word
    }

    test.each([
      {
        how: 'killed and down for 5 s',
        async away() {
          await redis().kill()
          await sleep(5000)
          await redis().restart()
        },
      },
      {
        how: 'frozen for 4 s',
        async away() {
          redis().freeze()
          await sleep(4000)
          redis().thaw()
        },
      },
    ])(
      '$how: no run is taken over, none has a gap, and what starts meanwhile ends well',
      async ({ away }) => {
        // Who has just started judges nobody.
        await sleep(2300)
        const runs = await Promise.all(
          Array.from({ length: 9 }, (_, i) => startRun(instances[i % 3]!, 'says', `before ${i}`)),
        )
        for (const run of runs) await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
        const followers = runs.map((run, i) => followRun(instances[(i + 1) % 3]!, run))
        const talk = setInterval(() => answers.forEach(speak), 50)
        const back = away()
        // Turns of one thread that are asked for while it is away.
        const late = Promise.all(
          [0, 1, 2].map((i) => startRun(instances[i]!, 'says', `late ${i}`, { threadId: 'thread' })),
        )
        await back
        // Longer than it takes to hold somebody for dead.
        await sleep(3500)
        clearInterval(talk)
        isOver = true
        for (const { reply } of answers) reply.finish()
        for (const [i, run] of runs.entries()) {
          const entries = await endedRun(fleet.store, run)
          expect(entries.at(-1)).toMatchObject({ outcome: 'completed' })
          const text = only(entries, 'text-delta').map(({ delta }) => delta)
          expect(answers.map(({ said }) => said)).toContain(text.join(''))
          await followers[i]!.end
          expect(followers[i]!.lines).toEqual(entries.map((entry) => JSON.stringify(entry)))
        }
        runs.push(...(await late))
        for (const run of runs) {
          expect((await endedRun(fleet.store, run)).at(-1)).toMatchObject({ outcome: 'completed' })
          expect((await fleet.store.runs.get(run))!.epoch).toBe(1)
        }
      },
      60_000,
    )
  },
  { aof: true },
)
