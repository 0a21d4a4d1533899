/** Who reads a run is counted over all instances; and a run goes on only where it can. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { disconnected } from '../../src/runtime/disconnect-policy.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { describeRedis } from '../support/redis.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { endedRun, entryOf, startFleet, startRun, type Fleet, type Instance } from './fleet.ts'

/** Within it a client whose stream broke off comes back, on a busy machine too. */
const cancelAfter = 1500
/** On a busy machine, in ms: a process that could not beat for a second holds every run for read for three. Without the policy a run would not end at all. */
const slack = 8000
const says = (keys: string) => `${keys}
recover: true
workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]`
const agents = {
  says: says(`onDisconnect: { cancelAfter: ${cancelAfter}ms }`),
  cancels: says('onDisconnect: cancel'),
}
const shop = `recover: true
workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [buy] } }]`

describeRedis('presence over instances', (redis) => {
  let fleet: Fleet
  let a: Instance
  let b: Instance
  let c: Instance
  /** Requests of the model that are open. */
  let asked: UpstreamReply[]
  let chats = 0

  beforeAll(async () => {
    fleet = await startFleet(redis(), agents, (reply) => {
      asked.push(reply)
      reply.say('I ')
    })
    ;[a, b, c] = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
  }, 30_000)
  afterAll(() => fleet?.close())
  beforeEach(async () => {
    asked = []
    // Those that the test before has killed.
    if (a.isGone()) a = await fleet.start()
    if (b.isGone()) b = await fleet.start()
    if (c.isGone()) c = await fleet.start()
  })

  /** Sends a message at an instance, as `useChat` does. The same again, at any instance, joins the run. */
  async function read(instance: Instance, id: string, agentId = 'says') {
    const leave = new AbortController()
    const messages = [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] }]
    const response = await fetch(`${instance.url}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, agentId, messages }),
      signal: leave.signal,
    })
    expect(response.status).toBe(200)
    const text = response.text()
    text.catch(() => undefined)
    return { run: response.headers.get('x-millrace-run-id')!, leave: () => leave.abort(), text }
  }
  async function chat(instance: Instance, agentId?: string) {
    const id = `chat-${++chats}`
    const reader = await read(instance, id, agentId)
    await entryOf(fleet.store, reader.run, ({ type }) => type === 'text-delta')
    return { id, ...reader }
  }
  const statusOf = async (run: string) => (await fleet.store.runs.get(run))!.status
  /** By the policy, at most so many ms after a moment. All processes have one clock. */
  async function stopped(run: string, since: number, within: number): Promise<void> {
    const end = (await endedRun(fleet.store, run)).at(-1)!
    expect(end, JSON.stringify(end)).toMatchObject({ outcome: 'aborted', error: { message: disconnected } })
    expect(end.timestamp - since).toBeLessThan(within + slack)
  }

  test('a reload at another instance keeps a run; leaving stops it in time', async () => {
    const { id, run, leave } = await chat(a)
    const again = await read(b, id)
    expect(again.run).toBe(run)
    leave()
    await sleep(cancelAfter + 1000)
    expect(await statusOf(run)).toBe('running')
    again.leave()
    await stopped(run, Date.now(), cancelAfter + 1000)
  })

  test('a run that was started without a reader has none to miss', async () => {
    const run = await startRun(a, 'says', 'alone')
    await sleep(cancelAfter + 1000)
    expect(await statusOf(run)).toBe('running')
    await b.post(`/api/runs/${run}/stop`)
    await endedRun(fleet.store, run)
  })

  test('the instance of the only reader is killed: the owner stops the run', async () => {
    const { id, run, leave } = await chat(a)
    await read(c, id)
    leave()
    await sleep(cancelAfter + 300)
    expect(await statusOf(run)).toBe('running')
    await c.kill()
    await stopped(run, Date.now(), cancelAfter + 1000)
  })

  test('the owner is killed and nobody reads: the next owner stops the run', async () => {
    await sleep(2300)
    const { run } = await chat(c)
    await c.kill()
    const killed = Date.now()
    const recovered = await entryOf(fleet.store, run, ({ type }) => type === 'warning' || type === 'run-end')
    expect(recovered.type).toBe('warning')
    // The time after which it is dead, and in which it is taken over.
    await stopped(run, killed, 2000 + cancelAfter + 1000)
  }, 20_000)

  test.each([
    { started: 'by a client', protocol: 'ui', stops: true },
    { started: 'by a program', protocol: 'api', stops: false },
  ])('the owner of a run that was started $started dies before anybody has read it', async ({ protocol, stops }) => {
    const owner = await redisStore(`${redis().url}?prefix=${fleet.prefix}`)
    const run = `unread-${protocol}`
    const input = { messages: [{ id: 'u', role: 'user', content: 'hi' }] }
    const start = { runId: run, agent: 'says', pipeline: agents.says, threadId: run, protocol, input }
    await owner.log.append(run, 1, [{ seq: 1, timestamp: Date.now(), step: '', type: 'run-start', ...start }])
    await owner.close()
    if (stops) return stopped(run, Date.now(), cancelAfter + 2000)
    await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
    await sleep(cancelAfter + 1000)
    expect(await statusOf(run)).toBe('running')
    await a.post(`/api/runs/${run}/stop`)
    await endedRun(fleet.store, run)
  })

  test('`cancel`: who leaves while somebody reads elsewhere stops nothing; the last one stops the run at once, wherever it reads', async () => {
    const { id, run, leave } = await chat(a, 'cancels')
    const last = await read(b, id, 'cancels')
    expect(last.run).toBe(run)
    leave()
    await sleep(1300)
    expect(await statusOf(run)).toBe('running')
    last.leave()
    await stopped(run, Date.now(), 0)
    const lost = await chat(a, 'cancels')
    await read(c, lost.id, 'cancels')
    lost.leave()
    await sleep(300)
    expect(await statusOf(lost.run)).toBe('running')
    await c.kill()
    // Time for a client whose connection was cut to come back.
    await stopped(lost.run, Date.now(), 1000)
  })

  test('a stream that breaks off because its run begins a step again is not read to its end: who does not come back has left', async () => {
    await sleep(2300)
    const number = 6
    // So that each of the others owns some of them then.
    const readers = await Promise.all(
      Array.from({ length: number }, async () => {
        const { id, run, leave } = await chat(c)
        const { text } = await read(b, id)
        leave()
        return { id, run, text }
      }),
    )
    await c.kill()
    const broken = await Promise.all(
      readers.map(async (reader) => {
        expect(await reader.text).toContain('"type":"error"')
        return { ...reader, at: Date.now() }
      }),
    )
    const [left, back] = [broken.slice(0, number / 2), broken.slice(number / 2)]
    const again = await Promise.all(back.map(({ id }, i) => read(i % 2 === 0 ? a : b, id)))
    expect(again.map(({ run }) => run)).toEqual(back.map(({ run }) => run))
    for (const { run, at } of left) await stopped(run, at, cancelAfter + 1000)
    for (const { run } of back) expect(await statusOf(run)).toBe('running')
    for (const { leave } of again) leave()
    const since = Date.now()
    for (const { run } of back) await stopped(run, since, cancelAfter + 1000)
  }, 30_000)

  test('a run goes on only where its tools are; an instance that lacks them says so once', async () => {
    const owner = await fleet.start({ agents: { shop } })
    const lacking = await fleet.start({ agents: {}, tools: [] })
    // Only the one that lacks the tool is left.
    for (const each of [a, b, c]) await each.kill()
    const run = await startRun(owner, 'shop', 'tea')
    await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
    await sleep(2300)
    await owner.kill()
    await expect.poll(() => lacking.stderr()).toContain('unknown tool "buy"')
    await sleep(2000)
    expect((await fleet.store.runs.get(run))!.epoch).toBe(1)
    expect(lacking.stderr().match(/unknown tool/gu)).toHaveLength(1)
    const able = await fleet.start({ agents: {} })
    await entryOf(fleet.store, run, ({ type }) => type === 'warning')
    // To stop it takes nothing.
    await able.post(`/api/runs/${run}/stop`)
    await endedRun(fleet.store, run)
  }, 60_000)
})
