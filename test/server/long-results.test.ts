/** Long results of tools, read by the official clients: they see them whole, the model gets a handle. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { isToolUIPart, lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createAgUiClient, only as onlyEvents } from '../support/ag-ui.ts'
import { createChat, lines } from '../support/chat.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'
import { connectSocket, judged, pick, textOf, transports } from '../support/socket.ts'

const page = `${'start '.repeat(1000)}The needle. ${'end '.repeat(20_000)}`
const fetchPage = { parameters: z.object({}), execute: () => page }

const handleIn = (prompt: LanguageModelV4Prompt) => /kept as (res_\w+)/u.exec(JSON.stringify(prompt))?.[1]

/** Calls the tool, reads the place of the needle by the handle, and says what it has read. In later turns it reads again. */
async function serving(tool: 'fetchPage' | 'pick') {
  const model = createTold((prompt): ScriptStep[] => {
    expect(JSON.stringify(prompt)).not.toContain(page)
    const turn = prompt.filter(({ role }) => role === 'user').length
    const handle = handleIn(prompt)
    const read = resultsIn(prompt).get(`r${turn}`) as { value: string } | undefined
    if (read !== undefined) return [text(`Read: ${read.value.slice(0, 11)}`), finish()]
    if (handle !== undefined) return [toolCall(`r${turn}`, 'readResult', { handle, from: 6000 }), finish('tool-calls')]
    return [text('I look. '), toolCall('c1', tool), finish('tool-calls')]
  })
  const server = await startServer({
    agents: { a: agent(tool === 'fetchPage' ? 'tools: [fetchPage]' : '') },
    tools: { fetchPage },
    scripts: { m: model },
  })
  onTestFinished(() => server.close())
  /** The results in the log of the newest run. */
  const results = async () => {
    const [row] = await server.store.runs.list({ limit: 1 })
    return only(await entriesOf(server.store, row!.id), 'tool-result').map(({ toolName, result }) => [toolName, result])
  }
  return { ...server, model, results }
}

describe('a long result of a tool of the server', () => {
  test('useChat shows it whole; the next turn reads it again by its handle', async () => {
    const { url, results, store } = await serving('fetchPage')
    const { chat, errors, runs } = createChat(url)
    await chat.sendMessage({ text: 'Go' })
    const parts = chat.lastMessage!.parts.filter(isToolUIPart)
    expect(parts.map(({ type, output }) => [type, output])).toEqual([
      ['tool-fetchPage', page],
      ['tool-readResult', expect.stringMatching(/^The needle/u)],
    ])
    expect(lines(chat.messages).at(-1)).toContain('Read: The needle.')
    await chat.sendMessage({ text: 'Again' })
    expect(errors).toEqual([])
    expect(lines(chat.messages).at(-1)).toContain('Read: The needle.')
    expect(await results()).toEqual([['readResult', expect.stringMatching(/^The needle/u)]])
    const view = (await (await fetch(`${url}/api/runs/${runs[0]}`)).json()) as { messages: object[] }
    expect(JSON.stringify(view.messages)).toContain(page)
    for (const run of runs) expect(JSON.stringify(only(await entriesOf(store, run), 'prompt'))).not.toContain(page)
  })

  test('AG-UI gets it whole, over two runs', async () => {
    const { url, results } = await serving('fetchPage')
    const client = createAgUiClient(url)
    client.say('Go')
    const { events } = await client.run()
    expect(onlyEvents(events, 'TOOL_CALL_RESULT').map(({ content }) => content)).toEqual([
      page,
      expect.stringMatching(/^The needle/u),
    ])
    client.say('Again')
    await client.run()
    expect(await results()).toEqual([['readResult', expect.stringMatching(/^The needle/u)]])
  })

  test.each(transports)('Socket.IO gets it whole (%s)', async (transport) => {
    const { url } = await serving('fetchPage')
    const client = await connectSocket(url, transport)
    await client.run({ forwardedProps: { agent: 'a' } })
    const events = await client.ended('r')
    await judged(events)
    expect(events.flatMap((event) => (event.type === 'TOOL_CALL_RESULT' ? [event.content] : []))[0]).toBe(page)
    expect(textOf(events)).toContain('Read: The needle.')
  })
})

describe('a long result of a tool of the client', () => {
  test('useChat', async () => {
    const { url, results } = await serving('pick')
    const { chat, errors } = createChat(url, {
      body: { tools: [pick] },
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall: { toolCallId, toolName } }) {
        if (toolName === 'pick') void chat.addToolOutput({ tool: toolName, toolCallId, output: page })
      },
    })
    await chat.sendMessage({ text: 'Go' })
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('Read: The needle.')
    expect(errors).toEqual([])
    expect(await results()).toContainEqual(['readResult', expect.stringMatching(/^The needle/u)])
  })

  test('AG-UI', async () => {
    const { url, results } = await serving('pick')
    const client = createAgUiClient(url, { tools: [pick] })
    client.say('Go')
    const { events } = await client.run()
    client.answer(onlyEvents(events, 'TOOL_CALL_START')[0]!.toolCallId, page)
    await client.run({ runId: 'r2' })
    expect(await results()).toContainEqual(['readResult', expect.stringMatching(/^The needle/u)])
  })

  test('Socket.IO', async () => {
    const { url } = await serving('pick')
    const client = await connectSocket(url)
    await client.run({ forwardedProps: { agent: 'a' }, tools: [pick] })
    await client.until(({ event }) => event.type === 'TOOL_CALL_END' && event.toolCallId === 'c1')
    const answer = { messageId: 'm', toolCallId: 'c1', content: JSON.stringify(page), role: 'tool' }
    expect(await client.send('tool_result', answer)).toMatchObject({ ok: true })
    expect(textOf(await client.ended('r'))).toContain('Read: The needle.')
  })

  test('OpenAI: of a call that the server knows, and of one that it does not', async () => {
    for (const isKnown of [true, false]) {
      const { url, results } = await serving('pick')
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
      const tools = [{ type: 'function' as const, function: { name: 'pick', parameters: { type: 'object' } } }]
      const asked = [{ role: 'user' as const, content: 'Go' }]
      const first = isKnown
        ? (await client.chat.completions.create({ model: 'a', messages: asked, tools })).choices[0]!.message
        : {
            role: 'assistant' as const,
            content: null,
            tool_calls: [{ id: 'own', type: 'function' as const, function: { name: 'pick', arguments: '{}' } }],
          }
      const [call] = first.tool_calls!
      const messages = [...asked, first, { role: 'tool' as const, tool_call_id: call!.id, content: page }]
      const second = await client.chat.completions.create({ model: 'a', messages, tools })
      expect(second.choices[0]!.message.content).toContain('Read: The needle.')
      expect(await results()).toEqual([['readResult', expect.stringMatching(/^The needle/u)]])
    }
  })
})
