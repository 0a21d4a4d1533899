/** What becomes of runs whose process dies, is paused, or is told to stop. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { only } from '../support/engine.ts'
import { describeRedis } from '../support/redis.ts'
import { often } from '../support/thorough.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { count, endedRun, entryOf, followRun, startFleet, startRun, type Fleet, type Instance } from './fleet.ts'

const agent = (keys: string) => `${keys}
workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [buy] } }]`
const agents = { shop: agent('recover: true'), frail: agent('recover: false') }
/** By hand: MILLRACE_KILLS=100. */
const kills = Number(process.env['MILLRACE_KILLS'] ?? 4)

const percentile = (values: number[], share: number) =>
  Math.round(values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!)
const isRecovered = (entry: Entry) => entry.type === 'warning' && entry.code === 'recovered'
const resultsOf = (reply: UpstreamReply) => reply.body.messages.filter(({ role }) => role === 'tool').length

/** Calls the tool twice, and then answers: each time after so many ms. */
const shops = (ms: number) => async (reply: UpstreamReply) => {
  reply.accept()
  await sleep(ms / 2)
  const n = resultsOf(reply)
  if (n < 2) reply.call(`call_${n + 1}`, 'buy', { what: `thing ${n + 1}` })
  else reply.say('All ')
  await sleep(ms / 2)
  if (n === 2) reply.say('done.')
  reply.finish(n < 2 ? 'tool_calls' : 'stop')
}

