/** Conversations in `millrace/client`: continued, edited, regenerated, sent again, listed, deleted. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { overHttp, transports, type Connect } from './transports.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

const says = (...words: string[]): ScriptStep[][] => words.map((word) => [text(word), finish()])

async function start(connect: Connect, ...words: string[]) {
  const m = createScriptedModel(says(...words))
  server = await startServer({ agents: { a: agent() }, scripts: { m } })
  /** What the model was told the last time: who said what. */
  const told = () =>
    m.calls
      .at(-1)!
      .options.prompt.map(({ role, content }) => `${role}: ${JSON.stringify(content).match(/"text":"([^"]*)"/u)?.[1]}`)
  return { client: connect(server.url), store: server.store, told, m }
}

describe.each(transports)('over %s', (_name, connect) => {
  test('continued: only the new message is sent, and the model knows the conversation; show has all of it', async () => {
    const { client, told } = await start(connect, 'Hello', 'Rome')
    const thread = client.thread('t')
    await expect(thread.show()).rejects.toMatchObject({ code: 'unknown-thread', status: 404 })
    const first = thread.run({ agent: 'a', messages: 'Hi' })
    expect([await first.text, await first.threadId]).toEqual(['Hello', 't'])
    const second = thread.run({ agent: 'a', messages: 'Where?' })
    expect(await second.text).toBe('Rome')
    expect(told()).toEqual(['user: Hi', 'assistant: Hello', 'user: Where?'])
    const { messages, runs, lastRunId } = await thread.show()
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect([runs.map(({ id }) => id), lastRunId]).toEqual([[await second.id, await first.id], await second.id])
  })

  test('edited: the conversation goes on from there; what came after stays in its own runs', async () => {
    const { client, told } = await start(connect, 'Hello', 'Rome', 'Paris', 'Oslo')
    const thread = client.thread('t')
    const first = await thread.run({ agent: 'a', messages: 'Hi' }).result
    const second = await thread.run({ agent: 'a', messages: 'Where?' }).result
    const edited = await thread.edit(second.id, 'Where else?')
    expect(await edited.text).toBe('Paris')
    expect(told()).toEqual(['user: Hi', 'assistant: Hello', 'user: Where else?'])
    expect((await thread.show()).messages.map(({ content }) => JSON.stringify(content)).join()).not.toContain('Rome')
    expect(await client.show(second.id)).toMatchObject({ text: 'Rome', previousRunId: first.id })
    // The first message has nothing before it.
    expect(await (await thread.edit(first.id, 'Hey')).text).toBe('Oslo')
    expect(told()).toEqual(['user: Hey'])
  })

  test('regenerated: the same question and input, another answer; the conversation goes on behind it', async () => {
    const { client, told, store } = await start(connect, 'Hello', 'Rome', 'Paris', 'Bye')
    const thread = client.thread('t')
    await thread.run({ agent: 'a', messages: 'Hi' }).result
    const second = await thread.run({ agent: 'a', messages: 'Where?', input: { user: 'ann' } }).result
    const again = await thread.regenerate(second.id)
    expect(await again.text).toBe('Paris')
    expect(told()).toEqual(['user: Hi', 'assistant: Hello', 'user: Where?'])
    expect((await client.show(await again.id)).input).toMatchObject({ user: 'ann' })
    await thread.run({ agent: 'a', messages: 'Bye' }).result
    expect(told()).toEqual(['user: Hi', 'assistant: Hello', 'user: Where?', 'assistant: Paris', 'user: Bye'])
    expect(await store.runs.list({ threadId: 't' })).toHaveLength(4)
  })

  test('listed by words and pages, and deleted with all runs', async () => {
    const { client, store } = await start(connect, 'Hello', 'Rome', 'Oslo')
    for (const id of ['t1', 't2', 't3']) await client.thread(id).run({ agent: 'a', messages: `Hi from ${id}` }).result
    const all = await client.threads()
    expect(all.map(({ id, title }) => [id, title])).toEqual(['t3', 't2', 't1'].map((id) => [id, `Hi from ${id}`]))
    expect((await client.threads({ limit: 1, before: 't3' })).map(({ id }) => id)).toEqual(['t2'])
    expect((await client.threads({ q: 'Oslo' })).map(({ id }) => id)).toEqual(['t3'])
    await client.thread('t2').delete()
    await expect(client.thread('t2').show()).rejects.toMatchObject({ code: 'unknown-thread' })
    await client.delete(all[0]!.lastRunId)
    expect((await store.runs.list({})).map(({ threadId }) => threadId)).toEqual(['t1'])
  })
})

test('sent again with its key: one run, which both read', async () => {
  const { client, store, m } = await start(overHttp, 'Hello')
  const options = { agent: 'a', messages: 'Hi', idempotencyKey: 'k1' }
  const [first, again] = [client.thread('t').run(options), client.thread('t').run(options)]
  expect([await first.text, await again.text, await first.id]).toEqual(['Hello', 'Hello', await again.id])
  await until(store, await first.id, ({ type }) => type === 'run-end')
  expect([m.calls.length, (await store.runs.list({})).length]).toEqual([1, 1])
  // Without a key of its own each is another message.
  expect(await client.start({ agent: 'a', messages: 'Hi' })).not.toMatchObject({ id: await first.id })
})
