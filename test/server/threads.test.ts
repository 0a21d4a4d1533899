/** `GET /api/threads/:id`: a conversation as a whole. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { threadUsage } from '../../src/record/threads/list-threads.ts'
import { agent, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

interface Thread {
  id: string
  runs: { id: string; status: string }[]
  usageByModel: object[]
  messages: { role: string; content: string | { text: string }[]; id?: string }[]
}

async function thread(id: string, search = ''): Promise<Thread> {
  const response = await fetch(`${server.url}/api/threads/${encodeURIComponent(id)}${search}`)
  expect(response.status).toBe(200)
  return (await response.json()) as Thread
}

const words = ({ messages }: Thread) =>
  messages.map(({ content }) => (typeof content === 'string' ? content : content.map((part) => part.text).join('')))

async function serving(...answers: string[]): Promise<void> {
  const script = answers.map((answer) => [text(answer), finish()])
  server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel(script) } })
}

describe('thread routes', () => {
  test('where the server keeps the history: all runs, newest first, page by page, and every message once', async () => {
    await serving('one', 'two', 'three', 'elsewhere')
    const ids: string[] = []
    for (const [content, threadId] of [
      ['first', 'my thread/1'],
      ['second', 'my thread/1'],
      ['third', 'my thread/1'],
      ['other', 'another'],
    ]) {
      const body = { agentId: 'a', threadId, input: { messages: [{ role: 'user', content }] } }
      const { id } = (await (await server.post('/api/runs', body)).json()) as { id: string }
      await until(server.store, id, ({ type }) => type === 'run-end')
      ids.unshift(id)
    }
    const whole = await thread('my thread/1')
    expect(whole.id).toBe('my thread/1')
    const usage = { inputTokens: 30, outputTokens: 15, source: 'reported' }
    const used = [{ model: 'script:m', calls: 3, usage, knownCost: 0, unpriced: 3 }]
    expect(whole.usageByModel).toEqual(used)
    const { log, runs } = server.store
    expect(await threadUsage({ log, runs }, 'my thread/1')).toMatchObject(used)
    expect(whole.runs.map(({ id }) => id)).toEqual(ids.slice(1))
    expect(whole.runs[0]).toMatchObject({ status: 'completed', agent: 'a', title: 'third' })
    expect(words(whole)).toEqual(['first', 'one', 'second', 'two', 'third', 'three'])
    expect(whole.messages.at(-1)).toMatchObject({ role: 'assistant', id: ids[1] })
    const page = await thread('my thread/1', `?limit=1&before=${ids[1]}`)
    expect(page.runs.map(({ id }) => id)).toEqual([ids[2]])
    expect(words(page)).toEqual(words(whole))
  })

  test('where the client keeps it: what it sent last, and what was said to that', async () => {
    await serving('one', 'two', 'again')
    const says = async (...content: string[]) => {
      const messages = content.map((each, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content: each }))
      await (await server.post('/api/chat', { agentId: 'a', id: 'c', messages })).text()
    }
    await says('first')
    await says('first', 'one', 'second')
    expect(words(await thread('c'))).toEqual(['first', 'one', 'second', 'two'])
    // The first message was written anew.
    await says('changed')
    const whole = await thread('c')
    expect([whole.runs.length, words(whole)]).toEqual([3, ['changed', 'again']])
  })

  test('with the clock set back the newest run is still the newest: in its thread, for a resume, page by page', async () => {
    const gate = latch()
    const script = [
      [text('one'), finish()],
      [text('two'), finish()],
      [text('three'), gate, finish()],
    ]
    server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel(script) } })
    const real = Date.now.bind(Date)
    let hoursBack = 0
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => real() - hoursBack * 3_600_000)
    try {
      const contents: string[] = []
      for (const content of ['first', 'second', 'third']) {
        contents.push(content)
        const messages = contents.map((each) => ({ role: 'user', content: each }))
        const response = await server.post('/api/chat', { agentId: 'a', id: 'c', messages })
        if (content !== 'third') await response.text()
        else await gate.reached
        hoursBack++
      }
      const resumed = await fetch(`${server.url}/api/chat/c/stream`)
      expect(resumed.status).toBe(200)
      gate.open()
      expect(await resumed.text()).toContain('three')
      const whole = await thread('c')
      expect(whole.runs).toMatchObject([{ title: 'third' }, { title: 'second' }, { title: 'first' }])
      expect(words(whole).at(-1)).toBe('three')
      const second = (await thread('c', `?limit=1&before=${whole.runs[0]!.id}`)).runs
      expect(second).toMatchObject([{ title: 'second' }])
      const list = await fetch(`${server.url}/api/runs?thread=c&before=${second[0]!.id}`)
      expect(((await list.json()) as Thread).runs).toMatchObject([{ title: 'first' }])
    } finally {
      clock.mockRestore()
    }
  })

  test('a thread that is not there is a 404, a page that is none a 400', async () => {
    await serving()
    const told = async (path: string) => {
      const response = await fetch(server.url + path)
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code]
    }
    expect(await told('/api/threads/nobody')).toEqual([404, 'unknown-thread'])
    expect(await told('/api/threads/nobody?limit=0')).toEqual([400, 'bad-input'])
    expect(await told('/api/threads/nobody?agent=a')).toEqual([400, 'bad-input'])
  })
})
