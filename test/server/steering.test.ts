/** `onBusy: steer` and messages to a run, by the clients that people have: useChat, openai, AG-UI, curl, Socket.IO. */
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createAgUiClient, textsOf } from '../support/ag-ui.ts'
import { createChat, lines, stored } from '../support/chat.ts'
import { agent, entriesOf, only, until } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'
import { connectSocket, runInput, user } from '../support/socket.ts'
import { toldWords, watchInbox } from '../support/steering.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

function opened() {
  const gate = latch()
  gate.open()
  return gate
}

/** Answers a user's last words; the first time it looks first, which takes until `tool` is opened. */
async function start({ top = 'onBusy: steer', tool = latch(), words = opened(), config = 'tools: [look]' } = {}) {
  const m = createTold((prompt) =>
    resultsIn(prompt).size === 0
      ? [text('I look.'), toolCall('c', 'look'), finish('tool-calls')]
      : [words, text(`Told ${prompt.filter(({ role }) => role === 'user').length}.`), finish()],
  )
  const look = {
    parameters: z.looseObject({}),
    async execute() {
      tool.arrive()
      await tool.opened
      return 'seen'
    },
  }
  const inbox = watchInbox()
  server = await startServer({
    agents: { a: agent(config, top) },
    tools: { look },
    scripts: { m },
    wrapStore: inbox.wrapStore,
  })
  const { store } = server
  /** When the owner has read as many messages for the run. */
  const posted = async (run: string, count: number) => {
    await expect.poll(async () => (await server!.runtime.waiting(run)).length).toBe(count)
    await inbox.heard(...(await server!.runtime.waiting(run)).map(({ id }) => id))
  }
  const newest = async () => {
    await expect.poll(async () => (await store.runs.list({ limit: 1 })).length).toBe(1)
    return (await store.runs.list({ limit: 1 }))[0]!.id
  }
  return { ...server, m, tool, inbox, posted, newest }
}

const users = ['user: Hi', 'assistant: I look. [look output-available]', 'user: Shorter', 'assistant: Told 2.']

