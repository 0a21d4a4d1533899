/**
 * An approval that needs a role which the client does not have: over each protocol the client is not asked, learns that the run waits, and gets the
 * rest once somebody with the role has answered.
 */
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Reply } from '../../src/part/request-part.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import { createAgUiClient, only as onlyEvents } from '../support/ag-ui.ts'
import { agent, entriesOf, only, until } from '../support/engine.ts'
import { callers, createTestAccess, headersFor, tokenOf } from '../support/callers.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { framesOf, startServer } from '../support/server.ts'
import { connectSocket, isTerminal, judged, textOf } from '../support/socket.ts'

const yes: Reply = { kind: 'approval', approved: true }
const byOperator = 'tools: [{ name: pay, approval: { roles: [operator] } }]'
const ofClient =
  'tools: [{ name: pay, client: true, approval: { roles: [operator] }, parameters: { sum: { type: number } } }]'

type Caller = keyof typeof callers

/** A server that alice and an operator use. `post`: as `caller`. */
async function start(config = byOperator, caller: Caller = 'alice', names = ['pay']) {
  const model = createTold((prompt) =>
    resultsIn(prompt).size === 0
      ? [...names.map((name, i) => toolCall(`call_${i + 1}`, name, { sum: 5 })), finish('tool-calls')]
      : [text('Paid.'), finish()],
  )
  const pay = { parameters: { type: 'object' }, execute: () => 'receipt' }
  const server = await startServer(
    { agents: { a: agent(config) }, tools: { pay, mail: pay }, scripts: { m: model } },
    { access: createTestAccess() },
  )
  onTestFinished(() => server.close())
  const headers = headersFor(caller)
  const post = (path: string, body: unknown, by = caller) => server.post(path, body, { headers: headersFor(by) })
  const requestOf = async (run: string) => {
    await until(server.store, run, ({ type }) => type === 'suspend')
    const requests = only(await entriesOf(server.store, run), 'request')
    return requests.find((request) => request.roles !== undefined)!.requestId
  }
  /** Somebody with the role approves. */
  const approve = async (run: string) => {
    const path = `/api/runs/${run}/requests/${await requestOf(run)}`
    expect((await post(path, { approved: true }, 'operator')).status).toBe(200)
  }
  return { server, headers, post, requestOf, approve }
}

const waiting = { toolCallId: 'call_1', toolName: 'pay', roles: ['operator'] }
const messages = [{ role: 'user', id: 'm1', content: 'Pay 5', parts: [{ type: 'text', text: 'Pay 5' }] }]

describe('REST', () => {
  test('an answer without the role is 403; the run and its request stay', async () => {
    const { server, post, requestOf, approve } = await start()
    const started = await post('/api/runs', { agentId: 'a', input: { messages } })
    const { id } = (await started.json()) as { id: string }
    const requestId = await requestOf(id)
    const refused = await post(`/api/runs/${id}/requests/${requestId}`, { approved: true })
    expect(refused.status).toBe(403)
    expect(await refused.json()).toMatchObject({ error: { code: 'forbidden' } })
    expect(only(await entriesOf(server.store, id), 'response')).toEqual([])
    await approve(id)
    await until(server.store, id, ({ type }) => type === 'run-end')
    const late = await post(`/api/runs/${id}/requests/${requestId}`, { approved: false })
    expect(late.status).toBe(409)
    expect(only(await entriesOf(server.store, id), 'response')).toMatchObject([
      { answer: yes, by: { id: 'olga', tenant: 'acme' } },
    ])
  })
})

describe('useChat', () => {
  const chat = async (config?: string, caller?: Caller) => {
    const { server, post, approve } = await start(config, caller)
    const response = await post('/api/chat', { agentId: 'a', id: 'chat', messages })
    const run = response.headers.get('x-millrace-run-id')!
    const frames = framesOf(await response.text()) as Record<string, unknown>[]
    return { server, approve, run, frames, types: frames.map(({ type }) => type) }
  }

  test('a data part says what waits, and no approval is requested', async () => {
    const { frames, types } = await chat()
    expect(types).toContain('tool-input-available')
    expect(types).not.toContain('tool-approval-request')
    expect(frames.slice(-3)).toMatchObject([
      { type: 'data-waiting', data: waiting },
      { type: 'finish', finishReason: 'tool-calls' },
      'done',
    ])
  })

  test('a client’s own tool is marked as not to be run, until it is approved', async () => {
    const { server, approve, run, frames } = await chat(ofClient)
    expect(frames).toContainEqual(expect.objectContaining({ type: 'tool-input-available', providerExecuted: true }))
    await approve(run)
    await until(
      server.store,
      run,
      ({ type, ...entry }) => type === 'request' && 'kind' in entry && entry.kind === 'tool',
    )
    const encoder = uiWire.createEncoder({ roles: ['user'], resumedAt: Infinity })
    const again = framesOf((await entriesOf(server.store, run)).map((entry) => encoder.encode(entry)).join(''))
    const calls = (again as Record<string, unknown>[]).filter(({ type }) => type === 'tool-input-available')
    expect(calls.at(-1)).toMatchObject({ toolCallId: 'call_1', providerExecuted: false })
  })

  test('with the role it is asked', async () => {
    const { types } = await chat(byOperator, 'operator')
    expect(types).toContain('tool-approval-request')
    expect(types).not.toContain('data-waiting')
  })
})

