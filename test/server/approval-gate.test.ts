/**
 * One gate for tools that need approval, whoever runs them: the server's do not run, and the client is not asked to run its own, before
 * somebody has approved the call. Through the runtime, REST, `useChat` and the OpenAI routes.
 */
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai'
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { createChat, lines } from '../support/chat.ts'
import { agent, entriesOf, only, until } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { framesOf, startServer, type TestServer } from '../support/server.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'

type Prompt = Told['prompts'][number]
const said = (prompt: Prompt) =>
  [...resultsIn(prompt)].map(([id, output]) => `${id}: ${JSON.stringify(output)}`).join(', ')
/** Calls `wipe`, then says what the model was told of it. */
const wipeOnce = (prompt: Prompt): ScriptStep[] =>
  resultsIn(prompt).size === 0
    ? [text('I wipe. '), toolCall('call_1', 'wipe', { disk: 'a' }), finish('tool-calls')]
    : [text(said(prompt)), finish()]

const parameters = { type: 'object', properties: { disk: { type: 'string' } }, required: ['disk'] }
const wipe = { name: 'wipe', description: 'Wipes a disk', parameters }
const inYaml = 'tools: [{ name: wipe, client: true, approval: true, parameters: { disk: { type: string } } }]'
/** The tool of the client with each way to say that it needs approval. */
const ways: Record<string, { yaml: string; tools?: object[] }> = {
  'the agent’s file': { yaml: inYaml },
  'metadata.approval of the request': { yaml: '', tools: [{ ...wipe, metadata: { approval: true } }] },
  'metadata.confirm': { yaml: '', tools: [{ ...wipe, metadata: { confirm: true } }] },
  'confirm of the request': { yaml: '', tools: [{ ...wipe, confirm: true }] },
  'OpenAI’s form': { yaml: '', tools: [{ type: 'function', function: wipe, metadata: { approval: true } }] },
  'the file, against the request': {
    yaml: inYaml,
    tools: [{ ...wipe, metadata: { approval: false }, confirm: false }],
  },
  'the request, on top of the file': {
    yaml: inYaml.replace(', approval: true', ''),
    tools: [{ ...wipe, confirm: true }],
  },
}

async function start(yaml: string, script = wipeOnce, more: object = {}) {
  const m = createTold(script)
  const server = await startServer({ agents: { a: agent(yaml) }, scripts: { m }, ...more })
  onTestFinished(() => server.close())
  return { server, m }
}

async function requestsOf(server: TestServer, run: string) {
  await until(server.store, run, ({ type }) => type === 'suspend')
  const { requests } = (await (await fetch(`${server.url}/api/runs/${run}`)).json()) as {
    requests: { requestId: string; kind: string; input: unknown }[]
  }
  return requests
}

const post = (server: TestServer, run: string, requestId: string, body: object) =>
  server.post(`/api/runs/${run}/requests/${requestId}`, body)

