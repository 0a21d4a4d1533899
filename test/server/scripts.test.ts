/** Scripts that a model writes, read by the official clients: an approval and a client tool inside, and a history that stays legal. */
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { agUiRuns } from '../ag-ui-judge.ts'
import { show } from '../ui-client.ts'
import { agUiObjectsWire } from '../../src/wire/ag-ui/ag-ui.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createAgUiClient, only } from '../support/ag-ui.ts'
import { createChat, lines } from '../support/chat.ts'
import { entriesOf } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'
import { connectSocket, judged, user } from '../support/socket.ts'

const any = z.looseObject({})
const file = `
workflow:
  - id: desk
    type: llm
    config:
      model: "script:desk"
      stream: true
      tools:
        - code: [look, { name: pay, approval: true }, { name: pick, client: true, parameters: { what: string } }]`

/** The model runs this script, then says what came back. */
async function serving(code: string) {
  const desk = createTold((prompt) => {
    const round = prompt.filter(({ role }) => role === 'user').length
    const results = [...resultsIn(prompt).entries()].filter(([id]) => id === `c${round}`)
    if (results.length > 0) return [text(`All done: ${JSON.stringify(results[0]![1])}`), finish()]
    return [text('I write it. '), toolCall(`c${round}`, 'runCode', { code }), finish('tool-calls')]
  })
  const server = await startServer({
    agents: { desk: file },
    tools: {
      look: { parameters: any, execute: () => 'thing' },
      pay: { parameters: any, execute: () => 'paid' },
    },
    scripts: { desk },
  })
  onTestFinished(() => server.close())
  return { ...server, desk }
}

const looking = 'console.log("looking"); return [await tools.look({}), await tools.look({ n: 2 })]'
const paying =
  'const thing = await tools.look({}); return [thing, await tools.pay({ thing }).catch((error) => error.message)]'
const picking = 'return tools.pick({ what: "colour" }).catch((error) => error.message)'
const partsOf = (parts: readonly { type: string }[], type: string) => parts.filter((part) => part.type === type)
const hi = [{ role: 'user', content: 'Hi' }]
/** The ids of calls in all that the model was told: those of scripts are not among them. */
const told = ({ prompts }: { prompts: readonly unknown[] }) => JSON.stringify(prompts)

describe('calls of a script', () => {
  test('useChat: data with the call’s id, and the console; the conversation has the outer call alone', async () => {
    const { url, desk } = await serving(looking)
    const { chat, errors } = createChat(url, { agentId: 'desk' })
    await chat.sendMessage({ text: 'Hi' })
    const { parts } = chat.lastMessage!
    expect(partsOf(parts, 'data-script-call')).toMatchObject([
      { id: 'c1.1', data: { toolName: 'look', input: {}, status: 'done', output: 'thing' } },
      { id: 'c1.2', data: { toolName: 'look', input: { n: 2 }, status: 'done' } },
    ])
    expect(partsOf(parts, 'data-console')).toMatchObject([{ data: { level: 'log', text: 'looking' } }])
    expect(partsOf(parts, 'tool-runCode')).toMatchObject([{ state: 'output-available' }])
    expect(partsOf(parts, 'tool-look')).toEqual([])
    await chat.sendMessage({ text: 'Again' })
    expect(errors).toEqual([])
    expect(told(desk)).not.toContain('c1.1')
  })

  test('AG-UI: CUSTOM events; no TOOL_CALL of theirs', async () => {
    const { url, desk } = await serving(looking)
    const client = createAgUiClient(url, { agent: 'desk' })
    client.say('Hi')
    const { events, end } = await client.run()
    expect(only(events, 'CUSTOM').map(({ name, value }) => [name, (value as { status?: string }).status])).toEqual([
      ['console', undefined],
      ['script-call', 'running'],
      ['script-call', 'done'],
      ['script-call', 'running'],
      ['script-call', 'done'],
    ])
    expect(only(events, 'TOOL_CALL_START').map(({ toolCallName }) => toolCallName)).toEqual(['runCode'])
    expect(end).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    client.say('Again')
    await client.run()
    expect(told(desk)).not.toContain('c1.1')
  })

  test('OpenAI and plain text: the answer alone', async () => {
    const { post } = await serving(looking)
    const answered = (await (await post('/v1/chat/completions', { model: 'desk', messages: hi })).json()) as {
      choices: object[]
    }
    expect(answered.choices).toMatchObject([
      { message: { content: expect.stringContaining('All done') as string }, finish_reason: 'stop' },
    ])
    expect(JSON.stringify(answered)).not.toContain('c1.1')
    const chat = await (await post('/api/beddel/chat', { agentId: 'desk', messages: hi })).text()
    expect(chat).toContain('I write it. \n\nAll done')
  })

  test('a script of the file shows its calls, too, and nothing of them is the answer', async () => {
    const server = await startServer({
      agents: { s: `workflow: [{ id: s, type: script, config: { code: ${JSON.stringify(looking)}, tools: [look] } }]` },
      tools: { look: { parameters: any, execute: () => 'thing' } },
    })
    onTestFinished(() => server.close())
    const run = await server.runtime.start('s', {})
    await run.result
    const entries = await entriesOf(server.store, run.id)
    const ui = uiWire.createEncoder({}, { ui7: true })
    const { message, errors } = await show(entries.map((entry) => ui.encode(entry)).join(''))
    expect(errors).toEqual([])
    expect(partsOf(message!.parts, 'data-script-call')).toHaveLength(2)
    const agUi = agUiObjectsWire.createEncoder()
    agUiRuns(
      entries.flatMap((entry) => agUi.encode(entry)),
      { isWhole: true },
    )
  })
})