describe('onBusy: steer', () => {
  test('useChat: the first answer ends where the message is delivered, the second request streams the rest', async () => {
    const { url, tool, newest, posted, store, m } = await start()
    const { chat, errors, runs } = createChat(url, { id: 't' })
    const first = chat.sendMessage({ text: 'Hi' })
    await tool.reached
    const run = await newest()
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('I look.')
    const second = chat.sendMessage({ text: 'Shorter' })
    await posted(run, 1)
    tool.open()
    await Promise.all([first, second])
    expect(errors).toEqual([])
    expect(chat.status).toBe('ready')
    expect(lines(chat.messages)).toEqual(users)
    expect(new Set(chat.messages.map(({ id }) => id)).size).toBe(4)
    expect(runs).toEqual([run, run])
    const [message] = only(await entriesOf(store, run), 'message')
    expect(message).toMatchObject({
      id: chat.messages[2]!.id,
      content: [{ type: 'text', text: 'Shorter' }],
      turn: true,
    })
    // The next question has the conversation once.
    await chat.sendMessage({ text: 'And?' })
    expect(toldWords(m.prompts.at(-1)!)).toEqual([
      'user: Hi',
      'assistant: I look.look',
      'tool: look',
      'user: Shorter',
      'assistant: Told 2.',
      'user: And?',
    ])
  })

  test.each([
    ['/v1/responses', { input: 'Hi' }, '"type":"response.completed"'],
    ['/v1/messages', { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 100 }, '"type":"message_stop"'],
  ])('%s: one answer is one run, and a message to the run goes into it', async (path, body, end) => {
    const { post, tool, newest, posted, m } = await start()
    const answer = post(path, { model: 'a', stream: true, ...body })
    await tool.reached
    const run = await newest()
    expect((await post(`/api/runs/${run}/messages`, { content: 'Shorter' })).status).toBe(202)
    await posted(run, 1)
    tool.open()
    const said = await (await answer).text()
    expect(said.split(end)).toHaveLength(2)
    expect(said).toContain('Told 2.')
    expect(toldWords(m.prompts.at(-1)!).at(-1)).toBe('user: Shorter')
  })

  test('useChat: a page that is loaded again goes on behind the message', async () => {
    const words = latch()
    const { url, tool, newest, posted } = await start({ top: 'onBusy: steer\nonDisconnect: detach', words })
    const { chat } = createChat(url, { id: 't' })
    const first = chat.sendMessage({ text: 'Hi' })
    await tool.reached
    const run = await newest()
    await expect.poll(() => lines(chat.messages).at(-1)).toContain('I look.')
    const second = chat.sendMessage({ text: 'Shorter' })
    await posted(run, 1)
    tool.open()
    await first
    await words.reached
    const back = createChat(url, { id: 't', messages: stored(chat.messages.slice(0, 3)) })
    const resumed = back.chat.resumeStream()
    await expect.poll(() => back.runs).toEqual([run])
    words.open()
    await Promise.all([resumed, second])
    expect(lines(back.chat.messages)).toEqual(users)
  })

  test('the same request five times is one message, and all five read the rest', async () => {
    const { post, tool, newest, posted, store } = await start()
    const ask = (messages: object[]) => post('/api/chat', { agentId: 'a', id: 't', messages })
    const u = (id: string, content: string) => ({ id, role: 'user', content })
    const first = await ask([u('u1', 'Hi')])
    await tool.reached
    const run = await newest()
    const again = Array.from({ length: 5 }, () => ask([u('u1', 'Hi'), u('u2', 'Shorter')]))
    await posted(run, 1)
    tool.open()
    const bodies = await Promise.all((await Promise.all(again)).map((response) => readBody(response).rest()))
    for (const body of bodies) expect(body).toContain('Told 2.')
    expect(await readBody(first).rest()).not.toContain('Told')
    expect(only(await entriesOf(store, run), 'message')).toHaveLength(1)
    // Also when the run has ended.
    const late = await readBody(await ask([u('u1', 'Hi'), u('u2', 'Shorter')])).rest()
    expect(late).toContain('Told 2.')
    expect(await store.runs.list({})).toHaveLength(1)
  })

  test('openai: with X-Thread-Id; finish_reason stop, then the rest', async () => {
    const { url, tool, newest, posted } = await start()
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
    const headers = { 'X-Thread-Id': 't' }
    const read = async (messages: OpenAI.ChatCompletionMessageParam[]) => {
      const stream = await client.chat.completions.create({ model: 'a', messages, stream: true }, { headers })
      let said = ''
      let reason: string | null = null
      for await (const { choices } of stream) {
        said += choices[0]?.delta.content ?? ''
        reason = choices[0]?.finish_reason ?? reason
      }
      return [said, reason]
    }
    const first = read([{ role: 'user', content: 'Hi' }])
    await tool.reached
    const run = await newest()
    const second = read([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'I look.' },
      { role: 'user', content: 'Shorter' },
    ])
    await posted(run, 1)
    tool.open()
    expect(await first).toEqual(['I look.', 'stop'])
    expect(await second).toEqual(['Told 2.', 'stop'])
    // As one JSON, too.
    const next = await client.chat.completions.create({ model: 'a', messages: [{ role: 'user', content: 'X' }] })
    expect(next.choices[0]!.message.content).toContain('Told')
  })

  test('openai: without X-Thread-Id a second request is a run of its own', async () => {
    const { url, tool, store } = await start()
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
    const ask = (content: string) =>
      client.chat.completions.create({ model: 'a', messages: [{ role: 'user', content }] })
    const first = ask('Hi')
    await tool.reached
    const second = ask('Shorter')
    await expect.poll(async () => (await store.runs.list({})).length).toBe(2)
    tool.open()
    await Promise.all([first, second])
  })

  test('AG-UI: RUN_FINISHED, then RUN_STARTED with the second run id', async () => {
    const { url, tool, newest, posted, store } = await start()
    const one = createAgUiClient(url, { threadId: 't' })
    one.say('Hi')
    const first = one.run({ runId: 'r1' })
    await tool.reached
    const run = await newest()
    const two = createAgUiClient(url, { threadId: 't', messages: one.agent.messages })
    two.say('Shorter')
    const second = two.run({ runId: 'r2' })
    await posted(run, 1)
    tool.open()
    const [a, b] = await Promise.all([first, second])
    expect(a.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'r1', outcome: { type: 'success' } })
    expect(b.events[0]).toMatchObject({ type: 'RUN_STARTED', runId: 'r2' })
    expect(b.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'r2' })
    expect([a.run, b.run]).toEqual([run, run])
    expect(textsOf(two.agent.messages).at(-1)).toBe('Told 2.')
    expect(only(await entriesOf(store, run), 'message')).toHaveLength(1)
  })

  test('plain text: two bodies, each complete', async () => {
    const { post, tool, newest, posted, store } = await start()
    const ask = (messages: object[]) => post('/api/beddel/chat', { agentId: 'a', id: 't', messages })
    const first = await ask([{ role: 'user', content: 'Hi' }])
    await tool.reached
    const run = await newest()
    const second = ask([
      { role: 'user', content: 'Hi' },
      { role: 'user', content: 'Shorter' },
    ])
    await posted(run, 1)
    tool.open()
    expect(await first.text()).toBe('I look.')
    expect(await (await second).text()).toBe('Told 2.')
    // Without ids: what the run was asked is not sent again.
    expect(only(await entriesOf(store, run), 'message')).toMatchObject([{ content: 'Shorter' }])
  })

  test('a stopped run tells the request that its message was dropped', async () => {
    const { post, tool, newest, posted, runtime } = await start()
    const ask = (messages: object[]) => post('/api/chat', { agentId: 'a', id: 't', messages })
    const first = await ask([{ id: 'u1', role: 'user', content: 'Hi' }])
    await tool.reached
    const run = await newest()
    const second = ask([
      { id: 'u1', role: 'user', content: 'Hi' },
      { id: 'u2', role: 'user', content: 'Shorter' },
    ])
    await posted(run, 1)
    await runtime.stop(run)
    tool.open()
    const response = await second
    expect([response.status, await response.json()]).toMatchObject([409, { error: { code: 'message-dropped' } }])
    expect(framesOf(await first.text())).toContainEqual(
      expect.objectContaining({ type: 'data-message', data: expect.objectContaining({ outcome: 'dropped' }) }),
    )
  })

  test('a message that comes too late begins the next run, which its request reads', async () => {
    const { post, tool, newest, posted, store } = await start({ config: 'tools: [look]\nmaxSteps: 1' })
    const ask = (messages: object[]) => post('/api/chat', { agentId: 'a', id: 't', messages })
    const first = await ask([{ id: 'u1', role: 'user', content: 'Hi' }])
    await tool.reached
    const run = await newest()
    const second = ask([
      { id: 'u1', role: 'user', content: 'Hi' },
      { id: 'u2', role: 'user', content: 'Shorter' },
    ])
    await posted(run, 1)
    tool.open()
    expect(await readBody(first).rest()).toContain('I look.')
    const response = await second
    const next = response.headers.get('x-millrace-run-id')!
    expect(next).not.toBe(run)
    expect(await readBody(response).rest()).toContain('Told 2.')
    expect(only(await entriesOf(store, run), 'message')).toMatchObject([{ outcome: 'next', runId: next }])
  })
})