describe.each(Object.entries(ways))('marked by %s', (_, { yaml, tools }) => {
  test('the client is asked once the call was approved, over REST', async () => {
    const { server } = await start(yaml)
    const started = await server.post('/api/runs', {
      agentId: 'a',
      input: { messages: [{ role: 'user', content: 'Wipe a' }], tools },
    })
    const { id } = (await started.json()) as { id: string }
    const [approval, ...others] = await requestsOf(server, id)
    expect([approval!.kind, approval!.input, others]).toEqual(['approval', { disk: 'a' }, []])
    // The client cannot answer what it was not asked.
    expect((await post(server, id, approval!.requestId, { output: 'wiped' })).status).toBe(400)
    expect((await post(server, id, approval!.requestId, { approved: true })).status).toBe(200)
    await expect.poll(async () => (await requestsOf(server, id)).map(({ kind }) => kind)).toEqual(['tool'])
    const [asked] = await requestsOf(server, id)
    expect((await post(server, id, asked!.requestId, { output: 'wiped' })).status).toBe(200)
    await until(server.store, id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(server.store, id)
    expect(only(entries, 'tool-result').map(({ result }) => result)).toEqual(['wiped'])
    expect(only(entries, 'step-start').flatMap(({ stepType, toolCallId }) => (toolCallId ? [stepType] : []))).toEqual([
      'approval',
      'client-tool',
    ])
  })
})

test('without a mark the client is asked at once, and a request cannot loosen what the file demands of a tool of the server', async () => {
  const { server } = await start('', wipeOnce)
  const run = await server.runtime.start('a', { messages: 'Wipe a', tools: [wipe] })
  expect((await requestsOf(server, run.id)).map(({ kind }) => kind)).toEqual(['tool'])
  const ran: unknown[] = []
  const tools = {
    wipe: { parameters: z.object({ disk: z.string() }), execute: (input: unknown) => void ran.push(input) },
  }
  for (const [yaml, sent] of [
    ['tools: [{ name: wipe, approval: true }]', { ...wipe, metadata: { approval: false } }],
    ['tools: [wipe]', { ...wipe, confirm: true }],
  ] as const) {
    const { server: other } = await start(yaml, wipeOnce, { tools })
    const { id } = await other.runtime.start('a', { messages: 'Wipe a', tools: [sent] })
    expect((await requestsOf(other, id)).map(({ kind }) => kind)).toEqual(['approval'])
  }
  expect(ran).toEqual([])
})

test('after a restart between approval and result, the client is still asked only once for each', async () => {
  const first = await start(inYaml, wipeOnce, { keep: true })
  const run = await first.server.runtime.start('a', { messages: 'Wipe a' })
  const [approval] = await requestsOf(first.server, run.id)
  await run.answer(approval!.requestId, { kind: 'approval', approved: true })
  await expect.poll(async () => (await requestsOf(first.server, run.id)).map(({ kind }) => kind)).toEqual(['tool'])
  await first.server.close()
  const { server } = await start(inYaml, wipeOnce, { dir: first.server.dir })
  await server.runtime.recover()
  const [asked, ...more] = await requestsOf(server, run.id)
  expect([asked!.kind, more]).toEqual(['tool', []])
  await post(server, run.id, asked!.requestId, { output: 'wiped' })
  await until(server.store, run.id, ({ type }) => type === 'run-end')
  expect(only(await entriesOf(server.store, run.id), 'request')).toHaveLength(2)
})

test.each([
  ['a tool of the client', inYaml],
  ['a tool of the server', 'tools: [{ name: wipe, approval: true }]'],
])('denied: %s does not run, and the model is told why', async (_, yaml) => {
  const ran: unknown[] = []
  const tools = {
    wipe: { parameters: z.object({ disk: z.string() }), execute: (input: unknown) => void ran.push(input) },
  }
  const { server, m } = await start(yaml, wipeOnce, yaml === inYaml ? {} : { tools })
  const run = await server.runtime.start('a', { messages: 'Wipe a' })
  const [request] = await requestsOf(server, run.id)
  await post(server, run.id, request!.requestId, { approved: false, reason: 'it holds my thesis' })
  await until(server.store, run.id, ({ type }) => type === 'run-end')
  expect(JSON.stringify(m.prompts.at(-1))).toContain('it holds my thesis')
  expect(ran).toEqual([])
})

describe('approved with other arguments', () => {
  const parametersOf = z.object({ disk: z.string().transform((disk) => disk.toUpperCase()) })

  test('a tool of the server runs with them, after another check; log, model and result say so', async () => {
    const ran: unknown[] = []
    const execute = (input: unknown) => (ran.push(input), { done: true })
    const { server, m } = await start('tools: [{ name: wipe, approval: true }]', wipeOnce, {
      tools: { wipe: { parameters: parametersOf, execute } },
    })
    const run = await server.runtime.start('a', { messages: 'Wipe a' })
    const [request] = await requestsOf(server, run.id)
    const wrong = await post(server, run.id, request!.requestId, { approved: true, input: { disk: 7 } })
    expect([wrong.status, await wrong.json()]).toMatchObject([
      400,
      { error: { message: expect.stringMatching(/wipe.*disk/u) } },
    ])
    const denied = await post(server, run.id, request!.requestId, { approved: false, input: { disk: 'b' } })
    expect(denied.status).toBe(400)
    const answer = { approved: true, input: { disk: 'b' } }
    const right = await post(server, run.id, request!.requestId, answer)
    expect(await right.json()).toMatchObject({ duplicate: false, answer: { kind: 'approval', ...answer } })
    expect(await (await post(server, run.id, request!.requestId, answer)).json()).toMatchObject({ duplicate: true })
    expect((await post(server, run.id, request!.requestId, { approved: true })).status).toBe(409)
    await until(server.store, run.id, ({ type }) => type === 'run-end')
    expect(ran).toEqual([{ disk: 'B' }])
    const entries = await entriesOf(server.store, run.id)
    expect(only(entries, 'response')[0]!.answer).toMatchObject(answer)
    expect(only(entries, 'tool-result')[0]!.result).toEqual({ done: true })
    // The model's own call is as it wrote it. Its result says what ran.
    const told = JSON.stringify(m.prompts.at(-1)!.slice(1))
    expect(told).toContain('"input":{"disk":"a"}')
    expect(resultsIn(m.prompts.at(-1)!).get('call_1')).toEqual({
      type: 'text',
      value: 'The call was approved with other arguments: {"disk":"b"}. Its result: {"done":true}',
    })
  })

  test.each([
    ['as the model wrote them', { disk: 'a', why: { full: true, since: 3 } }],
    ['as the tool reads them, in another order', { why: { since: 3, full: true }, disk: 'A' }],
  ])('the call’s own arguments, %s, are a plain approval, also when it is repeated', async (_, input) => {
    const ran: unknown[] = []
    const parameters = parametersOf.extend({ why: z.object({ full: z.boolean(), since: z.number() }) })
    const once = (prompt: Prompt): ScriptStep[] =>
      resultsIn(prompt).size === 0
        ? [toolCall('call_1', 'wipe', { disk: 'a', why: { full: true, since: 3 } }), finish('tool-calls')]
        : [text(said(prompt)), finish()]
    const { server, m } = await start('tools: [{ name: wipe, approval: true }]', once, {
      tools: { wipe: { parameters, execute: (given: unknown) => (ran.push(given), { done: true }) } },
    })
    const run = await server.runtime.start('a', { messages: 'Wipe a' })
    const [request] = await requestsOf(server, run.id)
    const told = { approved: true, reason: 'go', input }
    const plain = { requestId: request!.requestId, answer: { kind: 'approval', approved: true, reason: 'go' } }
    const answered = await post(server, run.id, request!.requestId, told)
    expect(await answered.json()).toEqual({ ...plain, duplicate: false })
    await until(server.store, run.id, ({ type }) => type === 'run-end')
    for (const again of [told, { approved: true, reason: 'go' }]) {
      const repeated = await post(server, run.id, request!.requestId, again)
      expect(await repeated.json()).toEqual({ ...plain, duplicate: true })
    }
    expect(only(await entriesOf(server.store, run.id), 'response')[0]!.answer).toEqual(plain.answer)
    expect(ran).toEqual([{ disk: 'A', why: { full: true, since: 3 } }])
    expect(resultsIn(m.prompts.at(-1)!).get('call_1')).toEqual({ type: 'json', value: { done: true } })
  })

  test('a client is asked to run its tool with them', async () => {
    const { server } = await start(inYaml)
    const run = await server.runtime.start('a', { messages: 'Wipe a' })
    const [request] = await requestsOf(server, run.id)
    await run.answer(request!.requestId, { kind: 'approval', approved: true, input: { disk: 'b' } })
    await expect
      .poll(async () => (await requestsOf(server, run.id))[0])
      .toMatchObject({ kind: 'tool', input: { disk: 'b' } })
  })
})

describe('useChat', () => {
  async function chatWith(server: TestServer, tools: object[] | undefined) {
    const ran: unknown[] = []
    const sendAutomaticallyWhen = (options: { messages: UIMessage[] }) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
      lastAssistantMessageIsCompleteWithToolCalls(options)
    const made = createChat(server.url, {
      id: 'c',
      body: { tools },
      sendAutomaticallyWhen,
      onToolCall({ toolCall: { toolCallId, toolName, input } }) {
        ran.push(input)
        void made.chat.addToolOutput({ tool: toolName, toolCallId, output: 'wiped' })
      },
    })
    await made.chat.sendMessage({ text: 'Wipe a' })
    const part = made.chat.lastMessage!.parts.find(({ type }) => type === 'tool-wipe') as {
      state: string
      input: unknown
      approval: { id: string }
    }
    return { ...made, ran, part }
  }

  test.each(Object.entries(ways))(
    'marked by %s: the page’s tool runs once it was approved',
    async (_, { yaml, tools }) => {
      const { server, m } = await start(yaml)
      const { chat, ran, part, errors, runs } = await chatWith(server, tools)
      expect([part.state, part.input, ran]).toEqual(['approval-requested', { disk: 'a' }, []])
      await chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
      await expect
        .poll(() => lines(chat.messages).at(-1))
        .toMatch(/^assistant: I wipe\. {2}\[wipe output-available\] call_1: /u)
      await expect.poll(() => chat.status).toBe('ready')
      expect([ran, errors, new Set(runs).size]).toEqual([[{ disk: 'a' }], [], 1])
      expect(JSON.stringify(resultsIn(m.prompts.at(-1)!).get('call_1'))).toContain('wiped')
    },
  )

  test('denied: it never runs, and the model is told the reason', async () => {
    const { server, m } = await start(inYaml)
    const { chat, ran, part, errors } = await chatWith(server, undefined)
    await chat.addToolApprovalResponse({ id: part.approval.id, approved: false, reason: 'no way' })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('[wipe output-denied] call_1: ')
    await expect.poll(() => chat.status).toBe('ready')
    expect([ran, errors]).toEqual([[], []])
    expect(JSON.stringify(m.prompts.at(-1))).toContain('no way')
    await chat.sendMessage({ text: 'And now?' })
    expect(errors).toEqual([])
  })

  test('a result before the approval is refused, and the run goes on waiting', async () => {
    const { server } = await start(inYaml)
    const { chat, runs } = await chatWith(server, undefined)
    const [user, assistant] = chat.messages
    const done = {
      type: 'tool-wipe',
      toolCallId: 'call_1',
      state: 'output-available',
      input: { disk: 'a' },
      output: 'wiped',
    }
    const messages = [user, { ...assistant, parts: [done] }]
    const refused = await server.post('/api/chat', { agentId: 'a', id: 'c', messages })
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('must be answered with an approval'),
    ])
    expect((await requestsOf(server, runs[0]!)).map(({ kind }) => kind)).toEqual(['approval'])
  })

  test('approved elsewhere with other arguments: who joins the run is asked to run the tool with these', async () => {
    const { server } = await start(inYaml)
    const { part, runs } = await chatWith(server, undefined)
    await post(server, runs[0]!, part.approval.id, { approved: true, input: { disk: 'b' } })
    await expect.poll(async () => (await requestsOf(server, runs[0]!)).map(({ kind }) => kind)).toEqual(['tool'])
    const encoder = uiWire.createEncoder({ resumedAt: Number.MAX_SAFE_INTEGER })
    const frames = framesOf((await entriesOf(server.store, runs[0]!)).map((entry) => encoder.encode(entry)).join(''))
    const shown = frames.filter((frame) => frame !== 'done' && 'toolCallId' in frame)
    const call = { toolCallId: 'call_1', toolName: 'wipe', type: 'tool-input-available' }
    expect(shown.slice(-3)).toEqual([
      { ...call, input: { disk: 'a' }, providerExecuted: true },
      { type: 'tool-approval-request', approvalId: part.approval.id, toolCallId: 'call_1' },
      { ...call, input: { disk: 'b' }, providerExecuted: false },
    ])
  })
})

