/**
 * An MCP server asks, or works at a task, and the process that has called it is killed (SIGKILL): the next one goes on with the reply or the polls, and no
 * call is made twice. On Redis another server takes over.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { createJournal } from '../../src/tools/mcp/testing/everything.ts'
import { startSdk } from '../../src/tools/mcp/testing/sdk.ts'
import { startTaskServer } from '../../src/tools/mcp/testing/task-server.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'

const step = (tool: string) =>
  `recover: true\nworkflow:\n  - { id: only, type: mcp-tool, config: { server: s, tool: ${tool}, input: {} } }\n`

let clean: (() => Promise<unknown> | void)[] = []
afterEach(async () => {
  for (const each of clean.toReversed()) await each()
  clean = []
})

interface View {
  status: string
  output?: unknown
  requests?: { requestId: string; message: string }[]
}

/** Servers of which one is killed and another one goes on. `shared`: on one store, so that it stands by. */
async function start(url: string, tool: string, flags: readonly string[]) {
  const shared = flags.length > 0
  const dir = mkdtempSync(join(tmpdir(), 'millrace-mcp-kill-'))
  clean.push(() => rmSync(dir, { recursive: true, force: true }))
  mkdirSync(join(dir, 'agents'))
  writeFileSync(join(dir, 'agents', 'a.yaml'), step(tool))
  const config = `export default { mcpServers: { s: { url: '${url}', elicitation: true } } }\n`
  writeFileSync(join(dir, 'agents', 'millrace.config.mjs'), config)
  let started = 0
  const open = () => spawnServer(join(dir, 'agents'), join(dir, shared ? `data${started++}` : 'data'), ...flags)
  const all: ServerProcess[] = []
  clean.push(() => Promise.all(all.map((each) => each.kill())))
  let server = await open()
  all.push(server)
  const post = (path: string, body: object) =>
    fetch(server.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const { id } = (await (await post('/api/runs', { agentId: 'a', input: {} })).json()) as { id: string }
  const view = async () => (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as View
  return {
    view,
    reaches: (status: string) =>
      vi.waitFor(async () => expect((await view()).status).toBe(status), { timeout: 30_000, interval: 50 }),
    async kill() {
      const next = shared ? await open() : undefined
      await server.kill()
      server = next ?? (await open())
      all.push(server)
    },
    async answer(value: unknown) {
      const { requests = [] } = await view()
      const response = await post(`/api/runs/${id}/requests/${requests[0]!.requestId}`, { value })
      expect(response.status).toBe(200)
      return requests[0]!.message
    },
  }
}

const colour = {
  method: 'elicitation/create',
  params: { message: 'Which?', requestedSchema: { type: 'object', properties: { colour: { type: 'string' } } } },
}

async function task(flags: readonly string[]): Promise<void> {
  const mcp = await startTaskServer({ pollIntervalMs: 50 })
  clean.push(() => mcp.close())
  const run = await start(mcp.url, 'slow', flags)
  const polls = () => mcp.count('tasks/get')
  await vi.waitFor(() => expect(polls()).toBeGreaterThan(0))
  await run.kill()
  const before = polls()
  await vi.waitFor(() => expect(polls()).toBeGreaterThan(before), { timeout: 30_000 })
  mcp.set({ status: 'input_required', inputRequests: { q: colour } })
  await run.reaches('suspended')
  await run.kill()
  expect(await run.answer({ colour: 'red' })).toContain('Which?')
  await vi.waitFor(() => expect(mcp.count('tasks/update')).toBe(1))
  await run.kill()
  mcp.set({ status: 'completed', result: { content: [{ type: 'text', text: 'All done.' }] } })
  await run.reaches('completed')
  expect((await run.view()).output).toBe('All done.')
  expect(mcp.count('tools/call')).toBe(1)
  expect(mcp.told.find(({ method }) => method === 'tasks/update')!.params['inputResponses']).toEqual({
    q: { action: 'accept', content: { colour: 'red' } },
  })
}

async function question(flags: readonly string[]): Promise<void> {
  const journal = createJournal()
  clean.push(() => journal.remove())
  const mcp = await startSdk(journal, 'modern')
  clean.push(() => mcp.kill())
  const run = await start(mcp.url, 'ask', flags)
  await run.reaches('suspended')
  await run.kill()
  expect(await run.answer({ colour: 'red' })).toBe('The MCP server "s" asks: Which colour?')
  await run.reaches('completed')
  expect((await run.view()).output).toBe('colour: {"action":"accept","content":{"colour":"red"}}')
  const calls = journal.lines().filter((line) => line.startsWith('ask '))
  expect(calls.map((line) => line.split(' ').at(-1))).toEqual(['undefined', 'state'])
}

/** The server of an older version holds its call open: it is lost with the process, and not made again. */
async function legacy(flags: readonly string[]): Promise<void> {
  const journal = createJournal()
  clean.push(() => journal.remove())
  const mcp = await startSdk(journal, 'legacy')
  clean.push(() => mcp.kill())
  const run = await start(mcp.url, 'ask', flags)
  await vi.waitFor(async () => expect((await run.view()).requests).toHaveLength(1), { timeout: 30_000 })
  expect((await run.view()).status).toBe('running')
  await run.kill()
  await run.reaches('interrupted')
  expect(journal.lines().filter((line) => line.startsWith('ask '))).toHaveLength(1)
}

test('SQLite: a task', () => task([]))
test('SQLite: a question', () => question([]))
test('SQLite: a question of a legacy server', () => legacy([]))

describeRedis('Redis', (redis) => {
  const flags = () => ['--store', `${redis().url}?prefix=${freshPrefix()}`]
  test('a task, taken over', () => task(flags()))
  test('a question, taken over', () => question(flags()))
})