describe('who follows a run', () => {
  test('sees one stream with the message in it: useChat, whose run another client sends a message', async () => {
    const { url, post, tool, newest, posted } = await start({ top: '' })
    const { chat, errors } = createChat(url, { id: 't' })
    const first = chat.sendMessage({ text: 'Hi' })
    await tool.reached
    const run = await newest()
    const told = await post(`/api/runs/${run}/messages`, { content: 'Shorter', id: 'm1' })
    expect([told.status, await told.json()]).toEqual([202, { id: 'm1', mode: 'steer', duplicate: false }])
    await posted(run, 1)
    expect(await (await fetch(`${url}/api/runs/${run}`)).json()).toMatchObject({
      waiting: [{ id: 'm1', mode: 'steer', content: 'Shorter', protocol: 'api' }],
    })
    tool.open()
    await first
    expect(errors).toEqual([])
    expect(chat.messages).toHaveLength(2)
    const parts = chat.messages[1]!.parts
    expect(parts.find(({ type }) => type === 'data-message')).toMatchObject({ data: { content: 'Shorter' } })
    expect(lines(chat.messages)[1]).toBe('assistant: I look. [look output-available] Told 2.')
    const late = await post(`/api/runs/${run}/messages`, { content: 'More' })
    expect([late.status, await late.json()]).toMatchObject([409, { error: { code: 'run-ended' } }])
  })

  test('over Socket.IO sends the message and reads on: one RUN_STARTED, one RUN_FINISHED', async () => {
    const { url, tool, newest, posted } = await start({ top: '' })
    const client = await connectSocket(url)
    await client.run({ runId: 'r1' })
    await tool.reached
    const run = await newest()
    expect(await client.send('message', { runId: 'r1', content: 'Shorter', id: 'm1' })).toMatchObject({
      ok: true,
      runId: 'r1',
      id: 'm1',
      mode: 'steer',
    })
    await posted(run, 1)
    expect(await client.send('message', { runId: run, content: 'x', role: 'system' })).toMatchObject({ ok: false })
    tool.open()
    const events = await client.ended('r1')
    expect(events.filter(({ type }) => type === 'RUN_STARTED' || type === 'RUN_FINISHED')).toHaveLength(2)
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'CUSTOM',
        name: 'message',
        value: expect.objectContaining({ content: 'Shorter' }),
      }),
    )
  })

  test('over Socket.IO in the thread, with onBusy: steer: run_agent goes into the run that it follows', async () => {
    const { url, tool, newest, posted } = await start()
    const client = await connectSocket(url)
    await client.run({ runId: 'r1' })
    await tool.reached
    const run = await newest()
    const second = client.send('run_agent', runInput({ runId: 'r2', messages: [user('Hi'), user('Shorter')] }))
    await posted(run, 1)
    tool.open()
    expect(await second).toMatchObject({ ok: true, millraceRunId: run })
    const events = await client.ended('r1')
    expect(
      events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map((each) => (each as { delta: string }).delta),
    ).toEqual(['I look.', 'Told 2.'])
  })
})

