/** `useChat`'s own class against the server: answers, edits, reloads, stops, a second message, the same request twice. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  throws,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { createChat, lines, stored } from '../support/chat.ts'
import { agent, entriesOf, only, until } from '../support/engine.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

async function view(id: string) {
  return (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as {
    status: string
    messages: { role: string; id?: string }[]
    text: string
    error?: { code: string }
  }
}

const held = (before: string, gate: ReturnType<typeof latch>, after: string): ScriptStep[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: before },
  gate,
  { type: 'text-delta', id: 't', delta: after },
  { type: 'text-end', id: 't' },
  finish(),
]

describe('chat: useChat', () => {
  test('an answer, and a second round with the first in its history', async () => {
    const model = createScriptedModel([
      [text('Hel', 'lo'), finish()],
      [text('Fine.'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const { chat, errors, runs } = createChat(server.url)
    await chat.sendMessage({ text: 'Hi' })
    await chat.sendMessage({ text: 'How are you?' })
    expect(errors).toEqual([])
    expect(chat.status).toBe('ready')
    expect(lines(chat.messages)).toEqual(['user: Hi', 'assistant: Hello', 'user: How are you?', 'assistant: Fine.'])
    expect(chat.messages.filter(({ role }) => role === 'assistant').map(({ id }) => id)).toEqual(runs)
    expect(model.calls[1]!.options.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect((await view(runs[1]!)).messages).toMatchObject([{ role: 'assistant', id: runs[1] }])
  })

  const add = {
    parameters: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }: { a: number; b: number }) => ({ sum: a + b }),
  }

  test('a server tool is shown with its input and its output, and is one part', async () => {
    const model = createScriptedModel([
      [text('Let me see.'), toolCall('c1', 'add', { a: 1, b: 2 }), finish('tool-calls')],
      [text('It is 3.'), finish()],
    ])
    server = await startServer({ agents: { a: agent('tools: [add]') }, tools: { add }, scripts: { m: model } })
    const { chat, errors, runs } = createChat(server.url)
    await chat.sendMessage({ text: '1 + 2?' })
    expect(errors).toEqual([])
    expect(lines(chat.messages)).toEqual(['user: 1 + 2?', 'assistant: Let me see. [add output-available] It is 3.'])
    expect(chat.lastMessage!.parts.find(({ type }) => type === 'tool-add')).toMatchObject({
      input: { a: 1, b: 2 },
      output: { sum: 3 },
    })
    expect((await view(runs[0]!)).messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant'])
  })

  test('reloads in the middle of an answer: each shows it whole, nothing is doubled, one run did the work', async () => {
    const gates = [latch(), latch(), latch()]
    const script: ScriptStep[] = [text('Let me see.'), toolCall('c1', 'add', { a: 1, b: 2 }), finish('tool-calls')]
    const answer: ScriptStep[] = [{ type: 'text-start', id: 't' }]
    for (const [i, gate] of gates.entries()) answer.push({ type: 'text-delta', id: 't', delta: `part${i} ` }, gate)
    answer.push({ type: 'text-end', id: 't' }, finish())
    const model = createScriptedModel([script, answer])
    server = await startServer({ agents: { a: agent('tools: [add]') }, tools: { add }, scripts: { m: model } })

    let page = createChat(server.url, { id: 'chat-1' })
    let done = page.chat.sendMessage({ text: 'Go' })
    for (const [i, gate] of gates.entries()) {
      const shown = 'part0 part1 part2 '.slice(0, 6 * (i + 1))
      await expect
        .poll(() => lines(page.chat.messages))
        .toEqual(['user: Go', `assistant: Let me see. [add output-available] ${shown}`])
      // The page goes away and comes back with what it had kept: all of it, or only what the user had said.
      const kept = stored(page.chat.messages).slice(0, i === 1 ? 1 : 2)
      await page.chat.stop()
      await done
      gate.open()
      page = createChat(server.url, { id: 'chat-1', messages: kept })
      done = page.chat.resumeStream()
    }
    await done
    expect(page.errors).toEqual([])
    expect(page.chat.status).toBe('ready')
    expect(lines(page.chat.messages)).toEqual([
      'user: Go',
      'assistant: Let me see. [add output-available] part0 part1 part2 ',
    ])
    expect(model.calls).toHaveLength(2)
    const runs = (await server.store.runs.list({ threadId: 'chat-1' })).map(({ id, status }) => [id, status])
    expect(runs).toEqual([[page.chat.lastMessage!.id, 'completed']])
    // Nothing runs any more: there is nothing to resume, and asking changes nothing.
    await page.chat.resumeStream()
    expect(page.runs.at(-1)).toBe('')
    expect(page.chat.messages).toHaveLength(2)
  })

  test('stop() of the client only leaves: another page goes on with the answer', async () => {
    const gate = latch()
    server = await startServer({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([held('one ', gate, 'two')]) },
    })
    const first = createChat(server.url, { id: 'c' })
    const sent = first.chat.sendMessage({ text: 'Go' })
    await expect.poll(() => lines(first.chat.messages)[1]).toBe('assistant: one ')
    await first.chat.stop()
    await sent
    expect(first.chat.status).toBe('ready')
    const second = createChat(server.url, { id: 'c', messages: stored(first.chat.messages) })
    const resumed = second.chat.resumeStream()
    await expect.poll(() => second.chat.status).toBe('streaming')
    gate.open()
    await resumed
    expect(lines(second.chat.messages)).toEqual(['user: Go', 'assistant: one two'])
  })

  test('stop() of the client while nobody else reads ends the run, as the agent’s policy says', async () => {
    const model = createScriptedModel([held('one ', latch(), 'two')])
    server = await startServer({ agents: { a: agent('', 'onDisconnect: cancel') }, scripts: { m: model } })
    const { chat, runs } = createChat(server.url, { id: 'c' })
    const sent = chat.sendMessage({ text: 'Go' })
    await expect.poll(() => lines(chat.messages)[1]).toBe('assistant: one ')
    await chat.stop()
    await sent
    await until(server.store, runs[0]!, ({ type }) => type === 'run-end')
    expect(await view(runs[0]!)).toMatchObject({ status: 'aborted', text: 'one ' })
    expect(model.calls[0]!.aborted).toBe(true)
  })

  test('the stop route tells the client, with resume on, and keeps what was said', async () => {
    const model = createScriptedModel([held('one ', latch(), 'two')])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const first = createChat(server.url, { id: 'c' })
    const sent = first.chat.sendMessage({ text: 'Go' })
    await expect.poll(() => lines(first.chat.messages)[1]).toBe('assistant: one ')
    const second = createChat(server.url, { id: 'c', messages: stored(first.chat.messages) })
    const resumed = second.chat.resumeStream()
    await expect.poll(() => second.chat.status).toBe('streaming')
    const stopped = await server.post(`/api/runs/${first.runs[0]}/stop`, {})
    expect(stopped.status).toBe(202)
    await Promise.all([sent, resumed])
    for (const { chat, errors } of [first, second]) {
      expect(errors).toEqual([])
      expect(chat.status).toBe('ready')
      expect(lines(chat.messages)).toEqual(['user: Go', 'assistant: one '])
      expect(chat.lastMessage!.parts.at(-1)).toMatchObject({ type: 'text', state: 'done' })
    }
    expect(await view(first.runs[0]!)).toMatchObject({ status: 'aborted', text: 'one ' })
    expect((await server.post(`/api/runs/${first.runs[0]}/stop`, {})).status).toBe(202)
  })

  test('edit and regenerate: the client decides what came before, and no message is doubled', async () => {
    const model = createScriptedModel(['A', 'B', 'C', 'D', 'E'].map((name) => [text(name), finish()]))
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const { chat, errors, runs } = createChat(server.url, { id: 'c' })
    await chat.sendMessage({ text: 'one' })
    await chat.sendMessage({ text: 'two' })
    await chat.regenerate()
    expect(lines(chat.messages)).toEqual(['user: one', 'assistant: A', 'user: two', 'assistant: C'])
    const asked = (call: number) =>
      model.calls[call]!.options.prompt.map(
        ({ role, content }) => `${role} ${(content as { text: string }[])[0]!.text}`,
      )
    expect(asked(2)).toEqual(['user one', 'assistant A', 'user two'])

    await chat.sendMessage({ text: 'uno', messageId: chat.messages[0]!.id })
    expect(lines(chat.messages)).toEqual(['user: uno', 'assistant: D'])
    expect(asked(3)).toEqual(['user uno'])
    await chat.regenerate()
    expect(lines(chat.messages)).toEqual(['user: uno', 'assistant: E'])
    expect(errors).toEqual([])
    expect(new Set(runs).size).toBe(5)
    expect(chat.lastMessage!.id).toBe(runs[4])
  })

  test('a second message while the first is answered: the first ends aborted, the second is answered', async () => {
    const model = createScriptedModel([held('one ', latch(), 'two'), [text('Second.'), finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const first = createChat(server.url, { id: 'c' })
    const sent = first.chat.sendMessage({ text: 'Go' })
    await expect.poll(() => lines(first.chat.messages)[1]).toBe('assistant: one ')
    const second = createChat(server.url, { id: 'c', messages: stored(first.chat.messages) })
    await second.chat.sendMessage({ text: 'Rather this' })
    await sent
    expect(first.errors.concat(second.errors)).toEqual([])
    expect(first.chat.status).toBe('ready')
    expect(lines(second.chat.messages).slice(2)).toEqual(['user: Rather this', 'assistant: Second.'])
    expect(await view(first.runs[0]!)).toMatchObject({ status: 'aborted', error: { code: 'aborted' } })
    expect(await view(second.runs[0]!)).toMatchObject({ status: 'completed', text: 'Second.' })
    expect(model.calls[0]!.aborted).toBe(true)
    // What the interrupted run had said is the server's to know: the model is told it as it was.
    expect(model.calls[1]!.options.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })

  test('the same request twice at once and again later is one run, and each gets the whole answer', async () => {
    const gate = latch()
    const model = createScriptedModel([held('one ', gate, 'two')])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const body = {
      agentId: 'a',
      id: 'c',
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go' }] }],
    }
    const [one, two] = await Promise.all([server.post('/api/beddel/chat', body), server.post('/api/beddel/chat', body)])
    gate.open()
    expect([await one.text(), await two.text()]).toEqual(['one two', 'one two'])
    const later = await server.post('/api/beddel/chat', body)
    expect(await later.text()).toBe('one two')
    expect(new Set([one, two, later].map(({ headers }) => headers.get('x-millrace-run-id'))).size).toBe(1)
    expect(model.calls).toHaveLength(1)
    expect(await server.store.runs.list({ threadId: 'c' })).toHaveLength(1)
  })

  test('message ids of different conversations, and of none, never meet', async () => {
    const model = createScriptedModel(['A', 'B', 'C', 'D'].map((name) => [text(name), finish()]))
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const messages = [{ id: '1', role: 'user', content: 'Hi' }]
    const said: string[] = []
    for (const id of ['x', 'y', undefined, undefined]) {
      said.push(await (await server.post('/api/beddel/chat', { agentId: 'a', messages, id })).text())
    }
    expect(said).toEqual(['A', 'B', 'C', 'D'])
  })

  test('twice at once and refused: both by status; asked again later, it is a new try', async () => {
    const busy = Object.assign(new Error('slow down'), { statusCode: 429, responseHeaders: { 'retry-after': '20' } })
    const model = createScriptedModel([[throws(busy)], [throws(busy)], [text('Now.'), finish()]])
    server = await startServer({ agents: { a: agent('retries: 0') }, scripts: { m: model } })
    const body = { agentId: 'a', id: 'c', messages: [{ id: 'm1', role: 'user', content: 'Hi' }] }
    const twice = await Promise.all([1, 2].map(() => server.post('/api/beddel/chat', body)))
    expect(twice.map(({ status }) => status)).toEqual([429, 429])
    const asked = model.calls.length
    const later = [await server.post('/api/beddel/chat', body), await server.post('/api/beddel/chat', body)]
    if (asked === 1) {
      expect(later.map(({ status }) => status)).toEqual([429, 200])
      later.push(await server.post('/api/beddel/chat', body))
    } else expect(later.map(({ status }) => status)).toEqual([200, 200])
    expect(await later.at(-1)!.text()).toBe('Now.')
    expect(model.calls).toHaveLength(3)
  })

  test('a page that comes late, after the answer ended, is told that nothing runs, while `after` steps still do', async () => {
    const gate = latch()
    const yaml = `${agent()}after:\n  - { id: slow, type: slow }\n`
    server = await startServer({
      agents: { a: yaml },
      steps: { slow: () => gate.opened },
      scripts: { m: createScriptedModel([[text('Done.'), finish()]]) },
    })
    const { chat, runs } = createChat(server.url, { id: 'c' })
    await chat.sendMessage({ text: 'Hi' })
    expect(lines(chat.messages)).toEqual(['user: Hi', 'assistant: Done.'])
    expect((await view(runs[0]!)).status).toBe('running')
    expect((await fetch(`${server.url}/api/chat/c/stream`)).status).toBe(204)
    gate.open()
    await until(server.store, runs[0]!, ({ type }) => type === 'run-end')
    const entries = await entriesOf(server.store, runs[0]!)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
  })

  test('a reload before the first token', async () => {
    const gate = latch()
    server = await startServer({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[gate, text('Hi'), finish()]]) },
    })
    const first = createChat(server.url, { id: 'c' })
    const sent = first.chat.sendMessage({ text: 'Go' })
    await expect.poll(async () => (await server.store.runs.list({ threadId: 'c' })).length).toBe(1)
    await first.chat.stop()
    await sent
    const stream = await fetch(`${server.url}/api/chat/c/stream`)
    const body = readBody(stream)
    expect(await body.until('\n\n')).toContain('"type":"start"')
    gate.open()
    expect(await body.rest()).toContain('[DONE]')
  })
})
