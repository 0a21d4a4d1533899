/** Who reads a run is counted over all instances; and a run goes on only where it can. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { describeRedis } from '../support/redis.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { endedRun, entryOf, startFleet, startRun, type Fleet, type Instance } from './fleet.ts'

const cancelAfter = 600
const says = (keys: string) => `${keys}
recover: true
workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]`
const agents = { says: says(`onDisconnect: { cancelAfter: ${cancelAfter}ms }`) }
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
  beforeEach(() => {
    asked = []
  })

  /** Sends a message at an instance, as `useChat` does. The same again, at any instance, joins the run. */
  async function read(instance: Instance, id: string) {
    const leave = new AbortController()
    const messages = [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] }]
    const response = await fetch(`${instance.url}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, agentId: 'says', messages }),
      signal: leave.signal,
    })
    expect(response.status).toBe(200)
    void response.text().catch(() => undefined)
    return { run: response.headers.get('x-millrace-run-id')!, leave: () => leave.abort() }
  }
  async function chat(instance: Instance) {
    const id = `chat-${++chats}`
    const reader = await read(instance, id)
    await entryOf(fleet.store, reader.run, ({ type }) => type === 'text-delta')
    return { id, ...reader }
  }
  const statusOf = async (run: string) => (await fleet.store.runs.get(run))!.status
  async function stopped(run: string, since: number, within: number): Promise<void> {
    expect((await endedRun(fleet.store, run)).at(-1)).toMatchObject({ outcome: 'aborted' })
    // A busy machine is late with everything.
    expect(performance.now() - since).toBeLessThan(within + 5000)
  }

  test('a reload at another instance keeps a run; leaving stops it in time', async () => {
    const { id, run, leave } = await chat(a)
    const again = await read(b, id)
    expect(again.run).toBe(run)
    leave()
    await sleep(cancelAfter + 1000)
    expect(await statusOf(run)).toBe('running')
    again.leave()
    await stopped(run, performance.now(), cancelAfter + 1500)
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
    await stopped(run, performance.now(), cancelAfter + 2500)
    c = await fleet.start()
  })

  test('the owner is killed and nobody reads: the next owner stops the run', async () => {
    await sleep(2300)
    const { run } = await chat(c)
    await c.kill()
    const killed = performance.now()
    const recovered = await entryOf(fleet.store, run, ({ type }) => type === 'warning' || type === 'run-end')
    expect(recovered.type).toBe('warning')
    await stopped(run, killed, cancelAfter + 6000)
  }, 20_000)

  test('a run goes on only where its tools are; an instance that lacks them says so once', async () => {
    const owner = await fleet.start({ agents: { shop } })
    const lacking = await fleet.start({ agents: {}, tools: [] })
    // Only the one that lacks the tool is left.
    for (const each of [a, b, c]) await each.kill()
    const run = await startRun(owner, 'shop', 'tea')
    await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
    await sleep(2300)
    await owner.kill()
    await expect.poll(() => lacking.stderr(), { timeout: 15_000 }).toContain('unknown tool "buy"')
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