describe('OpenAI', () => {
  type Messages = OpenAI.ChatCompletionMessageParam[]
  const asked: Messages = [{ role: 'user', content: 'Wipe a' }]
  const tools = [
    { type: 'function', function: wipe, metadata: { approval: true } },
  ] as unknown as OpenAI.ChatCompletionTool[]
  interface Aside {
    millrace: { runId: string; requests: { requestId: string; toolName: string }[]; denied: unknown[] }
  }

  test.each([true, false])(
    'the call is sent once it was approved, in the rest of the answer (stream: %s)',
    async (streamed) => {
      const { server } = await start('')
      const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
      const ask = (messages: Messages) =>
        streamed
          ? client.chat.completions.stream({ model: 'a', messages, tools }).finalChatCompletion()
          : client.chat.completions.create({ model: 'a', messages, tools })
      const first = await ask(asked)
      const [choice] = first.choices
      expect([choice!.finish_reason, choice!.message.tool_calls ?? []]).toEqual(['stop', []])
      const { runId, requests } = (first as unknown as Aside).millrace
      expect(requests).toMatchObject([{ toolName: 'wipe' }])
      await post(server, runId, requests[0]!.requestId, { approved: true, input: { disk: 'b' } })
      const conversation: Messages = [...asked, { role: 'assistant', content: choice!.message.content }]
      const rest = (await ask(conversation)).choices[0]!
      expect(rest.finish_reason).toBe('tool_calls')
      expect(rest.message.tool_calls).toMatchObject([
        { id: 'call_1', function: { name: 'wipe', arguments: '{"disk":"b"}' } },
      ])
      const { tool_calls } = rest.message
      const done = await ask([
        ...conversation,
        { role: 'assistant', content: rest.message.content, tool_calls: tool_calls! },
        { role: 'tool', tool_call_id: 'call_1', content: 'wiped' },
      ])
      expect(done.choices[0]!.message.content).toContain('wiped')
    },
  )

  test('denied, or without a durable store: the client never sees the call, and the model is told', async () => {
    const { server } = await start('')
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const first = await client.chat.completions.create({ model: 'a', messages: asked, tools })
    const { runId, requests } = (first as unknown as Aside).millrace
    await post(server, runId, requests[0]!.requestId, { approved: false, reason: 'no way' })
    const { content } = first.choices[0]!.message
    const rest = await client.chat.completions.create({
      model: 'a',
      messages: [...asked, { role: 'assistant', content }],
    })
    expect([rest.choices[0]!.finish_reason, rest.choices[0]!.message.content]).toEqual([
      'stop',
      expect.stringContaining('no way'),
    ])
    const { server: other } = await start('', wipeOnce, { wrapStore: () => memoryStore() })
    const there = new OpenAI({ baseURL: `${other.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const got = await there.chat.completions.create({ model: 'a', messages: asked, tools })
    expect(got.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: expect.stringContaining('not durable') },
    })
    expect(got.choices[0]!.message.tool_calls).toBe(undefined)
    expect((got as unknown as Aside).millrace.denied).toMatchObject([{ toolName: 'wipe' }])
  })
})