describe('AG-UI', () => {
  test('no interrupt; an event says what waits. Resuming all the same is refused', async () => {
    const { server, headers, requestOf } = await start()
    const client = createAgUiClient(server.url, { headers })
    client.say('Pay 5')
    const { events, end, run } = await client.run()
    expect(onlyEvents(events, 'CUSTOM')).toMatchObject([{ name: 'waiting', value: waiting }])
    expect(end).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    const interruptId = await requestOf(run)
    const resume = [{ interruptId, status: 'resolved' as const, payload: { approved: true } }]
    await expect(client.run({ resume })).rejects.toThrow(/403|operator/u)
    expect((await server.store.runs.get(run))!.status).toBe('suspended')
  })
})

describe('AG-UI, with an approval that the client may give beside one that it may not', () => {
  test('only its own is an interrupt, and resume need not answer the other', async () => {
    const both = `${byOperator.slice(0, -1)}, { name: mail, approval: true }]`
    const { server, headers, approve } = await start(both, 'alice', ['pay', 'mail'])
    const client = createAgUiClient(server.url, { headers })
    client.say('Pay 5')
    const { end, run } = await client.run()
    expect(end).toMatchObject({ outcome: { type: 'interrupt', interrupts: [{ metadata: { toolName: 'mail' } }] } })
    const { outcome } = end as { outcome: { interrupts: { id: string }[] } }
    const resume = [
      { interruptId: outcome.interrupts[0]!.id, status: 'resolved' as const, payload: { approved: true } },
    ]
    expect((await client.run({ resume })).end).toMatchObject({ outcome: { type: 'success' } })
    expect((await server.store.runs.get(run))!.status).toBe('suspended')
    await approve(run)
    await until(server.store, run, ({ type }) => type === 'run-end')
    expect(only(await entriesOf(server.store, run), 'tool-result').map(({ toolName }) => toolName)).toEqual([
      'mail',
      'pay',
    ])
  })
})

describe('Socket.IO', () => {
  test('the stream stays open, and goes on when somebody else has approved', async () => {
    const { server, approve } = await start()
    const client = await connectSocket(server.url, 'websocket', { auth: { token: tokenOf('alice') } })
    const { millraceRunId } = await client.run({})
    await client.until(({ event }) => event.type === 'CUSTOM' && event.name === 'waiting')
    const run = String(millraceRunId)
    await until(server.store, run, ({ type }) => type === 'suspend')
    expect(client.of('r').some(isTerminal)).toBe(false)
    await approve(run)
    const events = await client.ended('r')
    await judged(events)
    expect(textOf(events)).toBe('Paid.')
    expect(onlyEvents(events, 'CUSTOM').map(({ value }) => value as unknown)).toMatchObject([
      waiting,
      { ...waiting, outcome: 'answered' },
    ])
  })
})

describe('OpenAI', () => {
  test('words say who must approve, without a way to do it; the rest comes when the conversation is sent again', async () => {
    const { server, approve } = await start()
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: tokenOf('alice'), maxRetries: 0 })
    const asked = [{ role: 'user' as const, content: 'Pay 5' }]
    const first = await client.chat.completions.create({ model: 'a', messages: asked })
    const aside = (first as { millrace?: { runId: string } }).millrace!
    expect(aside).toEqual({ runId: expect.any(String), threadId: expect.any(String), waiting: [waiting] })
    const { content } = first.choices[0]!.message
    const requestId = /waits for (\S+)\]$/u.exec(content!)![1]!
    expect(content).toBe(
      [
        'This call waits for somebody else to approve it and has not run:',
        '- pay({"sum":5}): operator',
        'When all are answered, continue this conversation to get the rest; a new message before that closes the call, and it never runs.',
        `[run ${aside.runId} waits for ${requestId}]`,
      ].join('\n'),
    )
    await approve(aside.runId)
    const rest = await client.chat.completions.create({
      model: 'a',
      messages: [...asked, { role: 'assistant', content }],
    })
    expect(rest.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Paid.' } })
  })
})
