/** `GET /api/threads`, and what `GET /api/threads/:id` says of a thread: out of the tables, and folded where there are none. */
import { afterEach, describe, expect, test, vi } from 'vitest'
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
import type { ThreadRow } from '../../src/part/thread.ts'
import { listThreads } from '../../src/record.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(async () => {
  await server.close()
  vi.restoreAllMocks()
})

const add = { parameters: z.object({}), execute: () => 3 }
const here = { parameters: z.object({}) }
const day = 24 * 3_600_000

const stores: Record<string, Partial<EngineOptions>> = {
  SQLite: {},
  memory: {
    wrapStore: (store) => {
      void store.close()
      return memoryStore()
    },
  },
}

async function serve(script: ScriptStep[][], more: Partial<EngineOptions> = {}): Promise<void> {
  server = await startServer({
    agents: { a: agent('tools: [add]'), b: agent('tools: [here]') },
    tools: { add, here },
    scripts: { m: createScriptedModel(script) },
    pricing: { 'script:m': { input: 1, output: 1 } },
    ...more,
  })
}

/** Says something in a thread, and waits until the run has ended or waits. */
async function say(threadId: string, content: string, agentId = 'a'): Promise<string> {
  const body = { agentId, threadId, input: { messages: [{ role: 'user', content }] } }
  const { id } = (await (await server.post('/api/runs', body)).json()) as { id: string }
  await until(server.store, id, ({ type }) => type === 'run-end' || type === 'suspend')
  return id
}

async function ask<T>(path: string): Promise<T> {
  const response = await fetch(server.url + path)
  expect(response.status).toBe(200)
  return (await response.json()) as T
}

const list = async (search = '') => (await ask<{ threads: ThreadRow[] }>(`/api/threads${search}`)).threads
const ids = async (search = '') => (await list(search)).map(({ id }) => id)

describe.each(Object.entries(stores))('%s', (_, store) => {
  test('a row says what happened in all runs of a thread; the thread itself says the same', async () => {
    const calls = [text('Let me see.'), toolCall('c1', 'add'), toolCall('c2', 'add'), finish('tool-calls')]
    await serve([calls, [text('It is 3.'), finish()], [throws(new Error('no more'))], [text('Else.'), finish()]], store)
    const began = Date.now()
    await say('one', 'What is 1+2?')
    const failed = await say('one', 'And now?')
    await say('two', 'Hello', 'b')
    const rows = await list()
    expect(rows.map(({ id }) => id)).toEqual(['two', 'one'])
    const one = rows[1]!
    expect(one).toMatchObject({
      id: 'one',
      status: 'idle',
      title: 'What is 1+2?',
      agents: ['a'],
      lastRunId: failed,
      runCount: 2,
      // A question, two texts with their calls, their results, and a question without an answer.
      messageCount: 5,
      models: ['script:m'],
      tools: ['add'],
      toolCallCount: 2,
      errorCount: 1,
    })
    expect(rows[0]).toMatchObject({
      agents: ['b'],
      runCount: 1,
      messageCount: 2,
      tools: [],
      toolCallCount: 0,
      errorCount: 0,
    })
    const runs = (await ask<{ runs: { usage: ThreadRow['usage']; cost: number }[] }>('/api/runs?thread=one')).runs
    const sum = (of: (run: (typeof runs)[number]) => number) => runs.reduce((total, run) => total + of(run), 0)
    expect(one.usage.totalTokens).toBe(sum(({ usage }) => usage.totalTokens ?? 0))
    expect(one.usage.totalTokens).toBeGreaterThan(0)
    expect(one.cost).toBeCloseTo(sum(({ cost }) => cost))
    expect(one.startedAt).toBeGreaterThanOrEqual(began)
    expect(one.updatedAt).toBeGreaterThanOrEqual(one.startedAt)
    expect(one.firstTokenMs!.last).toBeGreaterThanOrEqual(0)
    expect(one.firstTokenMs!.average).toBe(one.firstTokenMs!.last)
    expect(await ask('/api/threads/one')).toMatchObject({ ...one })
    expect(await listThreads(server.store)).toEqual(rows)
  })

  test('a cost with an unknown price is unknown', async () => {
    await serve([[text('One.'), finish()]], { ...store, pricing: {} })
    await say('t', 'Hi')
    const [row] = await list()
    expect(row!.usage.totalTokens).toBeGreaterThan(0)
    expect(row).not.toHaveProperty('cost')
  })

  test('pages, agents and words: each condition selects', async () => {
    const script = ['red', 'green', 'blue', 'red again'].map((colour) => [text(`I like ${colour}.`), finish()])
    await serve(script, store)
    await say('t1', 'Which colour?')
    await say('t2', 'Which one?', 'b')
    await say('t3', 'What colour do YOU like?')
    await say('t1', 'Still?', 'b')
    expect(await ids()).toEqual(['t1', 't3', 't2'])
    expect(await ids('?limit=2')).toEqual(['t1', 't3'])
    expect(await ids('?limit=2&before=t3')).toEqual(['t2'])
    expect(await ids('?agent=b')).toEqual(['t1', 't2'])
    expect((await list('?agent=b'))[0]!.agents).toEqual(['b', 'a'])
    expect(await ids('?agent=nobody')).toEqual([])
    expect(await ids('?q=colour')).toEqual(['t1', 't3'])
    expect(await ids('?q=like+YOU')).toEqual(['t3'])
    expect(await ids('?q=purple')).toEqual([])
    const [found] = await list('?q=green')
    expect(found).toMatchObject({ id: 't2', match: { kind: 'text', excerpt: 'I like green.' } })
    const told = async (search: string) => {
      const response = await fetch(`${server.url}/api/threads${search}`)
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code]
    }
    expect(await told('?status=idel')).toEqual([400, 'bad-input'])
    expect(await told('?limit=0')).toEqual([400, 'bad-input'])
    expect(await told('?q=')).toEqual([400, 'bad-input'])
    expect(await told('?thread=t1')).toEqual([400, 'bad-input'])
    expect(await told('?before=nobody')).toEqual([404, 'unknown-thread'])
  })

  test('a thread is active while a run is, then idle, and closed when nothing has happened for long', async () => {
    const gate = latch()
    await serve(
      [
        [text('So far.'), gate, finish()],
        [text('Again.'), finish()],
      ],
      store,
    )
    const body = { agentId: 'a', threadId: 't', input: { messages: [{ role: 'user', content: 'Hi' }] } }
    const { id } = (await (await server.post('/api/runs', body)).json()) as { id: string }
    await gate.reached
    expect((await list('?status=active')).map((row) => [row.id, row.status])).toEqual([['t', 'active']])
    expect(await ids('?status=idle')).toEqual([])
    gate.open()
    await until(server.store, id, ({ type }) => type === 'run-end')
    expect(await ids('?status=active')).toEqual([])
    expect((await list('?status=idle')).map(({ status }) => status)).toEqual(['idle'])
    const now = Date.now.bind(Date)
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 31 * day)
    expect(await ids('?status=idle')).toEqual([])
    expect((await list('?status=closed')).map(({ status }) => status)).toEqual(['closed'])
    await say('t', 'Hello again')
    expect((await list()).map(({ status, runCount }) => [status, runCount])).toEqual([['idle', 2]])
  })
})