describe('POST /api/runs/<id>/messages', () => {
  test.each([
    [{}, 400, 'content'],
    [{ content: '' }, 400, 'content'],
    [{ content: 7 }, 400, 'content'],
    [{ content: 'x', role: 'system' }, 400, 'role'],
    [{ content: [{ type: 'sound' }] }, 400, 'content'],
    [{ content: 'x', mode: 'stear' }, 400, 'did you mean "steer"'],
    [{ contents: 'x' }, 400, 'did you mean "content"'],
    [{ content: 'x'.repeat(33_000) }, 413, '32 KB'],
  ])('%j', async (body, status, words) => {
    const { post, tool, runtime, store } = await start()
    const { id } = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    await tool.reached
    const response = await post(`/api/runs/${id}/messages`, body)
    const { error } = (await response.json()) as { error: { message: string } }
    expect([response.status, error.message]).toEqual([status, expect.stringContaining(words)])
    tool.open()
    await until(store, id, ({ type }) => type === 'run-end')
  })

  test('DELETE takes one back, once it is delivered it is a 409', async () => {
    const { url, post, tool, runtime, posted, store } = await start()
    const { id } = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    await tool.reached
    for (const each of ['m1', 'm2']) await post(`/api/runs/${id}/messages`, { content: each, id: each })
    const remove = (message: string) => fetch(`${url}/api/runs/${id}/messages/${message}`, { method: 'DELETE' })
    expect(await (await remove('m1')).json()).toEqual({ id: 'm1', withdrawn: true })
    await posted(id, 1)
    tool.open()
    await until(store, id, ({ type }) => type === 'run-end')
    const late = await remove('m2')
    expect([late.status, await late.json()]).toMatchObject([409, { error: { code: 'message-delivered' } }])
    expect((await remove('m3')).status).toBe(404)
  })
})
