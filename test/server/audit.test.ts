/** The audit: who did what and what was refused, for the operators of the tenant that it concerns. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/scripted.ts'
import { agent, until } from '../support/engine.ts'
import { createTestAccess, headersFor, type Caller } from '../support/callers.ts'
import { startServer } from '../support/server.ts'
import { connectSocket } from '../support/socket.ts'

const canary = 'canary-1d7e'

async function start() {
  const gate = latch()
  const m = createScriptedModel(() => [text('first'), gate, finish()])
  const server = await startServer({ agents: { a: agent() }, scripts: { m } }, { access: createTestAccess() })
  onTestFinished(async () => {
    gate.open()
    await server.close()
  })
  const runOf = async (caller: Caller) => {
    const body = { agentId: 'a', input: { messages: [{ role: 'user', content: canary }] } }
    const response = await server.post('/api/runs', body, { headers: headersFor(caller) })
    const { id } = (await response.json()) as { id: string }
    await until(server.store, id, ({ type }) => type === 'text-delta')
    return id
  }
  const post = (caller: Caller, path: string, body: object = {}) =>
    server.post(path, body, { headers: headersFor(caller) })
  const rowsFor = async (caller: Caller) => {
    const response = await fetch(`${server.url}/api/audit`, { headers: headersFor(caller) })
    return (
      (await response.json()) as {
        rows: { principal: string; key: string; action: string; resource: string; outcome: string }[]
      }
    ).rows
  }
  const told = async (caller: Caller) =>
    (await rowsFor(caller)).map(({ principal, key, action, resource, outcome }) => {
      return `${principal || key} ${action} ${resource} ${outcome}`.replaceAll(/ {2,}/gu, ' ')
    })
  return { server, runOf, post, rowsFor, told }
}

describe('the audit', () => {
  test('has stops and refusals for the operators of the tenant, whoever did it, and no texts', async () => {
    const { server, runOf, post, rowsFor, told } = await start()
    const [one, two, three] = [await runOf('alice'), await runOf('alice'), await runOf('alice')]
    expect((await post('alice', `/api/runs/${one}/stop`, { reason: canary })).status).toBe(202)
    expect((await post('admin', `/api/runs/${two}/stop`)).status).toBe(202)
    expect((await post('bob', '/api/prune', { olderThan: '1d' })).status).toBe(403)
    const socket = await connectSocket(server.url, 'websocket', { auth: { token: 'operator' } })
    expect(await socket.send('abort_run', { runId: three })).toMatchObject({ ok: true })
    await expect.poll(() => told('operator')).toHaveLength(4)
    expect((await told('operator')).toSorted()).toEqual(
      [
        `alice runs.stop ${one} done`,
        `MILLRACE_API_KEY runs.stop ${two} done`,
        'bob upkeep refused',
        `olga runs.stop ${three} done`,
      ].toSorted(),
    )
    expect(await told('operator of beta')).toEqual([])
    expect(JSON.stringify(await rowsFor('admin'))).not.toContain(canary)
    for (const caller of ['alice', 'bob'] as const) {
      const response = await fetch(`${server.url}/api/audit`, { headers: headersFor(caller) })
      expect(response.status).toBe(403)
    }
  })

  test('has one row for an address without a credential that counts, however often it tries', async () => {
    const { server, told } = await start()
    for (let i = 0; i < 5; i++) expect((await fetch(`${server.url}/api/runs`)).status).toBe(401)
    await expect.poll(() => told('admin')).toEqual([' open refused'])
  })
})