describe('an approval inside', () => {
  test('useChat: asked in a step of its own, answered, and left out of the history', async () => {
    const { url, desk } = await serving(paying)
    const { chat, errors } = createChat(url, {
      agentId: 'desk',
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    })
    await chat.sendMessage({ text: 'Hi' })
    const asked = chat.lastMessage!.parts.find(({ type }) => type === 'tool-pay')
    expect(asked).toMatchObject({ state: 'approval-requested', input: { thing: 'thing' } })
    const { id } = (asked as unknown as { approval: { id: string } }).approval
    await chat.addToolApprovalResponse({ id, approved: true })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('paid')
    await expect.poll(() => chat.status).toBe('ready')
    await chat.sendMessage({ text: 'Again' })
    expect(errors).toEqual([])
    expect(told(desk)).not.toContain('c1.2')
  })

  test('AG-UI: an interrupt; a denial rejects in the script', async () => {
    const { url, desk } = await serving(paying)
    const client = createAgUiClient(url, { agent: 'desk' })
    client.say('Hi')
    const { end } = await client.run()
    const { outcome } = end as { outcome?: { type: string; interrupts?: { id: string }[] } }
    expect(outcome).toMatchObject({ type: 'interrupt', interrupts: [{ metadata: { toolName: 'pay' } }] })
    const resume = [
      {
        interruptId: outcome!.interrupts![0]!.id,
        status: 'resolved' as const,
        payload: { approved: false, reason: 'too dear' },
      },
    ]
    const second = await client.run({ runId: 'r2', resume })
    expect(second.end).toMatchObject({ outcome: { type: 'success' } })
    expect(told(desk)).toContain('too dear')
    client.say('Again')
    await client.run({ runId: 'r3' })
    expect(told(desk)).not.toContain('c1.2')
  })

  test('Socket.IO: an interrupt, answered on the same socket', async () => {
    const { url } = await serving(paying)
    const client = await connectSocket(url)
    await client.run({ forwardedProps: { agent: 'desk' } })
    const first = await client.ended('r')
    await judged(first)
    const { outcome } = first.at(-1) as { outcome?: { interrupts?: { id: string }[] } }
    const resume = outcome!.interrupts!.map(({ id }) => ({
      interruptId: id,
      status: 'resolved',
      payload: { approved: true },
    }))
    await client.run({ runId: 'r2', forwardedProps: { agent: 'desk' }, messages: [user('Hi')], resume })
    const second = await client.ended('r2')
    await judged(second)
    expect(JSON.stringify(second.at(-1))).toContain('paid')
  })

  test('OpenAI: the words name the call; the next request has the rest', async () => {
    const { post } = await serving(paying)
    const answered = (await (await post('/v1/chat/completions', { model: 'desk', messages: hi })).json()) as {
      choices: { message: { content: string } }[]
    }
    expect(answered.choices[0]!.message.content).toContain('pay({"thing":"thing"})')
  })
})

describe('a client tool inside', () => {
  test('useChat: run by the client, sent back by itself', async () => {
    const { url, desk } = await serving(picking)
    const { chat, errors } = createChat(url, {
      agentId: 'desk',
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall: { toolCallId, toolName } }) {
        if (toolName === 'pick') void chat.addToolOutput({ tool: toolName, toolCallId, output: 'red' })
      },
    })
    await chat.sendMessage({ text: 'Hi' })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('red')
    await expect.poll(() => chat.status).toBe('ready')
    await chat.sendMessage({ text: 'Again' })
    expect(errors).toEqual([])
    expect(told(desk)).not.toContain('c1.1')
  })

  test('AG-UI: pending, and answered by the next request', async () => {
    const { url, desk } = await serving(picking)
    const client = createAgUiClient(url, { agent: 'desk' })
    client.say('Hi')
    const { end } = await client.run()
    const { pendingToolCallIds = [] } = (end as { outcome?: { pendingToolCallIds?: string[] } }).outcome ?? {}
    expect(pendingToolCallIds).toHaveLength(1)
    client.answer(pendingToolCallIds[0]!, 'red')
    expect((await client.run()).end).toMatchObject({ outcome: { type: 'success' } })
    expect(told(desk)).toContain('red')
    client.say('Again')
    await client.run()
    expect(told(desk)).not.toContain('c1.1')
  })

  test('Socket.IO: the run goes on while the client works', async () => {
    const { url } = await serving(picking)
    const client = await connectSocket(url)
    await client.run({ forwardedProps: { agent: 'desk' } })
    const { event } = await client.until((sent) => {
      return sent.event.type === 'TOOL_CALL_START' && sent.event['toolCallName'] === 'pick'
    })
    const { toolCallId } = event as unknown as { toolCallId: string }
    await client.until((sent) => sent.event.type === 'TOOL_CALL_END' && sent.event['toolCallId'] === toolCallId)
    const ack = await client.send('tool_result', { messageId: 'm', toolCallId, content: 'red', role: 'tool' })
    expect(ack.ok).toBe(true)
    const events = await client.ended('r')
    await judged(events)
    expect(JSON.stringify(events.at(-1))).toContain('red')
  })

  test('OpenAI hands calls over, so there the call rejects and says why', async () => {
    const { post } = await serving(picking)
    const answered = (await (await post('/v1/chat/completions', { model: 'desk', messages: hi })).json()) as {
      choices: { message: { content: string } }[]
    }
    expect(answered.choices[0]!.message.content).toContain('nobody can be asked')
  })
})