test('a thread waits while one of its runs does; when that was ended because it was idle, it is closed', async () => {
  await serve([[toolCall('c', 'here'), finish('tool-calls')]], {
    closeThreadsAfterMs: 1000,
    requestDeadlineMs: 99 * day,
  })
  const id = await say('t', 'Hi', 'b')
  expect((await list('?status=waiting')).map((row) => [row.id, row.status])).toEqual([['t', 'waiting']])
  const now = Date.now.bind(Date)
  vi.spyOn(Date, 'now').mockImplementation(() => now() + day)
  expect(await ids('?status=closed')).toEqual([])
  await server.runtime.recover()
  await until(server.store, id, ({ type }) => type === 'run-end')
  expect((await list('?status=closed')).map(({ status, errorCount }) => [status, errorCount])).toEqual([['closed', 0]])
})

interface Page {
  messages: { role: string; content: unknown }[]
  messagesBefore?: string
}

/** All pages of a thread's messages, newest page first. */
async function pages(thread: string, size: number): Promise<Page['messages'][]> {
  const found: Page['messages'][] = []
  for (let before = ''; ;) {
    const page: Page = await ask(`/api/threads/${thread}?messages=${size}${before && `&messagesBefore=${before}`}`)
    found.push(page.messages)
    if (page.messagesBefore === undefined) return found
    before = encodeURIComponent(page.messagesBefore)
  }
}

test('messages page by page are all messages, each once; a turn is not cut', async () => {
  const calls = [text('Hm.'), toolCall('c1', 'add'), finish('tool-calls')]
  await serve([[text('1'), finish()], calls, [text('2'), finish()], [text('3'), finish()]])
  for (const content of ['first', 'second', 'third']) await say('t', content)
  const { messages } = await ask<Page>('/api/threads/t')
  expect(messages).toHaveLength(8)
  for (const [size, sizes] of [
    [1, [2, 4, 2]],
    [3, [6, 2]],
    [8, [8]],
    [1000, [8]],
  ] as const) {
    const found = await pages('t', size)
    expect(found.map(({ length }) => length)).toEqual(sizes)
    expect(found.toReversed().flat()).toEqual(messages)
  }
  expect((await fetch(`${server.url}/api/threads/t?messagesBefore=run_other:1`)).status).toBe(400)
})

test('page by page where the client keeps the history, while new messages come', async () => {
  await serve([
    [text('one'), finish()],
    [text('two'), finish()],
    [text('three'), finish()],
  ])
  const told: { role: string; content: string }[] = []
  for (const [content, answer] of [
    ['a', 'one'],
    ['b', 'two'],
  ]) {
    told.push({ role: 'user', content: content! })
    await (await server.post('/api/chat', { agentId: 'a', id: 'c', messages: told })).text()
    told.push({ role: 'assistant', content: answer! })
  }
  const first: Page = await ask('/api/threads/c?messages=2')
  expect(first.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  told.push({ role: 'user', content: 'c' })
  await (await server.post('/api/chat', { agentId: 'a', id: 'c', messages: told })).text()
  const second: Page = await ask(
    `/api/threads/c?messages=2&messagesBefore=${encodeURIComponent(first.messagesBefore!)}`,
  )
  expect(second.messages).toMatchObject([{ content: 'a' }, { content: 'one' }])
  expect(second.messagesBefore).toBeUndefined()
})