describeRedis('takeover', (redis) => {
  let fleet: Fleet
  let answer: (reply: UpstreamReply) => unknown
  beforeEach(async () => {
    answer = shops(250)
    fleet = await startFleet(redis(), agents, (reply) => answer(reply))
  })
  afterEach(() => fleet.close())
  const start = (n: number) => Promise.all(Array.from({ length: n }, () => fleet.start()))

  /** The run ended well: its tools ran at most once, in order, and who followed it saw its log and nothing else. */
  async function sound(
    run: string,
    followers: { lines: string[]; end: Promise<void> }[],
    mayBeCutOff = false,
  ): Promise<Entry[]> {
    const entries = await endedRun(fleet.store, run)
    expect(entries.at(-1)).toMatchObject({ type: 'run-end', outcome: 'completed' })
    expect(count(entries, 'run-end')).toBe(1)
    // A call that was cut off by a kill may have run or not: it is not run again. Every other one has run, once.
    const effects = fleet.effects().filter((line) => line.startsWith(run))
    expect(effects).toEqual([...new Set(effects)].toSorted())
    const done = only(entries, 'tool-result').filter(({ outcome }) => outcome === undefined)
    expect(effects).toEqual(
      expect.arrayContaining(done.map(({ result }) => `${run} buy ${(result as string).slice(5)}`)),
    )
    if (!mayBeCutOff) expect(done).toHaveLength(2)
    const bytes = entries.map((entry) => JSON.stringify(entry))
    for (const { lines, end } of followers) {
      await end
      expect(lines).toEqual(bytes)
    }
    return entries
  }

  test(
    `${kills} × kill -9 over three instances: taken over at once, each client reads the log, no tool twice`,
    async () => {
      const instances = await start(3)
      const taken: number[] = []
      // Who has just started judges nobody.
      await sleep(2300)
      for (let i = 0; i < kills; i++) {
        const [victim, ...others] = instances as [Instance, Instance, Instance]
        const runs = await Promise.all(Array.from({ length: 4 }, (_, n) => startRun(victim, 'shop', `${i}.${n}`)))
        const followers = runs.map((run) => others.map((each) => followRun(each, run)))
        await sleep(100 + ((i * 137) % 500))
        await victim.kill()
        const killed = performance.now()
        const [next] = await Promise.all([
          fleet.start(),
          ...runs.map(async (run, n) => {
            if ((await fleet.store.runs.get(run))?.status === 'running') {
              await entryOf(fleet.store, run, (entry) => isRecovered(entry) || entry.type === 'run-end')
              taken.push(performance.now() - killed)
            }
            await sound(run, followers[n]!, true)
          }),
        ])
        instances.splice(0, 3, ...others, next)
      }
      console.log(
        `takeover after kill -9, ms: n ${taken.length} p50 ${percentile(taken, 0.5)} max ${percentile(taken, 1)}`,
      )
      expect(taken.length).toBeGreaterThan(kills)
      expect(percentile(taken, 0.5)).toBeLessThan(4000)
    },
    30_000 + kills * 8000,
  )

  test('SIGSTOP: taken over; when it goes on it is refused, says nothing more, and its readers read on', async () => {
    const [a, b] = (await start(2)) as [Instance, Instance]
    await sleep(2300)
    const held: UpstreamReply[] = []
    const asked = Promise.withResolvers<void>()
    answer = async (reply) => {
      held.push(reply)
      reply.say('I ')
      asked.resolve()
    }
    const run = await startRun(a, 'shop', 'stop')
    const followers = [followRun(a, run), followRun(b, run)]
    await asked.promise
    await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
    a.signal('SIGSTOP')
    const stopped = performance.now()
    answer = shops(50)
    await entryOf(fleet.store, run, isRecovered)
    console.log('takeover after SIGSTOP, ms:', Math.round(performance.now() - stopped))
    expect(performance.now() - stopped).toBeLessThan(12_000)
    await sleep(300)
    // The zombie gets more of its answer, and writes it.
    a.signal('SIGCONT')
    for (const reply of held) {
      reply.say('am late')
      reply.finish()
    }
    const entries = await sound(run, followers)
    expect(JSON.stringify(entries)).not.toContain('am late')
    expect(a.stderr()).toBe('')
    // It lives on, and takes new runs.
    const again = await startRun(a, 'shop', 'again')
    await sound(again, [])
  }, 30_000)

  test('hundreds of runs of a dead process are shared out among two, and go on', async () => {
    const victim = await fleet.start()
    const others = await start(2)
    await sleep(2300)
    const isHeld = Promise.withResolvers<void>()
    answer = async (reply) => {
      reply.accept()
      await isHeld.promise
      reply.drop()
    }
    const number = often(1000, 4)
    const runs: string[] = []
    for (let i = 0; i < number; i += 50)
      runs.push(...(await Promise.all(Array.from({ length: 50 }, (_, n) => startRun(victim, 'shop', `${i + n}`)))))
    const mine = async (id: string) => (await fleet.store.fleet.processes!()).find((each) => each.id === id)?.runs
    const [owner] = (await fleet.store.fleet.processes!()).filter(({ runs: owned }) => owned > 0)
    expect(owner!.runs).toBe(number)
    await victim.kill()
    isHeld.resolve()
    answer = () => undefined
    const killed = performance.now()
    await expect.poll(() => mine(owner!.id), { timeout: 40_000, interval: 50 }).toBeOneOf([0, undefined])
    const ms = performance.now() - killed
    const shares = (await fleet.store.fleet.processes!()).map(({ runs: owned }) => owned).filter((owned) => owned > 0)
    console.log(number, 'runs of a dead process, ms:', Math.round(ms), 'shares:', shares.join(' '))
    expect(shares).toHaveLength(2)
    // A survivor that has no time leaves its part to the other one.
    expect(Math.min(...shares)).toBeGreaterThan(number / 20)
    expect(shares[0]! + shares[1]!).toBe(number)
    // None was taken twice.
    const rows = await Promise.all(runs.map((run) => fleet.store.runs.get(run)))
    expect(new Set(rows.map((row) => row!.epoch))).toEqual(new Set([2]))
    expect(others.map((each) => each.stderr())).toEqual(['', ''])
  }, 90_000)

  test('SIGTERM under load: runs are handed over between two calls, without `recover` too; none is reset or interrupted', async () => {
    const instances = [await fleet.start({ graceMs: 15_000 }), await fleet.start()]
    await sleep(2300)
    const number = 20
    let asked = 0
    const areAsked = Promise.withResolvers<void>()
    const isTold = Promise.withResolvers<void>()
    answer = async (reply) => {
      if (++asked === number) areAsked.resolve()
      await isTold.promise
      await shops(10)(reply)
    }
    const runs = await Promise.all(
      Array.from({ length: number }, (_, i) => startRun(instances[0]!, i % 2 === 0 ? 'shop' : 'frail', `${i}`)),
    )
    const followers = runs.map((run, i) => followRun(instances[i % 2]!, run))
    await areAsked.promise
    const stopped = instances[0]!.stop()
    // Each run is inside its first call when the signal comes.
    await sleep(300)
    isTold.resolve()
    const code = await stopped
    instances.push(await fleet.start())
    expect(code).toBe(0)
    let handed = 0
    for (const [i, run] of runs.entries()) {
      // A reader whose instance has gone reads on elsewhere.
      const { lines, end } = followers[i]!
      await end.catch(() => undefined)
      const at = lines.at(-1)?.includes('"run-end"') === true ? followers[i]! : followRun(instances[1]!, run, lines)
      const entries = await sound(run, [at])
      expect(count(entries, 'step-reset')).toBe(0)
      handed += entries.some((entry) => entry.type === 'warning' && entry.code === 'server-stopped') ? 1 : 0
    }
    console.log('handed over at SIGTERM:', handed, 'of', runs.length)
    expect(handed).toBeGreaterThan(10)
  }, 60_000)
})
