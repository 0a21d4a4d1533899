/** Approvals and questions over AG-UI: an interrupt ends the stream, `resume[]` in the next request answers it. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { ExecutionContext } from '../../src/engine/registry.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createAgUiClient, only, type AgUiAnswer } from '../support/ag-ui.ts'
import { agent, entriesOf, only as onlyParts, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

const locate = { name: 'locate', description: 'Where the user is', parameters: { type: 'object', properties: {} } }

/** Pays twice at most, each time after approval, then says what the results were. */
async function paying(calls: [string, string][] = [['c1', 'pay']], more: Partial<EngineOptions> = {}) {
  const seen = { paid: 0 }
  const pay = { parameters: z.looseObject({}), approval: true, execute: () => `paid ${++seen.paid}` }
  const model = createTold((prompt) => {
    const results = resultsIn(prompt)
    const told = calls.map(([id]) => results.get(id))
    if (told.every((result) => result === undefined)) {
      return [...calls.map(([id, name]) => toolCall(id, name)), finish('tool-calls')]
    }
    return [text(JSON.stringify(told)), finish()]
  })
  const server = await startServer({
    agents: { a: agent('tools: [pay]') },
    tools: { pay },
    scripts: { m: model },
    ...more,
  })
  onTestFinished(() => server.close())
  return { ...server, seen, model }
}

function interruptsOf({ end }: AgUiAnswer) {
  if (end.type !== 'RUN_FINISHED' || end.outcome?.type !== 'interrupt')
    throw new Error(`no interrupt: ${JSON.stringify(end)}`)
  return end.outcome.interrupts
}

const resolved = (interruptId: string, payload: unknown) => ({ interruptId, status: 'resolved' as const, payload })

