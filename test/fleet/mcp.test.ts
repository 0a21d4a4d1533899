/** MCP over several instances of one store: none keeps anything of a client, so each answers for all, also when one is killed. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { askModern, postModern, withTasks, type Rpc } from '../support/mcp.ts'
import { describeRedis } from '../support/redis.ts'
import { readBody } from '../support/server.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { count, endedRun, startFleet, type Fleet, type Instance } from './fleet.ts'

const steps = (tools: string) =>
  `recover: true\nworkflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [${tools}] } }]`
const agents = { desk: steps('buy'), asks: steps('{ name: buy, approval: true }') }
const capabilities = { ...withTasks, elicitation: { form: {} } }
const yes = { action: 'accept', content: { approved: true } }

const resultsOf = (reply: UpstreamReply) => reply.body.messages.filter(({ role }) => role === 'tool').length

describeRedis('MCP over three instances', (redis) => {
  let fleet: Fleet
  let instances: [Instance, Instance, Instance]
  /** The last words of each answer wait for it. */
  let words: PromiseWithResolvers<void>
  /** Those of the tests before. */
  let earlier: Set<string>
  const mcp = { taskAfter: 0 }

  beforeAll(async () => {
    fleet = await startFleet(redis(), agents, async (reply) => {
      const isAsked = JSON.stringify(reply.body.messages).includes('please buy')
      if (isAsked && resultsOf(reply) === 0) {
        reply.call('call_1', 'buy', { what: 'it' })
        return reply.finish('tool_calls')
      }
      reply.say('I ')
      await words.promise
      reply.say('am done.')
      return reply.finish()
    })
    instances = await Promise.all([fleet.start({ mcp }), fleet.start({ mcp }), fleet.start({ mcp })])
  })
  beforeEach(async () => {
    words = Promise.withResolvers()
    // Those that the test before has killed.
    for (const [i, each] of instances.entries()) if (each.isGone()) instances[i] = await fleet.start({ mcp })
    earlier = new Set((await fleet.store.runs.list({ limit: 1000 })).map(({ id }) => id))
  })
  afterEach(() => words.resolve())
  afterAll(() => fleet?.close())

  const call = async (instance: Instance, name: string, message: string) => {
    const { result } = await askModern(instance, 'tools/call', { name, arguments: { message } }, { capabilities })
    return result!['taskId'] as string
  }
  const get = (instance: Instance, taskId: string) => askModern(instance, 'tasks/get', { taskId }, { capabilities })
  const runs = async () => (await fleet.store.runs.list()).flatMap(({ id }) => (earlier.has(id) ? [] : [id]))
  const reaches = (instance: Instance, taskId: string, status: string) =>
    vi.waitFor(
      async () => {
        const { result } = await get(instance, taskId)
        if (result?.['status'] !== status) throw new Error(JSON.stringify(result))
        return result
      },
      { timeout: 20_000, interval: 50 },
    )

  test('a task that was just made is at every instance, and its end is the same everywhere', async () => {
    const [one, ...others] = instances
    let taskId = ''
    for (let i = 0; i < 10; i++) {
      taskId = await call(one, 'desk', 'Hi')
      const found = await Promise.all(others.map((each) => get(each, taskId)))
      for (const { result } of found) expect(result).toMatchObject({ taskId, status: 'working' })
    }
    words.resolve()
    await reaches(one, taskId, 'completed')
    const ends = await Promise.all(instances.map((each) => get(each, taskId)))
    expect(new Set(ends.map(({ result }) => JSON.stringify(result))).size).toBe(1)
  })

  test('an instance that is killed: another finishes its run, and a client polls on', async () => {
    const [one, two] = instances
    const taskId = await call(one, 'desk', 'Hi')
    await one.kill()
    words.resolve()
    const task = await reaches(two, taskId, 'completed')
    expect(JSON.stringify(task['result'])).toContain('I am done.')
    const [run] = await runs()
    expect(count(await endedRun(fleet.store, run!), 'run-end')).toBe(1)
  })

  test('a stream at one instance tells what a run does at another', async () => {
    const [one, two] = instances
    const taskId = await call(one, 'asks', 'please buy')
    const response = await postModern(
      two,
      'subscriptions/listen',
      { notifications: { taskIds: [taskId] } },
      { capabilities },
    )
    const reading = readBody(response)
    await reading.until('"input_required"')
    const [run] = await runs()
    const open = (await (await fetch(`${one.url}/api/runs/${run}/requests`)).json()) as {
      requests: { requestId: string }[]
    }
    await one.post(`/api/runs/${run}/requests/${open.requests[0]!.requestId}`, { approved: true })
    words.resolve()
    await reading.until('"completed"')
    await reading.leave()
  })

  test('51 answers at once, from MCP, the API and another instance: one counts, and the run goes on once', async () => {
    const [one, two, three] = instances
    const taskId = await call(one, 'asks', 'please buy')
    const { inputRequests } = await reaches(two, taskId, 'input_required')
    const inputResponses = { [Object.keys(inputRequests as object)[0]!]: yes }
    const [run] = await runs()
    const open = (await (await fetch(`${one.url}/api/runs/${run}/requests`)).json()) as {
      requests: { requestId: string }[]
    }
    const { requestId } = open.requests[0]!
    words.resolve()
    const answers = Array.from({ length: 51 }, async (_, i) => {
      const instance = [one, two, three][i % 3]!
      if (i % 2 === 0) return askModern(instance, 'tasks/update', { taskId, inputResponses }, { capabilities })
      return (await instance.post(`/api/runs/${run}/requests/${requestId}`, { approved: true })).status
    })
    for (const answer of await Promise.all(answers)) {
      if (typeof answer === 'number') expect([200, 404]).toContain(answer)
      else expect((answer as Rpc).error).toBeUndefined()
    }
    await reaches(three, taskId, 'completed')
    const entries = await endedRun(fleet.store, run!)
    expect([count(entries, 'response'), count(entries, 'resume')]).toEqual([1, 1])
    expect(fleet.effects().filter((line) => line.startsWith(run!))).toHaveLength(1)
  })

  test('a state that one instance has made is read by another after the first was killed', async () => {
    const [one, two] = instances
    const params = { name: 'asks', arguments: { message: 'please buy' } }
    const blocking = { capabilities: { elicitation: {} } }
    const { result } = await askModern(one, 'tools/call', params, blocking)
    expect(result!['resultType']).toBe('input_required')
    await one.kill()
    words.resolve()
    const inputResponses = { [Object.keys(result!['inputRequests'] as object)[0]!]: yes }
    const retry = { ...params, requestState: result!['requestState'], inputResponses }
    const end = await askModern(two, 'tools/call', retry, blocking)
    expect(JSON.stringify(end.result)).toContain('am done.')
    expect(await runs()).toHaveLength(1)
  })

  test('a legacy session, its question and its cancellation need no instance of their own', async () => {
    const [one, two, three] = instances
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const send = (instance: Instance, body: object, session?: string) =>
      fetch(`${instance.url}/mcp`, {
        method: 'POST',
        headers: { ...headers, ...(session !== undefined && { 'mcp-session-id': session }) },
        body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      })
    const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: {} } }
    const session = (await send(one, { id: 0, method: 'initialize', params })).headers.get('mcp-session-id')!
    const asks = { name: 'asks', arguments: { message: 'please buy' } }
    const reading = readBody(await send(two, { id: 1, method: 'tools/call', params: asks }, session))
    const frames = await reading.until('elicitation/create"')
    await reading.until('\n\n')
    const question = JSON.parse(/data: (.*elicitation\/create.*)/u.exec(await reading.until('\n\n'))![1]!) as {
      id: string
    }
    expect(frames).toContain(question.id)
    words.resolve()
    expect((await send(three, { id: question.id, result: yes }, session)).status).toBe(202)
    expect(await reading.rest()).toContain('am done.')

    words = Promise.withResolvers()
    const long = send(
      one,
      { id: 7, method: 'tools/call', params: { name: 'desk', arguments: { message: 'Hi' } } },
      session,
    )
    const stream = readBody(await long)
    await vi.waitFor(async () => expect(await runs()).toHaveLength(2))
    const cancelled = { method: 'notifications/cancelled', params: { requestId: 7 } }
    expect((await send(three, cancelled, session)).status).toBe(202)
    expect(await stream.rest()).toContain('"isError":true')
  })
})
