/** Runs whose model calls agents, read by the official clients: `useChat` of `ai` 7, `HttpAgent` of AG-UI 1.0, Socket.IO. */
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { agUiRuns } from '../ag-ui-judge.ts'
import { show } from '../ui-client.ts'
import type { AgUiEvent } from '../../src/wire/ag-ui/ag-ui-event.ts'
import { agUiObjectsWire } from '../../src/wire/ag-ui/ag-ui.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import type { UiAgent } from '../../src/wire/ui/ui-agents.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createAgUiClient, only, textsOf } from '../support/ag-ui.ts'
import { createChat, lines } from '../support/chat.ts'
import { entriesOf } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'
import { parse } from './metrics-text.ts'
import { connectSocket, judged, textOf, user } from '../support/socket.ts'

/** What only the inner model says and is told. */
const secret = 'words of the inner model'

const deskFile = (tool: string) => `
workflow:
  - { id: desk, type: llm, config: { model: "script:desk", stream: true, messages: "$input.messages", maxSteps: 9, tools: [${tool}] } }`
const helperFile = (tools: string, stream = false) => `
metadata: { description: Helps. }
workflow:
  - { id: help, type: llm, config: { model: "script:helper", stream: ${stream}, messages: "$input.messages", maxSteps: 9, tools: [${tools}] } }`

/** The desk calls `n` helpers at once; each calls a tool, then says what came back. */
async function serving(n: number, { agentTool = '{ agent: helper }', tools = 'look', approval = false } = {}) {
  const desk = createTold((prompt) => {
    if (prompt.at(-1)!.role === 'tool') return [text('All done.'), finish()]
    const round = prompt.filter(({ role }) => role === 'user').length
    const calls = Array.from({ length: n }, (_, i) => toolCall(`c${round}-${i}`, 'helper', { message: `part ${i}` }))
    return [text('I ask. '), ...calls, finish('tool-calls')]
  })
  const helper = createTold((prompt) => {
    const [result] = resultsIn(prompt).values()
    if (result !== undefined) return [text(`Found ${(result as { value: string }).value}.`), finish()]
    // Providers number calls anew in each answer.
    return [text(secret), toolCall('call_1', tools === 'look' ? 'look' : 'pick'), finish('tool-calls')]
  })
  let looked = 0
  const look = { parameters: z.looseObject({}), approval, execute: () => `thing ${++looked}` }
  const server = await startServer({
    agents: { desk: deskFile(agentTool), helper: helperFile(tools === 'look' ? 'look' : '') },
    tools: { look },
    scripts: { desk, helper },
  })
  onTestFinished(() => server.close())
  const told = () => JSON.stringify(desk.prompts)
  return { ...server, desk, helper, told }
}

const partsOf = (parts: readonly { type: string }[], type: string) => parts.filter((part) => part.type === type)
const agentsIn = (parts: readonly { type: string }[]) =>
  partsOf(parts, 'data-agent').map((part) => (part as unknown as { data: UiAgent }).data)
const startedIn = (events: readonly AgUiEvent[]) => only(events, 'SUBAGENT_STARTED')

