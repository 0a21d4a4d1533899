/**
 * Two turns with long results. The server is killed (SIGKILL) at a model call instead of being answered: what it is told then is what it was told
 * before, and the handles of both turns are read. On Redis another server takes over.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startMortalServer, type MortalServer } from '../support/mortal-server.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer } from '../support/server-process.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

const agent = `
recover: true
history: server
workflow:
  - { id: answer, type: llm, config: { model: "up:m", stream: true, maxSteps: 10, messages: $input.messages, tools: [fetchPage] } }
`
const config = `
const page = 'start '.repeat(1000) + 'The needle. ' + 'end '.repeat(20000)
export default { tools: { fetchPage: { parameters: { type: 'object' }, idempotent: true, execute: () => page } } }
`
/** Calls of the model, in two turns: fetch, read, say; fetch, read both, say. */
const modelCalls = 3 + 4

let clean: (() => Promise<unknown> | void)[] = []
afterEach(async () => {
  for (const each of clean.toReversed()) await each()
  clean = []
})

function answer(reply: UpstreamReply): void {
  const { messages } = reply.body
  const turn = messages.filter(({ role }) => role === 'user').length
  const results = messages
    .slice(messages.findLastIndex(({ role }) => role === 'user'))
    .filter(({ role }) => role === 'tool')
  const handles = [...JSON.stringify(messages).matchAll(/It is kept as (res_\w+)/gu)].map(([, handle]) => handle)
  const n = results.length
  if (n === 0) reply.call(`c${turn}`, 'fetchPage', {})
  else if (n <= turn) reply.call(`r${turn}_${n}`, 'readResult', { handle: handles[n - 1], from: 6000 })
  else {
    reply.say(results.slice(1).every(({ content }) => String(content).startsWith('The needle')) ? 'Found.' : 'Lost.')
    return reply.finish()
  }
  reply.finish('tool_calls')
}

/** `kills`: the requests of model calls, counted over all servers, at which the server dies. `spare`: another server stands by. */
async function survives(kills: readonly number[], flags: readonly string[], spare: boolean): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-long-results-'))
  clean.push(() => rmSync(dir, { recursive: true, force: true }))
  mkdirSync(join(dir, 'agents'))
  writeFileSync(join(dir, 'agents', 'a.yaml'), agent)
  writeFileSync(join(dir, 'agents', 'millrace.config.mjs'), config)
  let server: MortalServer | undefined
  const upstream = await startUpstream((reply, n) => {
    if (!kills.includes(n)) return answer(reply)
    void server!.kill()
    reply.drop()
  })
  clean.push(() => upstream.close())
  const boot = (name: string) =>
    spawnServer(join(dir, 'agents'), join(dir, name), '--endpoint', `up=${upstream.baseURL}`, ...flags)
  clean.push(() => server?.end())
  server = await startMortalServer({ boot, spare })
  await server.standBy()
  for (const content of ['One', 'Two']) {
    const body = { agentId: 'a', threadId: 't', input: { messages: [{ role: 'user', content }] } }
    const { id } = (await (await server.post('/api/runs', body)).json()) as { id: string }
    expect((await server.completed(id, 60_000)).text).toBe('Found.')
  }
  expect(server.deaths()).toBe(kills.length)
  const told = new Map<number, string>()
  for (const { body } of upstream.requests) {
    // A result that was not stored when the server died is made again, at another place in the log.
    const text = JSON.stringify([body.messages, body.tools]).replaceAll(/res_\d+/gu, 'res')
    expect(text.length).toBeLessThan(80_000)
    expect(told.get(body.messages.length) ?? text).toBe(text)
    told.set(body.messages.length, text)
  }
  expect(told.size).toBe(modelCalls)
}

test.each([
  [3, 7],
  [5, 8],
  [2, 4, 8],
])('SQLite: killed at request %j', (...kills) => survives(kills, [], false))

describeRedis('Redis', (redis) => {
  test.each([
    [2, 7],
    [3, 8],
  ])('killed at request %j, and taken over', (...kills) =>
    survives(kills, ['--store', `${redis().url}?prefix=${freshPrefix()}`], true),
  )
})
