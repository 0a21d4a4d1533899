/**
 * A model calls two agents at once, each of which uses a tool that counts; the server is killed (SIGKILL) when a model is asked, at each of its six
 * requests, and once more later: every tool runs once, the run ends once, and as it would have without a kill.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'

const desk = `
recover: true
workflow:
  - { id: desk, type: llm, config: { model: "up:m", stream: true, tools: [{ agent: worker }] } }
`
const worker = `
workflow:
  - { id: work, type: llm, config: { model: "up:m", tools: [count] } }
`
const textIn = (content: unknown): string => (typeof content === 'string' ? content : JSON.stringify(content))

function answer(reply: UpstreamReply): void {
  const { messages } = reply.body
  const asked = textIn(messages.findLast(({ role }) => role === 'user')?.content)
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => textIn(content))
  if (results.length > 0) {
    reply.say(`${asked}: ${results.toSorted().join(', ')}`)
    return reply.finish()
  }
  if (asked !== 'go') reply.call(`call_${asked}`, 'count', { what: asked })
  else for (const message of ['one', 'two']) reply.call(`call_to_${message}`, 'worker', { message })
  reply.finish('tool_calls')
}

let clean: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const each of clean.toReversed()) await each()
  clean = []
})

async function survives(kills: readonly number[], ...flags: string[]): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-agents-'))
  const effects = join(dir, 'effects.txt')
  mkdirSync(join(dir, 'agents'))
  writeFileSync(join(dir, 'agents', 'desk.yaml'), desk)
  writeFileSync(join(dir, 'agents', 'worker.yaml'), worker)
  writeFileSync(effects, '')
  const config = `
import { appendFileSync } from 'node:fs'
const parameters = { type: 'object', properties: { what: { type: 'string' } } }
const execute = ({ what }) => { appendFileSync(${JSON.stringify(effects)}, what + '\\n'); return 'counted ' + what }
export default { tools: { count: { parameters, execute } } }
`
  writeFileSync(join(dir, 'agents', 'millrace.config.mjs'), config)
  let server: ServerProcess
  let killing: Promise<void> | undefined
  const upstream: Upstream = await startUpstream((reply, n) => {
    // Its answer is lost with the server.
    if (kills.includes(n)) killing = server.kill()
    else answer(reply)
  })
  const boot = async () =>
    void (server = await spawnServer(
      join(dir, 'agents'),
      join(dir, 'data'),
      '--endpoint',
      `up=${upstream.baseURL}`,
      ...flags,
    ))
  clean.push(async () => {
    await server?.kill()
    await upstream.close()
    rmSync(dir, { recursive: true, force: true })
  })
  await boot()
  const input = { messages: [{ role: 'user', content: 'go' }] }
  // As a client that got no answer: it asks again, and finds its run by the thread.
  const ask = () =>
    fetch(`${server!.url}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'kill' },
      body: JSON.stringify({ agentId: 'desk', threadId: 'kill', input }),
    }).catch(() => undefined)
  await ask()
  let killed = 0
  const view = async (): Promise<{ id?: string; status?: string }> => {
    if (killing !== undefined) {
      await killing
      killing = undefined
      killed++
      await boot()
    }
    const rows = await fetch(`${server!.url}/api/runs?thread=kill`).catch(() => undefined)
    if (rows === undefined) return {}
    const { runs } = (await rows.json()) as { runs: { id: string; status: string }[] }
    expect(runs.length).toBeLessThan(2)
    if (runs.length === 0) await ask()
    return runs[0] ?? {}
  }
  await expect.poll(async () => (await view()).status, { interval: 100, timeout: 60_000 }).toBe('completed')
  expect(killed).toBe(kills.length)
  const { id } = await view()
  const { text } = (await (await fetch(`${server!.url}/api/runs/${id}`)).json()) as { text: string }
  // A tool that had started beside the request may have run: it is not run again, and the model is told.
  expect(text).toMatch(/^go: one: (?:counted one|The result .*), two: (?:counted two|The result .*)$/u)
  const ran = readFileSync(effects, 'utf8').split('\n').filter(Boolean)
  expect(ran.toSorted()).toEqual([...new Set(ran)].toSorted())
  for (const what of ['one', 'two']) if (text.includes(`counted ${what}`)) expect(ran).toContain(what)
  const headers = { accept: 'application/x-ndjson' }
  const lines = await (await fetch(`${server!.url}/api/runs/${id}/events`, { headers })).text()
  const entries = lines.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Entry] : []))
  expect(entries.filter(({ type }) => type === 'run-end')).toHaveLength(1)
  const results = entries.flatMap((entry) => (entry.type === 'tool-result' ? [entry.toolCallId] : []))
  expect(results.toSorted()).toEqual(['call_one', 'call_to_one', 'call_to_two', 'call_two'])
}

/** Which request of the model kills the server; those after a restart count on. */
const places = [[4], [5], [6], [2, 4], [3, 6], [1, 3]]

test.each(places)('SQLite: killed at request %j of the model', (...kills) => survives(kills))

describeRedis('Redis', (redis) => {
  test.each([[2], [4], [6]])('killed at request %j of the model', (...kills) =>
    survives(kills, '--store', `${redis().url}?prefix=${freshPrefix()}`),
  )
})