describe.each([1, 4, 16])('%i agents at once', (n) => {
  test('useChat: a part for each, its outcome in the tool part, and nothing of them in the next prompt', async () => {
    const { url, told } = await serving(n)
    const { chat, errors } = createChat(url, { agentId: 'desk' })
    await chat.sendMessage({ text: 'Hi' })
    const { parts } = chat.lastMessage!
    expect(agentsIn(parts).map(({ agent, status }) => [agent, status])).toEqual(Array(n).fill(['helper', 'done']))
    for (const { tail, tools } of agentsIn(parts)) {
      expect(tail).toMatch(/^words of the inner model\n\nFound thing \d+\.$/u)
      expect(tools).toMatchObject([{ toolName: 'look', status: 'done' }])
    }
    expect(partsOf(parts, 'tool-helper').map((part) => (part as { state?: string }).state)).toEqual(
      Array(n).fill('output-available'),
    )
    await chat.sendMessage({ text: 'Again' })
    expect(lines(chat.messages).at(-1)).toContain('All done.')
    expect(errors).toEqual([])
    expect(told()).toContain('Found thing 1.')
    expect(told()).not.toContain(secret)
  })

  test('AG-UI: each is a subagent, closed before the run, and nothing of them is in the next prompt', async () => {
    const { url, told } = await serving(n)
    const client = createAgUiClient(url, { agent: 'desk' })
    client.say('Hi')
    const { events, end } = await client.run()
    expect(startedIn(events)).toHaveLength(n)
    expect(new Set(startedIn(events).map(({ subagentRunId }) => subagentRunId)).size).toBe(n)
    const calls = new Set(only(events, 'TOOL_CALL_START').map(({ toolCallId }) => toolCallId))
    expect(calls.size).toBe(2 * n)
    for (const { parentToolCallId } of startedIn(events)) expect(calls).toContain(parentToolCallId)
    expect(
      only(events, 'SUBAGENT_FINISHED')
        .map(({ result }) => String(result))
        .sort(),
    ).toEqual(Array.from({ length: n }, (_, i) => `Found thing ${i + 1}.`).sort())
    expect(end).toMatchObject({ type: 'RUN_FINISHED', result: 'All done.', outcome: { type: 'success' } })
    // The client has them, and sends them back.
    const inner = client.agent.messages.filter((message) => message.subagentRunId !== undefined)
    expect(textsOf(inner)).toContain(secret)
    client.say('Again')
    await client.run()
    expect(told()).toContain('Found thing 1.')
    expect(told()).not.toContain(secret)
    const ids = client.agent.messages.flatMap((message) =>
      message.role === 'assistant' ? (message.toolCalls ?? []).map(({ id }) => id) : [],
    )
    expect(new Set(ids).size).toBe(ids.length)
    for (const message of client.agent.messages) {
      if (message.role !== 'assistant') continue
      for (const call of message.toolCalls ?? []) expect(() => JSON.parse(call.function.arguments)).not.toThrow()
    }
  })

  test('AG-UI of an older client, OpenAI and plain text: the outer call at most', async () => {
    const { url, post } = await serving(n)
    const client = createAgUiClient(url, { agent: 'desk', old: true })
    client.say('Hi')
    const { events } = await client.run()
    expect(JSON.stringify(events)).not.toMatch(/SUBAGENT|subagentRunId|inner model/u)
    expect(only(events, 'TOOL_CALL_RESULT')).toHaveLength(n)
    const body = { model: 'desk', messages: [{ role: 'user', content: 'Hi' }] }
    const answered = (await (await post('/v1/chat/completions', body)).json()) as { choices: object[] }
    expect(answered.choices).toMatchObject([{ message: { content: 'I ask. \n\nAll done.' }, finish_reason: 'stop' }])
    const chat = { agentId: 'desk', messages: [{ role: 'user', content: 'Hi' }] }
    expect(await (await post('/api/beddel/chat', chat)).text()).toBe('I ask. \n\nAll done.')
  })

  test('Socket.IO: the same events, and no id starts twice', async () => {
    const { url } = await serving(n)
    const client = await connectSocket(url)
    await client.run({ forwardedProps: { agent: 'desk' } })
    const events = await client.ended('r')
    await judged(events)
    expect(startedIn(events)).toHaveLength(n)
    const answer = events.filter((event) => (event as { subagentRunId?: string }).subagentRunId === undefined)
    expect(textOf(answer)).toBe('I ask. All done.')
  })

  test('the recorded run reads the same for clients that come later', async () => {
    const { runtime, store } = await serving(n)
    const run = await runtime.start('desk', { messages: [{ role: 'user', content: 'Hi' }] })
    await run.result
    const entries = await entriesOf(store, run.id)
    const agUi = agUiObjectsWire.createEncoder()
    const events = entries.flatMap((entry) => agUi.encode(entry))
    agUiRuns(events, { isWhole: true })
    await judged(events)
    const ui = uiWire.createEncoder({}, { ui7: true })
    const { message, errors } = await show(entries.map((entry) => ui.encode(entry)).join(''))
    expect(errors).toEqual([])
    expect(agentsIn(message!.parts).map(({ status }) => status)).toEqual(Array(n).fill('done'))
  })

  test('usage is the same in the run, the tables and the statistics, to the token', async () => {
    const { runtime, store, url } = await serving(n)
    const run = await runtime.start('desk', { messages: [{ role: 'user', content: 'Hi' }] })
    const { usage } = await run.result
    const view = (await (await fetch(`${url}/api/runs/${run.id}`)).json()) as {
      usage: { totalTokens: number }
      usageByAgent: { agent: string; calls: number; usage: { totalTokens: number } }[]
      usageByStep: { usage: { totalTokens: number } }[]
    }
    const sum = (list: readonly { usage: { totalTokens: number } }[]) =>
      list.reduce((total, each) => total + each.usage.totalTokens, 0)
    expect(view.usageByAgent.map(({ agent, calls }) => [agent, calls])).toEqual([
      ['desk', 2],
      ['helper', 2 * n],
    ])
    const all = [view.usage.totalTokens, sum(view.usageByAgent), sum(view.usageByStep), usage.totalTokens]
    expect(new Set(all).size).toBe(1)
    await store.records?.settle()
    const stats = (await (await fetch(`${url}/api/stats`)).json()) as {
      usage: { inputTokens: number; outputTokens: number }
    }
    expect(stats.usage.inputTokens + stats.usage.outputTokens).toBe(usage.totalTokens)
    // A store without tables has none.
    const found = await store.records?.query('SELECT sum(total_tokens), count(*) FROM agents')
    if (found !== undefined) expect(found.rows).toEqual([[usage.totalTokens, n + 1]])
  })
})

