/** Cursors of lists: one of somebody else is as unknown as one that nobody has, and none counts what others do. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/scripted.ts'
import { runUserOf } from '../../src/part/principal.ts'
import { agent } from '../support/engine.ts'
import { callers, createTestAccess, headersFor } from '../support/callers.ts'
import { readBody, startServer } from '../support/server.ts'

async function start() {
  const m = createScriptedModel(() => [text('Hello.'), finish()])
  const server = await startServer({ agents: { a: agent() }, scripts: { m } }, { access: createTestAccess() })
  onTestFinished(() => server.close())
  const runOf = async (caller: keyof typeof callers, threadId: string) => {
    const messages = [{ role: 'user', content: 'Hi' }]
    const run = await server.runtime.start('a', { messages }, { threadId, user: runUserOf(callers[caller])! })
    await run.result
    return run.id
  }
  const get = async (caller: keyof typeof callers, path: string) => {
    const response = await fetch(server.url + path, { headers: headersFor(caller) })
    return { status: response.status, body: await response.text() }
  }
  return { ...server, runOf, get }
}

describe('cursors', () => {
  test('positions over all runs have one length, however many changes there are', async () => {
    const { runOf, url } = await start()
    const idOf = async () => {
      const leave = new AbortController()
      const response = await fetch(`${url}/api/events`, { headers: headersFor('bob'), signal: leave.signal })
      const body = readBody(response)
      const [, id] = /^id: (\S+)$/mu.exec(await body.until('\n\n'))!
      leave.abort()
      return id!
    }
    const before = await idOf()
    for (let i = 0; i < 12; i++) await runOf('alice', `${i}`)
    const after = await idOf()
    expect(after).not.toBe(before)
    expect(after).toHaveLength(before.length)
  })

  test.each([
    ['runs', (run: string) => `/api/runs?before=${run}`],
    ['sorted runs', (run: string) => `/api/runs?sort=cost&before=${run}`],
    ['runs of a model', (run: string) => `/api/runs?model=m&before=${run}`],
    ['runs of an own thread', (run: string) => `/api/threads/mine?before=${run}`],
    ['messages of an own thread', (run: string) => `/api/threads/mine?messagesBefore=${run}:1`],
    ['threads', (run: string) => `/api/threads?before=${run}`],
  ])('%s: a run of somebody else is as unknown as one of nobody', async (_, path) => {
    const { runOf, get } = await start()
    const alices = await runOf('alice', 'hers')
    for (const caller of ['bob', 'operator of beta'] as const) {
      await runOf(caller, 'mine')
      const [foreign, nobodys] = [await get(caller, path(alices)), await get(caller, path('run_nobodys'))]
      expect(nobodys.status).toBeGreaterThanOrEqual(400)
      expect({ ...foreign, body: foreign.body.replaceAll(alices, 'run_nobodys') }).toEqual(nobodys)
    }
  })

  test('sorted, filtered or counted, the runs of others are not there', async () => {
    const { runOf, get } = await start()
    await runOf('alice', 'hers')
    const own = await runOf('bob', 'his')
    expect(await get('bob', '/api/runs?count=1')).toEqual({ status: 200, body: '{"count":1,"isMore":false}' })
    for (const query of ['sort=duration', 'sort=started&order=asc', 'minMs=0', 'protocol=library', 'model=script:m']) {
      const { runs } = JSON.parse((await get('bob', `/api/runs?${query}`)).body) as { runs: { id: string }[] }
      expect(
        runs.map(({ id }) => id),
        query,
      ).toEqual([own])
    }
  })
})