describe('AG-UI: interrupts', () => {
  test('approved: the interrupt says what is asked, the tool runs once, its result belongs to the call', async () => {
    const { url, seen } = await paying()
    const client = createAgUiClient(url)
    client.say('Pay')
    const first = await client.run()
    const [interrupt] = interruptsOf(first)
    expect(interrupt).toMatchObject({
      reason: 'tool_call',
      toolCallId: 'c1',
      message: expect.any(String),
      responseSchema: { properties: { approved: { type: 'boolean' } }, required: ['approved'] },
      expiresAt: expect.stringMatching(/^\d{4}-.*Z$/u),
    })
    expect([only(first.events, 'TOOL_CALL_RESULT'), seen.paid]).toEqual([[], 0])

    const resume = [resolved(interrupt!.id, { approved: true })]
    const second = await client.run({ runId: 'r2', resume })
    expect(second.run).toBe(first.run)
    expect(only(second.events, 'TOOL_CALL_START')).toEqual([])
    expect(only(second.events, 'TOOL_CALL_RESULT')).toMatchObject([{ toolCallId: 'c1', content: 'paid 1' }])
    expect(second.end).toMatchObject({ outcome: { type: 'success' } })
    // Replayed: the same answer, nothing paid again.
    expect((await client.run({ runId: 'r2', resume })).run).toBe(first.run)
    expect(seen.paid).toBe(1)
  })

  test.each([
    ['denied', { status: 'resolved', payload: { approved: false, reason: 'too much' } }, 'too much'],
    ['cancelled', { status: 'cancelled' }, 'cancelled'],
  ] as const)('%s: the model is told, and nothing runs', async (_, entry, reason) => {
    const { url, seen } = await paying()
    const client = createAgUiClient(url)
    client.say('Pay')
    const [interrupt] = interruptsOf(await client.run())
    const { end, events } = await client.run({ resume: [{ interruptId: interrupt!.id, ...entry }] })
    expect(end).toMatchObject({ outcome: { type: 'success' }, result: expect.stringContaining(reason) })
    expect(only(events, 'TOOL_CALL_RESULT')).toMatchObject([{ metadata: { isError: true, outcome: 'denied' } }])
    expect(seen.paid).toBe(0)
  })

  test('a question of a step: its own reason, message and schema; a value that does not fit is refused, then it fits', async () => {
    const book = async (_: unknown, context: ExecutionContext) =>
      context.request({ reason: 'city', message: 'Which city?', schema: { type: 'string' } })
    const server = await startServer({
      agents: { a: 'workflow:\n  - { id: book, type: book, config: {}, result: booked }\nreturn: "$booked"\n' },
      steps: { book },
    })
    onTestFinished(() => server.close())
    const client = createAgUiClient(server.url)
    client.say('Book')
    const [interrupt] = interruptsOf(await client.run())
    expect(interrupt).toMatchObject({ reason: 'city', message: 'Which city?', responseSchema: { type: 'string' } })
    expect(interrupt).not.toHaveProperty('toolCallId')
    await expect(client.run({ resume: [resolved(interrupt!.id, 7)] })).rejects.toMatchObject({ status: 400 })
    const { end } = await client.run({ resume: [resolved(interrupt!.id, 'Rome')] })
    expect(end).toMatchObject({ outcome: { type: 'success' }, result: { outcome: 'answered', value: 'Rome' } })
  })

  test('all open interrupts must be answered at once; an unknown one is ignored, and said', async () => {
    const { url, seen, post } = await paying([
      ['c1', 'pay'],
      ['c2', 'pay'],
    ])
    const client = createAgUiClient(url)
    client.say('Pay')
    const [one, two] = interruptsOf(await client.run())
    const input = { threadId: client.threadId, runId: 'r2', messages: client.agent.messages }
    const send = async (more: object) => {
      const response = await post('/ag-ui/a', { ...input, ...more })
      return { status: response.status, body: await response.text() }
    }
    const yes = { approved: true }
    // The client asks the model to go on, or answers one of two.
    for (const resume of [undefined, [], [resolved(one!.id, yes)], [resolved('unknown', yes)]]) {
      const { status, body } = await send({ resume })
      expect([status, JSON.parse(body)]).toMatchObject([409, { error: { code: 'interrupts-open' } }])
      expect(body).toContain(two!.id)
    }
    const bad = await send({ resume: [resolved(one!.id, { approved: 'yes' }), resolved(two!.id, yes)] })
    expect([bad.status, bad.body]).toEqual([
      400,
      expect.stringContaining('resume[0].payload.approved must be true or false.'),
    ])
    expect(seen.paid).toBe(0)
    const all = await client.run({ resume: [resolved(one!.id, yes), resolved('unknown', yes), resolved(two!.id, yes)] })
    expect(only(all.events, 'CUSTOM')).toMatchObject([{ name: 'warning', value: expect.stringContaining('unknown') }])
    expect(seen.paid).toBe(2)
  })

  test('a new message of the user drops what is open: by itself after a reload, or with each interrupt cancelled', async () => {
    const { url, seen, store } = await paying()
    const client = createAgUiClient(url)
    client.say('Pay')
    const [interrupt] = interruptsOf(await client.run())
    client.say('No, wait')
    // An approval that comes with another message would lose either.
    await expect(client.run({ resume: [resolved(interrupt!.id, { approved: true })] })).rejects.toMatchObject({
      status: 400,
    })
    const { end } = await client.run({ resume: [{ interruptId: interrupt!.id, status: 'cancelled' }] })
    expect(end).toMatchObject({ type: 'RUN_FINISHED' })
    const rows = await store.runs.list({ threadId: client.threadId })
    expect(rows.map(({ status }) => status)).toEqual([expect.any(String), 'aborted'])

    const other = createAgUiClient(url)
    other.say('Pay')
    await other.run()
    const reloaded = createAgUiClient(url, { threadId: other.threadId, messages: other.agent.messages })
    reloaded.say('Something else')
    await reloaded.run()
    expect((await store.runs.list({ threadId: other.threadId })).at(-1)?.status).toBe('aborted')
    expect(seen.paid).toBe(0)
  })

  test('an approval and a client’s tool at once: the interrupt wins, and one request answers both', async () => {
    const { url, seen } = await paying([
      ['c1', 'locate'],
      ['c2', 'pay'],
    ])
    const client = createAgUiClient(url, { tools: [locate] })
    client.say('Pay here')
    const first = await client.run()
    const [interrupt, ...more] = interruptsOf(first)
    expect([interrupt!.toolCallId, more]).toEqual(['c2', []])
    client.answer('c1', '{"city":"Rome"}')
    // Without the approval the protocol demands a refusal, and the result is not lost: it is in the next request, too.
    const bare = createAgUiClient(url, { threadId: client.threadId, messages: client.agent.messages })
    await expect(bare.run()).rejects.toMatchObject({ status: 409 })
    const { end } = await client.run({ resume: [resolved(interrupt!.id, { approved: true })] })
    expect(end).toMatchObject({ outcome: { type: 'success' }, result: expect.stringContaining('Rome') })
    expect(seen.paid).toBe(1)
  })

  test('another thread’s call or interrupt answers nothing there', async () => {
    const { url, seen, store } = await paying([
      ['c1', 'locate'],
      ['c2', 'pay'],
    ])
    const hers = createAgUiClient(url, { tools: [locate], threadId: 'hers' })
    hers.say('Pay here')
    const first = await hers.run()
    const [interrupt] = interruptsOf(first)

    const his = createAgUiClient(url, { tools: [locate], threadId: 'his', messages: hers.agent.messages })
    his.answer('c1', '"stolen"')
    const { events, run } = await his.run({ resume: [resolved(interrupt!.id, { approved: true })] })
    expect(run).not.toBe(first.run)
    expect(only(events, 'CUSTOM')).toMatchObject([{ name: 'warning', value: expect.stringContaining(interrupt!.id) }])
    expect((await store.runs.get(first.run))?.status).toBe('suspended')
    expect(onlyParts(await entriesOf(store, first.run), 'response')).toEqual([])
    expect(seen.paid).toBe(0)
  })

  test('answered over AG-UI and by useChat at once: one counts, the other is told', async () => {
    const { url, seen, post, store } = await paying()
    const client = createAgUiClient(url)
    client.say('Pay')
    const first = await client.run()
    const [interrupt] = interruptsOf(first)
    const [mine, chat] = await Promise.allSettled([
      client.run({ resume: [resolved(interrupt!.id, { approved: true })] }),
      post(`/api/runs/${first.run}/requests/${interrupt!.id}`, { approved: false }),
    ])
    expect(onlyParts(await entriesOf(store, first.run), 'response')).toHaveLength(1)
    const isApproved = mine.status === 'fulfilled'
    expect(seen.paid).toBe(isApproved ? 1 : 0)
    expect((chat as PromiseFulfilledResult<Response>).value.status).toBe(isApproved ? 409 : 200)
  })
})
