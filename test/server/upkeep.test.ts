/** `POST /api/compact` and `/api/prune`, and what clients of such runs get. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Store } from '../../src/part/log.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createRest, keepSmall, startHousekeeping } from '../../src/record/housekeeping.ts'
import { withRunFiles } from '../../src/record/run-files.ts'
import { folder } from '../support/cli.ts'
import { agent, entriesOf, only, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

type Script = Parameters<typeof createScriptedModel>[0][number]
const words = text(...Array.from({ length: 400 }, (_, i) => `word ${i} `))
const run = async (content: string, threadId = 't') => {
  const input = { messages: [{ role: 'user', content }] }
  const { id } = (await (await server.post('/api/runs', { agentId: 'a', threadId, input })).json()) as { id: string }
  await until(server.store, id, ({ type }) => type === 'run-end')
  return id
}

/** A server whose runs have files in a folder. */
async function serving(...scripts: Script[]): Promise<string> {
  const dir = join(folder(), 'runs')
  mkdirSync(dir)
  const wrapStore = (store: Store): Store => ({ ...store, upkeep: withRunFiles(store.upkeep!, dir) })
  server = await startServer({
    agents: { a: agent() },
    scripts: { m: createScriptedModel(scripts) },
    wrapStore,
  })
  return dir
}

async function ask(path: string, body: object): Promise<Record<string, any>> {
  const response = await server.post(path, body)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
  const lines = (await response.text()).trim().split('\n')
  return JSON.parse(lines.at(-1)!) as Record<string, any>
}

const get = async (path: string) => {
  const response = await fetch(server.url + path)
  return { status: response.status, body: await response.text() }
}

