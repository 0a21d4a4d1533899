/** `POST /api/threads/:id/title`: names of conversations in lists, searches, SQL and open pages, and whose they may be. */
import { describe, expect, test } from 'vitest'
import { assemble } from '../../src/server/handler.ts'
import type { ThreadRow } from '../../src/part/thread.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { createTestAccess, headersFor, type Caller } from '../support/callers.ts'
import { openEngine, until, type EngineOptions } from '../support/engine.ts'

const agent = `workflow:
  - id: say
    type: output-generator
    config: { template: Hello }
`
const stores: Record<string, Partial<EngineOptions>> = {
  SQLite: {},
  memory: {
    wrapStore: (store) => {
      void store.close()
      return memoryStore()
    },
  },
}

function open(options: Partial<EngineOptions> = {}) {
  const engine = openEngine({ agents: { a: agent }, secrets: { values: ['hidden-key-123'] }, ...options })
  const { handler } = assemble({ runtime: engine.runtime, access: createTestAccess() })
  const ask = (who: Caller, path: string, init: RequestInit = {}) =>
    handler(
      new Request(`http://x${path}`, {
        ...init,
        headers: { ...headersFor(who), 'content-type': 'application/json' },
      }),
    )
  async function run(who: Caller, threadId: string, content = 'Hi there'): Promise<void> {
    const body = { agentId: 'a', threadId, input: { messages: [{ role: 'user', content }] } }
    const response = await ask(who, '/api/runs', { method: 'POST', body: JSON.stringify(body) })
    await until(engine.store, ((await response.json()) as { id: string }).id, ({ type }) => type === 'run-end')
  }
  async function rename(who: Caller, thread: string, title: unknown) {
    const path = `/api/threads/${encodeURIComponent(thread)}/title`
    const response = await ask(who, path, { method: 'POST', body: JSON.stringify({ title }) })
    return { status: response.status, ...((await response.json()) as { title?: string; error?: { message: string } }) }
  }
  async function titles(who: Caller, query = ''): Promise<(string | undefined)[]> {
    const { threads } = (await (await ask(who, `/api/threads?${query}`)).json()) as { threads: ThreadRow[] }
    return threads.map(({ id, title }) => `${id}: ${title}`)
  }
  return { engine, ask, run, rename, titles }
}

describe.each(Object.keys(stores))('names of conversations, %s', (kind) => {
  test('the last name is shown and found; an empty one takes it back', async () => {
    const { ask, run, rename, titles } = open(stores[kind])
    await run('alice', 'one')
    await run('alice', 'two', 'Something else')
    expect(await rename('alice', 'one', ' Rome,\n in May ')).toMatchObject({
      status: 200,
      id: 'one',
      title: 'Rome, in May',
    })
    expect(await titles('alice')).toEqual(['two: Something else', 'one: Rome, in May'])
    expect(await titles('alice', 'q=may+rome')).toEqual(['one: Rome, in May'])
    // The words that were said are found as before.
    expect(await titles('alice', 'q=there')).toEqual(['one: Rome, in May'])
    expect(await titles('alice', 'q=may+other')).toEqual([])
    const shown = (await (await ask('alice', '/api/threads/one')).json()) as ThreadRow
    expect(shown.title).toBe('Rome, in May')
    expect(await rename('alice', 'one', '')).toMatchObject({ status: 200, title: 'Hi there' })
    expect(await titles('alice', 'q=rome')).toEqual([])
  })

  test('users and operators name their own threads, admins those of others too', async () => {
    const { run, rename, titles } = open(stores[kind])
    await run('alice', 'one')
    await run('bob', 'one')
    await rename('bob', 'one', 'Of Bob')
    expect(await titles('alice')).toEqual(['one: Hi there'])
    expect(await titles('alice', 'q=bob')).toEqual([])
    const named = 'one@@acme/alice'
    expect(await rename('bob', named, 'x')).toMatchObject({ status: 404 })
    expect(await rename('operator', named, 'x')).toMatchObject({ status: 403 })
    expect(await rename('admin of acme', named, 'Checked')).toMatchObject({ status: 200, title: 'Checked' })
    expect(await titles('alice')).toEqual(['one: Checked'])
  })
})

describe('names of conversations', () => {
  test.each<[string, unknown]>([
    ['no title', undefined],
    ['a number', 5],
    ['a long text', 'x'.repeat(121)],
  ])('%s is refused', async (_, title) => {
    const { run, rename } = open()
    await run('alice', 'one')
    expect(await rename('alice', 'one', title)).toMatchObject({
      status: 400,
      error: { message: 'title must be a text of at most 120 characters; an empty one takes it back.' },
    })
  })

  test('a secret is not kept, and a thread that is not there is a 404', async () => {
    const { run, rename, titles } = open()
    await run('alice', 'one')
    await rename('alice', 'one', 'It is hidden-key-123!')
    expect((await titles('alice'))[0]).not.toContain('hidden-key-123')
    expect(await rename('alice', 'none', 'x')).toMatchObject({
      status: 404,
      error: { message: 'There is no thread none.' },
    })
  })

  test('open pages of those who see the thread are told, by the name that it has for them', async () => {
    const { ask, run, rename } = open()
    await run('alice', 'one')
    const pages = await Promise.all(
      (['alice', 'operator', 'bob'] as const).map(async (who) => {
        const reader = (await ask(who, '/api/live?rows=1')).body!.pipeThrough(new TextDecoderStream()).getReader()
        return { who, reader, text: (await reader.read()).value! }
      }),
    )
    await rename('alice', 'one', 'Rome')
    const [alice, operator, bob] = pages
    const told = async (page: (typeof pages)[number], what: string) => {
      while (!page.text.includes(what)) page.text += (await page.reader.read()).value ?? ''
      return page.text.match(/event: title\ndata: (.*)/u)?.[1]
    }
    expect(await told(alice!, 'event: title')).toBe('{"id":"one","title":"Rome"}')
    expect(await told(operator!, 'event: title')).toBe('{"id":"one@@acme/alice","title":"Rome"}')
    // What comes later has come, and no title before it.
    await run('bob', 'his')
    expect(await told(bob!, '"his"')).toBeUndefined()
    for (const { reader } of pages) await reader.cancel()
  })
})
