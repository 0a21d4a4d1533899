/** `createChatTransport`: the AI SDK's own chat over our client, against a server. */
import { Chat } from '@ai-sdk/react'
import { lastAssistantMessageIsCompleteWithToolCalls, type ChatInit, type UIMessage } from 'ai'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createChatTransport, defineTool, type ChatTransportOptions } from '../../src/client.ts'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  type ScriptedModel,
} from '../../src/models/testing/scripted-model.ts'
import { lines } from '../support/chat.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { overHttp, transports, type Connect } from './transports.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

async function start(connect: Connect, m: ScriptedModel, top = 'onDisconnect: detach') {
  server = await startServer({ agents: { a: agent('', top) }, scripts: { m } })
  const client = connect(server.url)
  const errors: Error[] = []
  const chat = (options: Partial<ChatTransportOptions> = {}, init: Partial<ChatInit<UIMessage>> = {}) =>
    new Chat<UIMessage>({
      id: 't',
      transport: createChatTransport({ client, agent: 'a', ...options }),
      onError: (error) => void errors.push(error),
      ...init,
    })
  const newest = async () => (await server!.store.runs.list({}))[0]
  return { ...server, client, chat, errors, newest }
}

describe.each(transports)('over %s', (_name, connect) => {
  test('a message, a regeneration, and stop, which really stops the run', async () => {
    const m = createScriptedModel([
      [text('Hello'), finish()],
      [text('Hey'), finish()],
      [text('On and'), latch(), finish()],
    ])
    const { chat, errors, newest } = await start(connect, m)
    const it = chat()
    await it.sendMessage({ text: 'Hi' })
    expect(lines(it.messages)).toEqual(['user: Hi', 'assistant: Hello'])
    await it.regenerate()
    expect(lines(it.messages)).toEqual(['user: Hi', 'assistant: Hey'])
    const sent = it.sendMessage({ text: 'On?' })
    await expect.poll(() => lines(it.messages).at(-1)).toBe('assistant: On and')
    await it.stop()
    await sent
    // Nothing but a stop stops it: the agent detaches.
    await expect.poll(async () => (await newest())!.status).toBe('aborted')
    expect([m.calls[2]!.options.abortSignal?.aborted, it.status, errors]).toEqual([true, 'ready', []])
  })

  test('a reload: the answer from its start, then live; its stop stops it, too; nothing runs: nothing comes', async () => {
    const m = createScriptedModel([[text('Hel'), latch(), finish()]])
    const { chat, errors, newest } = await start(connect, m)
    const left = chat()
    void left.sendMessage({ text: 'Hi' })
    await expect.poll(() => lines(left.messages).at(-1)).toBe('assistant: Hel')
    // A component that is unmounted as soon as it was mounted, as in strict mode, leaves: it does not stop.
    const gone = chat({}, { messages: left.messages.slice(0, 1) })
    const going = gone.resumeStream()
    await gone.stop()
    await going
    expect((await newest())!.status).toBe('running')
    const back = chat({}, { messages: left.messages.slice(0, 1) })
    const resumed = back.resumeStream()
    await expect.poll(() => lines(back.messages)).toEqual(['user: Hi', 'assistant: Hel'])
    await back.stop()
    await resumed
    await expect.poll(async () => (await newest())!.status).toBe('aborted')
    const later = chat({}, { messages: back.messages })
    await later.resumeStream()
    expect([lines(later.messages), errors]).toEqual([lines(back.messages), []])
  })
})

test('tools of the page are offered with their schemas, and useChat answers them in the same run', async () => {
  const m = createScriptedModel([
    [toolCall('c1', 'title', {}), finish('tool-calls')],
    [text('Home.'), finish()],
  ])
  const { chat, store, errors } = await start(overHttp, m)
  const tools = { title: defineTool('The title', z.object({}), () => undefined) }
  const it: Chat<UIMessage> = chat(
    { tools },
    {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall: call }) =>
        void it.addToolOutput({ tool: 'title', toolCallId: call.toolCallId, output: 'Home' }),
    },
  )
  await it.sendMessage({ text: 'Where?' })
  await expect.poll(() => lines(it.messages).at(-1)).toBe('assistant: [title output-available] Home.')
  expect([(await store.runs.list({})).length, errors]).toEqual([1, []])
})

test('history: server: only the newest message is sent; an error of the server is an error of the chat', async () => {
  const m = createScriptedModel([
    [text('Hello'), finish()],
    [text('Rome'), finish()],
  ])
  const { chat, store, errors } = await start(overHttp, m, 'history: server')
  const it = chat({ history: 'server', body: { user: 'ann' } })
  await it.sendMessage({ text: 'Hi' })
  await it.sendMessage({ text: 'Where?' })
  expect(lines(it.messages).at(-1)).toBe('assistant: Rome')
  expect(m.calls[1]!.options.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  const [newest] = await store.runs.list({})
  for await (const [first] of store.log.read(newest!.id, { limit: 1 })) {
    expect(first).toMatchObject({ input: { user: 'ann', messages: [{ role: 'user' }] } })
  }
  await it.regenerate()
  expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('client.thread(id).regenerate')])
  const wrong = chat({ agent: 'b' })
  await wrong.sendMessage({ text: 'Hi' })
  expect(errors.at(-1)).toMatchObject({ code: 'unknown-agent' })
})

test.each([['the body ends'], ['the connection breaks']])(
  'an answer that is cut off is an error, not half an answer: %s',
  async (how) => {
    const gate = latch()
    const m = createScriptedModel([[text('Hel'), gate, text('lo'), finish()]])
    const { url, errors } = await start(overHttp, m)
    const cut = new AbortController()
    const client = overHttp(url, {
      fetch: async (input: string | URL | Request, init?: RequestInit) => {
        const response = await fetch(input, init)
        if (!new Request(input).url.includes('/api/chat')) return response
        return new Response(cutBody(response.body!, how === 'the body ends', cut.signal), response)
      },
    })
    const it = new Chat<UIMessage>({
      id: 't',
      transport: createChatTransport({ client, agent: 'a' }),
      onError: (error) => void errors.push(error),
    })
    const sent = it.sendMessage({ text: 'Hi' })
    await expect.poll(() => lines(it.messages).at(-1)).toBe('assistant: Hel')
    cut.abort(new TypeError('terminated'))
    await sent
    expect([it.status, errors.map(({ message }) => message)]).toEqual(['error', [expect.stringContaining('cut off')]])
    gate.open()
  },
)

/** A body of which the rest does not come. */
function cutBody(body: ReadableStream<Uint8Array>, endsWell: boolean, signal: AbortSignal): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream({
    start(controller) {
      signal.addEventListener('abort', () => {
        if (endsWell) controller.close()
        else controller.error(signal.reason)
      })
    },
    async pull(controller) {
      const { done, value } = await reader.read()
      if (signal.aborted) return
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}