describe('upkeep of a server', () => {
  test('a compacted run is shown as before; a cursor among its merged deltas is gone, the others go on', async () => {
    await serving([toolCall('c', 'calculator', { expression: '1+1' }), finish('tool-calls')], [words, finish()])
    const id = await run('Hi')
    const before = await get(`/api/runs/${id}`)
    const chat = await get(`/api/chat/t/stream`)
    expect(await ask('/api/compact', { olderThan: '1h' })).toMatchObject({ done: { runs: 0 } })
    const planned = await ask('/api/compact', { olderThan: 0, dryRun: true })
    expect(planned).toMatchObject({ done: { runs: 1, dryRun: true } })
    expect((await entriesOf(server.store, id)).length).toBeGreaterThan(400)
    const { done } = await ask('/api/compact', { olderThan: 0 })
    expect(done).toMatchObject({ runs: 1, entriesAfter: planned['done'].entriesAfter, size: expect.any(Number) })
    const entries = await entriesOf(server.store, id)
    expect(entries.length).toBe(done.entriesAfter)
    const after = await get(`/api/runs/${id}`)
    expect(JSON.parse(after.body)).toEqual(JSON.parse(before.body))
    expect((await get(`/api/chat/t/stream`)).status).toBe(chat.status)
    const merged = only(entries, 'text-delta').find(({ firstSeq }) => firstSeq !== undefined)!
    for (const accept of ['application/x-ndjson', 'text/event-stream']) {
      const from = (seq: number) => fetch(`${server.url}/api/runs/${id}/events?after=${seq}`, { headers: { accept } })
      const gone = await from(merged.seq - 1)
      expect([gone.status, await gone.json()]).toEqual([410, { error: expect.objectContaining({ code: 'compacted' }) }])
      for (const { seq } of entries.slice(0, -1)) {
        const body = await (await from(seq)).text()
        expect(body.match(/"seq":/gu)!.length).toBe(entries.filter((each) => each.seq > seq).length)
      }
    }
  })

  test('pruned runs are gone with their files; a conversation goes on without what was said in them', async () => {
    const answers = ['one', 'two', 'three', 'four'].map((word) => [text(word), finish()])
    const dir = await serving(...answers)
    const [first, second] = [await run('first'), await run('second')]
    const other = await run('else', 'u')
    for (const id of [first, second]) {
      for (const ending of ['.ndjson', '.summary.json', '.main%2Fcode.raw'])
        writeFileSync(join(dir, id + ending), 'x'.repeat(100_000))
    }
    writeFileSync(join(dir, `${second}0.ndjson`), 'of another run')
    expect(await ask('/api/prune', { olderThan: '1h' })).toMatchObject({ done: { runs: 0 } })
    const { size } = (await ask('/api/prune', { maxBytes: '10gb' }))['done'] as { size: number }
    expect(size).toBeGreaterThan(600_000)
    expect(await ask('/api/prune', { maxBytes: size - 1, dryRun: true })).toMatchObject({ done: { runs: 1 } })
    // The oldest goes first; with its files it is enough.
    expect(await ask('/api/prune', { maxBytes: size - 100_000 })).toMatchObject({ done: { runs: 1 } })
    expect(readdirSync(dir).some((name) => name.startsWith(`${first}.`))).toBe(false)
    expect(readdirSync(dir).filter((name) => name.startsWith(second)).length).toBe(4)
    expect((await get(`/api/runs/${first}`)).status).toBe(404)
    expect((await get(`/api/runs/${first}/events`)).status).toBe(404)
    const next = await run('third')
    const prompt = only(await entriesOf(server.store, next), 'prompt')[0]!
    expect(JSON.stringify(prompt.messages)).toMatch(/second.*three|second.*two.*third/u)
    expect(JSON.stringify(prompt.messages)).not.toContain('first')
    expect(only(await entriesOf(server.store, next), 'warning')).toMatchObject([{ code: 'history-cut' }])
    expect((await get('/api/threads/t')).status).toBe(200)
    expect(await ask('/api/prune', { olderThan: 0 })).toMatchObject({ done: { runs: 3 } })
    for (const id of [second, other, next]) expect((await get(`/api/runs/${id}`)).status).toBe(404)
    expect(readdirSync(dir)).toEqual([`${second}0.ndjson`])
  })

  test('what is active or waits is kept, with its conversation', async () => {
    const gate = latch()
    await serving([text('one'), finish()], [text('two'), gate, finish()])
    const first = await run('first')
    const body = { agentId: 'a', threadId: 't', input: { messages: [{ role: 'user', content: 'second' }] } }
    const { id } = (await (await server.post('/api/runs', body)).json()) as { id: string }
    await gate.reached
    expect(await ask('/api/prune', { olderThan: 0, maxBytes: 1 })).toMatchObject({ done: { runs: 0 } })
    expect(await ask('/api/compact', { olderThan: 0 })).toMatchObject({ done: { runs: 0 } })
    gate.open()
    await until(server.store, id, ({ type }) => type === 'run-end')
    expect((await get(`/api/runs/${first}`)).status).toBe(200)
  })

  test.each([
    ['/api/compact', { olderThen: '1d' }, 'unknown key "olderThen" (did you mean "olderThan"?)'],
    ['/api/compact', { olderThan: 'a week' }, 'a duration such as "30d"'],
    ['/api/prune', {}, 'a duration such as "30d"'],
    ['/api/prune', { maxBytes: '-1' }, 'a size such as "2gb"'],
    ['/api/prune', { olderThan: 0, dryRun: 'yes' }, 'true or false'],
  ])('%s with %j is refused', async (path, body, message) => {
    await serving()
    const response = await server.post(path, body)
    const { error } = (await response.json()) as { error: { message: string } }
    expect([response.status, error.message]).toEqual([400, expect.stringContaining(message)])
  })

  test('the policy of a server deletes and compacts what is due, and tells', async () => {
    await serving([words, finish()], [words, finish()])
    const old = await run('old', 'x')
    const { endedAt } = (await server.store.runs.get(old))!
    const day = 86_400_000
    const policy = { compactAfter: day, maxAge: 30 * day }
    const at = (days: number) => keepSmall(server.store, policy, { now: endedAt! + days * day + 1 })
    expect(await at(0.5)).toMatchObject({ compacted: { runs: 0 }, pruned: { runs: 0 } })
    expect(await at(1)).toMatchObject({ compacted: { runs: 1 }, pruned: { runs: 0 } })
    expect(await at(31)).toMatchObject({ compacted: { runs: 0 }, pruned: { runs: 1 } })
    const housekeeping = startHousekeeping(server.store, policy, () => undefined)
    await housekeeping.close()
  })

  test('it rests between slices, and stops at once when the server closes', async () => {
    await serving([words, finish()])
    await run('x')
    const closing = new AbortController()
    const rest = createRest(0.1, closing.signal)
    await rest()
    closing.abort()
    await expect(keepSmall(server.store, { compactAfter: 0 }, { now: Infinity, rest })).rejects.toThrow()
    expect(existsSync(folder())).toBe(true)
  })

  test('what was deleted can be erased by itself; while another process reads it, the answer says so', async () => {
    await serving([text('hello'), finish()])
    await run('Hi')
    expect(await ask('/api/prune', { erase: true, dryRun: true })).toMatchObject({ done: { runs: 0 } })
    expect(await ask('/api/prune', { olderThan: 0, erase: true })).toMatchObject({ done: { runs: 1 } })
    expect(await ask('/api/prune', { erase: true })).toMatchObject({ done: { runs: 0, size: expect.any(Number) } })
    expect((await server.post('/api/prune', { erase: 'yes' })).status).toBe(400)
    const { upkeep } = server.store
    server.store.upkeep!.erase = async () => 'read'
    expect(await ask('/api/prune', { erase: true })).toMatchObject({ error: { code: 'not-erased' } })
    server.store.upkeep!.erase = upkeep!.erase!
  })
})
