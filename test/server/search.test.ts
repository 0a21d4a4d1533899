/** `GET /api/search`, and `GET /api/runs?q=` by what was said. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { RunRow } from '../../src/part/log.ts'
import type { SearchHit } from '../../src/part/records.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, createEngine } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { createHandler } from '../../src/server/handler.ts'

const canary = 'sk-canary-abcdefghijklmnop'
let server: TestServer
const ids: string[] = []
beforeAll(async () => {
  const model = createScriptedModel([
    [text('I have seen the blue whale. '), toolCall('c', 'spy', { key: canary }), finish('tool-calls')],
    [text('It swims.'), finish()],
    [text('Only a grey seal.'), finish()],
  ])
  server = await startServer({
    agents: { sea: agent('tools: [spy]') },
    environment: { SHOP_API_KEY: canary },
    scripts: { m: model },
    tools: { spy: { parameters: { type: 'object' }, execute: async () => ({ found: `${canary} plankton` }) } },
  })
  for (const [content, threadId] of [
    ['Tell me about Nemo', 't1'],
    ['And about Dory', 't2'],
  ] as const) {
    const run = await server.runtime.start('sea', { messages: [{ role: 'user', content }] }, { threadId })
    await run.result
    ids.push(run.id)
  }
  await server.store.records!.settle()
})
afterAll(() => server.close())

const ask = async (path: string) => {
  const response = await fetch(server.url + path)
  return {
    status: response.status,
    body: (await response.json()) as { hits: SearchHit[]; runs: RunRow[]; error: { message: string } },
  }
}

describe('search', () => {
  test('words are found in what the user, the model and the tools said', async () => {
    const { body } = await ask('/api/search?q=blue+whale')
    expect(body.hits).toEqual([
      expect.objectContaining({ run: ids[0], threadId: 't1', kind: 'text', excerpt: 'I have seen the blue whale.' }),
    ])
    expect((await ask('/api/search?q=plankton')).body.hits).toMatchObject([{ kind: 'tool-output', toolName: 'spy' }])
    expect((await ask('/api/search?q=dory&thread=t2')).body.hits).toMatchObject([{ run: ids[1], kind: 'user' }])
    expect((await ask('/api/search?q=dory&thread=t1')).body.hits).toEqual([])
    expect((await ask('/api/search?q=about&agent=sea&limit=1')).body.hits).toHaveLength(1)
  })

  test('runs are listed by words of their title or of what was said', async () => {
    const listed = async (q: string) =>
      (await ask(`/api/runs?q=${encodeURIComponent(q)}`)).body.runs.map(({ id }) => id)
    expect(await listed('seal')).toEqual([ids[1]])
    expect(await listed('Nem')).toEqual([ids[0]])
    expect(await listed('about')).toEqual([ids[1], ids[0]])
    expect(await listed('nowhere')).toEqual([])
  })

  test('a secret is in no table and cannot be searched', async () => {
    expect((await ask('/api/search?q=canary')).body.hits).toEqual([])
    const { rows: tables } = await server.store.records!.query(
      `SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')`,
    )
    expect(tables.length).toBeGreaterThan(25)
    for (const [name] of tables) {
      const { rows } = await server.store.records!.query(`SELECT * FROM "${String(name)}"`)
      const kept = rows
        .flat()
        .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)))
      expect(kept.join('\n'), String(name)).not.toMatch(/canary|abcdefghijklmnop/u)
    }
  })

  test.each([
    ['', 'q must be the words to search for.'],
    ['?q=%20', 'q must be the words to search for.'],
    ['?q=a&limit=0', 'limit must be a whole number from 1 to 1000.'],
    ['?q=a&agnet=b', 'Unknown parameter "agnet" (did you mean "agent"?)'],
  ])('GET /api/search%s is refused', async (query, message) => {
    const { status, body } = await ask(`/api/search${query}`)
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(message)])
  })

  test('runs that are kept in memory cannot be searched, which the answer says', async () => {
    const { runtime, close } = createEngine({ agents: {}, wrapStore: () => memoryStore() })
    const handler = createHandler({ runtime, authorize: () => true })
    const response = await handler(new Request('http://localhost/api/search?q=a'))
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('cannot be searched')])
    await close()
  })
})
