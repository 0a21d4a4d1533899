/**
 * How every answer ends: each state of a run × what happens to it × each protocol, driven through real sockets. `docs/endings.md` is
 * written by this test: `UPDATE_GOLDEN=1 npx vitest run test/endings`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { latch, createScriptedModel } from '../../src/models/scripted.ts'
import type { LanguageModel } from '../../src/models/language-model.ts'
import { golden } from '../golden.ts'
import { resultsIn } from '../support/going-on.ts'
import { spawnServer } from '../support/server-process.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/engine.ts'
import { begin, protocols, type Client, type Protocol } from './clients.ts'
import { idOf, isReached, scriptOf, states, yamlOf, type State } from './scene.ts'
import { endingsPage, expected, type Cell, type Event } from './page.ts'

const cells = new Map<string, Cell>()
const keyOf = (state: State, event: Event, protocol: Protocol) => `${state}|${event}|${protocol}`

interface Standing extends Client {
  state: State
  protocol: Protocol
}

/** Keys of an agent's file that make the event happen by itself. */
const tops: Partial<Record<Event, string>> = {
  timeout: 'timeouts: { run: 700ms }',
  budget: 'budget: { seconds: 0.7 }',
}

async function open(event: Event) {
  const gate = latch()
  const hold = latch()
  const model = (state: string): LanguageModel =>
    createScriptedModel(({ options: { prompt } }) => scriptOf(state as State, resultsIn(prompt).size, hold) as never)
  const parameters = { type: 'object' }
  const fails = () => {
    throw new Error('The tool broke.')
  }
  const server = await startServer({
    agents: Object.fromEntries(states.map((state) => [idOf(state), yamlOf(state, tops[event] ?? '')])),
    models: { providers: { scene: model } },
    requestDeadlineMs: event === 'timeout' ? 700 : 60_000,
    tools: {
      work: { parameters, execute: () => gate.opened.then(fails) },
      pay: { parameters, execute: event === 'tool error' ? fails : () => 'paid' },
      quick: { parameters, execute: event === 'tool error' ? fails : () => 'quick' },
    },
  })
  onTestFinished(() => server.close())
  return { server, gate, hold }
}

const inProcess = ['stop', 'disconnect', 'provider error', 'tool error', 'timeout', 'budget'] as const

describe.each(inProcess)('%s', (event) => {
  test('ends every answer as the page says', { timeout: 60_000 }, async () => {
    const { server, gate, hold } = await open(event)
    const possible = states.flatMap((state) =>
      protocols.flatMap((protocol) => ('why' in expected(state, event, protocol) ? [] : [{ state, protocol }])),
    )
    const standing = await Promise.all(
      possible.map(async ({ state, protocol }): Promise<Standing> => {
        const client = await begin(protocol, server.url, idOf(state))
        await until(server.store, client.run, (entry) => isReached(state, entry))
        return { ...client, state, protocol }
      }),
    )
    const answer = async ({ run }: Standing, body: object) => {
      const { requests } = (await (await fetch(`${server.url}/api/runs/${run}/requests`)).json()) as {
        requests: { requestId: string }[]
      }
      const path = `/api/runs/${run}/requests/${requests[0]!.requestId}`
      expect((await server.post(path, body)).status).toBe(200)
    }
    if (event === 'provider error') hold.open()
    if (event === 'tool error') gate.open()
    await Promise.all(
      standing.map(async (client) => {
        const { state } = client
        if (event === 'stop') await client.stop()
        if (event === 'disconnect') client.leave()
        if (event === 'tool error' && state === 'client tool pending')
          await answer(client, { output: 'no', isError: true })
        if (event === 'tool error' && state === 'approval pending') await answer(client, { approved: true })
      }),
    )
    for (const client of standing) {
      const { state, protocol, run } = client
      const wanted = expected(state, event, protocol)
      if ('why' in wanted) continue
      const status = async () => (await server.store.runs.get(run))!.status
      await expect.poll(status, { interval: 50 }).toBe(wanted.outcome)
      cells.set(keyOf(state, event, protocol), { end: (await client.end) ?? 'left', outcome: await status() })
    }
    expect(server.reported).toEqual([])
  })
})

test('kill -9 and restart ends every answer as the page says', { timeout: 60_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-endings-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const agents = join(dir, 'agents')
  mkdirSync(agents)
  for (const state of states) writeFileSync(join(agents, `${idOf(state)}.yaml`), yamlOf(state, ''))
  const from = (path: string) => JSON.stringify(resolve(path))
  const config = `
import { createScriptedModel, latch } from ${from('dist/testing.js')}
import { scriptOf } from ${from('test/endings/scene.ts')}
const resultsIn = (prompt) => prompt.filter(({ role }) => role === 'tool').length
const scene = (state) => createScriptedModel(({ options: { prompt } }) => scriptOf(state, resultsIn(prompt), latch()))
const parameters = { type: 'object' }
const tools = {
  work: { parameters, execute: () => new Promise(() => {}) },
  pay: { parameters, execute: () => 'paid' },
  quick: { parameters, execute: () => 'quick' },
}
export default { models: { providers: { scene } }, tools }
`
  writeFileSync(join(agents, 'millrace.config.mjs'), config)
  let server = await spawnServer(agents, join(dir, 'data'))
  onTestFinished(() => server.kill())
  const event = 'kill -9 and restart'
  const standing = await Promise.all(
    states.flatMap((state) =>
      protocols.flatMap((protocol) => {
        if ('why' in expected(state, event, protocol)) return []
        return [begin(protocol, server.url, idOf(state)).then((client): Standing => ({ ...client, state, protocol }))]
      }),
    ),
  )
  const entries = async (run: string) =>
    (await (await fetch(`${server.url}/api/runs/${run}/events`)).text())
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { type: string })
  for (const { run, state } of standing) {
    const isThere = async () => (await entries(run)).some((entry) => isReached(state, entry))
    await expect.poll(isThere, { interval: 50 }).toBe(true)
  }
  await server.kill()
  const ends = await Promise.all(standing.map(({ end }) => end))
  server = await spawnServer(agents, join(dir, 'data'))
  for (const [i, { run, state, protocol }] of standing.entries()) {
    const view = (await (await fetch(`${server.url}/api/runs/${run}`)).json()) as { status: string }
    cells.set(keyOf(state, event, protocol), { end: ends[i]!, outcome: view.status })
  }
})

test('each cell is what it must be, and docs/endings.md says so', () => {
  const missing: string[] = []
  const page = endingsPage((state, event, protocol) => {
    const wanted = expected(state, event, protocol)
    if ('why' in wanted) return wanted
    const cell = cells.get(keyOf(state, event, protocol))
    if (cell === undefined) missing.push(keyOf(state, event, protocol))
    else expect([state, event, protocol, cell]).toEqual([state, event, protocol, wanted])
    return cell ?? wanted
  })
  expect(missing).toEqual([])
  golden(new URL('../../docs/endings.md', import.meta.url), page)
})

afterAll(() => cells.clear())