describe('an approval inside', () => {
  const approving = (n = 1) => serving(n, { approval: true })
  const chain = ['desk', 'helper']

  test('AG-UI: an interrupt with the chain; the subagent is suspended, and continues under its id', async () => {
    const { url, post } = await approving(2)
    const client = createAgUiClient(url, { agent: 'desk' })
    client.say('Hi')
    const first = await client.run()
    const { outcome } = first.end as { outcome?: { type: string; interrupts?: { id: string }[] } }
    expect(outcome).toMatchObject({
      type: 'interrupt',
      interrupts: Array(2).fill({ metadata: { toolName: 'look', agents: chain } }),
    })
    expect(only(first.events, 'SUBAGENT_FINISHED').map((event) => event.outcome)).toEqual(
      Array(2).fill({ type: 'suspended', interruptIds: [expect.any(String)] }),
    )
    const open = (await (await fetch(`${url}/api/runs/${first.run}/requests`)).json()) as { requests: object[] }
    expect(open.requests).toMatchObject(Array(2).fill({ toolName: 'look', agents: chain }))
    const resume = outcome!.interrupts!.map(({ id }, i) => {
      return { interruptId: id, status: 'resolved' as const, payload: { approved: i === 0 } }
    })
    const second = await client.run({ runId: 'r2', resume })
    expect(startedIn(second.events).map(({ subagentRunId }) => subagentRunId)).toEqual(
      startedIn(first.events).map(({ subagentRunId }) => subagentRunId),
    )
    expect(second.end).toMatchObject({ outcome: { type: 'success' }, result: 'All done.' })
    expect((await post(`/api/runs/${first.run}/stop`, {})).status).toBe(202)
  })

  test('useChat: asked in a step of its own, and sent back by itself', async () => {
    const { url, told } = await approving()
    const { chat, errors, runs } = createChat(url, {
      agentId: 'desk',
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    })
    await chat.sendMessage({ text: 'Hi' })
    const asked = chat.lastMessage!.parts.find(({ type }) => type === 'tool-look')
    expect(asked).toMatchObject({
      state: 'approval-requested',
      callProviderMetadata: { millrace: { agents: chain } },
    })
    const { id } = (asked as unknown as { approval: { id: string } }).approval
    await chat.addToolApprovalResponse({ id, approved: true })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('All done.')
    await expect.poll(() => chat.status).toBe('ready')
    expect(runs[1]).toBe(runs[0])
    await chat.sendMessage({ text: 'Again' })
    expect(errors).toEqual([])
    expect(told()).not.toContain(secret)
    expect(told()).not.toContain('"look"')
  })

  test('Socket.IO: an interrupt, answered on the same socket', async () => {
    const { url } = await approving()
    const client = await connectSocket(url)
    await client.run({ forwardedProps: { agent: 'desk' } })
    const first = await client.ended('r')
    await judged(first)
    const { outcome } = first.at(-1) as { outcome?: { interrupts?: { id: string }[] } }
    const resume = outcome!.interrupts!.map(({ id }) => {
      return { interruptId: id, status: 'resolved', payload: { approved: true } }
    })
    await client.run({ runId: 'r2', forwardedProps: { agent: 'desk' }, messages: [user('Hi')], resume })
    const second = await client.ended('r2')
    await judged(second)
    expect(second.at(-1)).toMatchObject({ type: 'RUN_FINISHED', result: 'All done.' })
  })

  test('metrics count it for the agent that asks, and tokens once', async () => {
    const { runtime, url } = await approving()
    const read = async () => parse(await (await fetch(`${url}/metrics`)).text())
    await read()
    const run = await runtime.start('desk', { messages: [{ role: 'user', content: 'Hi' }] })
    await expect.poll(async () => (await runtime.store.runs.get(run.id))?.status).toBe('suspended')
    expect((await read()).get('millrace_requests_total{agent="helper",kind="approval",outcome="asked"}')).toBe(1)
    const { requests } = (await (await fetch(`${url}/api/runs/${run.id}/requests`)).json()) as {
      requests: { requestId: string }[]
    }
    await runtime.answer(run.id, requests[0]!.requestId, { kind: 'approval', approved: true })
    const { usage } = await run.result
    const samples = await read()
    const tokens = [...samples].filter(([name]) => /^millrace_tokens_total.*(?:input|output)"/u.test(name))
    expect(tokens.reduce((sum, [, count]) => sum + count, 0)).toBe(usage.totalTokens)
    expect(samples.get('millrace_tool_calls_total{tool="helper",outcome="completed"}')).toBe(1)
  })

  test('AG-UI: the capabilities name the agents that can be called', async () => {
    const { url } = await approving()
    const found = (await (await fetch(`${url}/ag-ui/desk/capabilities`)).json()) as object
    expect(found).toMatchObject({
      multiAgent: { supported: true, subagents: [{ name: 'helper', description: 'Helps.' }] },
    })
  })

  test('OpenAI: the words that end the answer name the inner tool and the chain', async () => {
    const { post } = await approving()
    const body = { model: 'desk', messages: [{ role: 'user', content: 'Hi' }] }
    const answered = (await (await post('/v1/chat/completions', body)).json()) as {
      choices: { message: { content: string } }[]
    }
    expect(answered.choices[0]!.message.content).toContain('- look({}) (desk > helper): POST /api/runs/')
    expect(answered).toMatchObject({ millrace: { requests: [{ toolName: 'look', agents: chain }] } })
  })
})

describe('a client tool inside', () => {
  const pick = { name: 'pick', description: 'Asks the user', parameters: { type: 'object', properties: {} } }
  const picking = () => serving(1, { tools: 'pick', agentTool: '{ agent: helper, clientTools: true }' })

  test('AG-UI: pending under an id of its own, answered by the next request', async () => {
    const { url } = await picking()
    const client = createAgUiClient(url, { agent: 'desk', tools: [pick] })
    client.say('Hi')
    const { end, events } = await client.run()
    const { pendingToolCallIds = [] } = (end as { outcome?: { pendingToolCallIds?: string[] } }).outcome ?? {}
    expect(pendingToolCallIds).toHaveLength(1)
    expect(only(events, 'TOOL_CALL_START').at(-1)).toMatchObject({
      toolCallId: pendingToolCallIds[0],
      toolCallName: 'pick',
      subagentRunId: startedIn(events)[0]!.subagentRunId,
    })
    client.answer(pendingToolCallIds[0]!, 'red')
    expect((await client.run()).end).toMatchObject({ result: 'All done.', outcome: { type: 'success' } })
  })

  test('useChat: run by the client, sent back by itself', async () => {
    const { url, desk } = await picking()
    const { chat, errors } = createChat(url, {
      agentId: 'desk',
      body: { tools: [pick] },
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall: { toolCallId, toolName } }) {
        // Not awaited: the client's queue of jobs waits for this callback.
        if (toolName === 'pick') void chat.addToolOutput({ tool: toolName, toolCallId, output: 'red' })
      },
    })
    await chat.sendMessage({ text: 'Hi' })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('All done.')
    await expect.poll(() => chat.status).toBe('ready')
    expect(errors).toEqual([])
    expect(JSON.stringify(desk.prompts.at(-1))).toContain('Found red.')
  })

  test('Socket.IO: the subagent stays open while the client works', async () => {
    const { url } = await picking()
    const client = await connectSocket(url)
    await client.run({ tools: [pick], forwardedProps: { agent: 'desk' } })
    const { event } = await client.until((sent) => {
      return sent.event.type === 'TOOL_CALL_START' && sent.event['toolCallName'] === 'pick'
    })
    const toolCallId = (event as unknown as { toolCallId: string }).toolCallId
    await client.until((sent) => sent.event.type === 'TOOL_CALL_END' && sent.event['toolCallId'] === toolCallId)
    const ack = await client.send('tool_result', { messageId: 'm', toolCallId, content: 'red', role: 'tool' })
    expect(ack.ok).toBe(true)
    const events = await client.ended('r')
    await judged(events)
    expect(startedIn(events)).toHaveLength(1)
    expect(only(events, 'SUBAGENT_FINISHED')).toMatchObject([{ result: 'Found red.', outcome: { type: 'success' } }])
  })
})

test('a handoff streams as the answer of the same message, and no subagent is told', async () => {
  const desk = createTold(() => [text('One moment. '), toolCall('c1', 'transfer_to_helper'), finish('tool-calls')])
  const helper = createTold(() => [text('I am the helper.'), finish()])
  const server = await startServer({
    agents: { desk: deskFile('{ agent: helper, handoff: true }'), helper: helperFile('', true) },
    scripts: { desk, helper },
  })
  onTestFinished(() => server.close())
  const { chat, errors } = createChat(server.url, { agentId: 'desk' })
  await chat.sendMessage({ text: 'Hi' })
  expect(errors).toEqual([])
  expect(lines(chat.messages)).toEqual([
    'user: Hi',
    'assistant: One moment.  [transfer_to_helper output-available] I am the helper.',
  ])
  const client = createAgUiClient(server.url, { agent: 'desk' })
  client.say('Hi')
  const { events, end } = await client.run()
  expect(startedIn(events)).toEqual([])
  expect(end).toMatchObject({ result: 'I am the helper.' })
})
