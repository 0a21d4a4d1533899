/** Quotas over every protocol: how a run that crosses one ends, and how the next start is refused. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createQuotas, type Quotas } from '../../src/access/quotas.ts'
import type { Permit } from '../../src/part/limits.ts'
import type { QuotasConfig } from '../../src/part/quota.ts'
import { createScriptedModel, finish, latch, text, type Latch } from '../../src/models/scripted.ts'
import { withQuotas } from '../../src/server/http/with-quotas.ts'
import { agent } from '../support/engine.ts'
import { createTestAccess, headersFor, type Caller } from '../support/callers.ts'
import { startServer } from '../support/server.ts'
import { connectSocket } from '../support/socket.ts'

async function start(config: QuotasConfig, gate?: Latch) {
  let quotas: Quotas | undefined
  const chunks = Array.from({ length: 200 }, () => 'four'.repeat(5))
  const script = [text('first '), ...(gate === undefined ? [text(...chunks)] : [gate]), finish()]
  const server = await startServer(
    {
      agents: { a: agent('', 'onDisconnect: detach') },
      scripts: { m: createScriptedModel([script, script, script, script, script]) },
      openAccount: (run) => quotas!.openAccount?.(run),
      wrapStore(store) {
        quotas = createQuotas({ config, ledger: store.ledger!, limits: store.limits!, now: Date.now })
        return store
      },
    },
    {
      access: createTestAccess(),
      admission: withQuotas(undefined, {
        admitStart: (principal) => quotas!.admitStart(principal),
        occupyStream: (principal) => quotas!.occupyStream(principal),
      }),
    },
  )
  onTestFinished(async () => {
    gate?.open()
    await server.close()
  })
  const post = (path: string, body: object, caller: Caller = 'alice') =>
    server.post(path, body, { headers: headersFor(caller) })
  return { server, post }
}

const messages = [{ id: 'm1', role: 'user', content: 'Hi' }]
const agUi = { threadId: 't', runId: 'r', messages, tools: [], context: [], state: null, forwardedProps: {} }
const parts = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]

describe('a run that crosses a quota', () => {
  test.each<[string, string, object, string]>([
    ['UI', '/api/chat', { agentId: 'a', id: 't', messages: parts }, '{"type":"error"'],
    ['OpenAI', '/v1/chat/completions', { model: 'a', stream: true, messages }, '{"error":{'],
    ['AG-UI', '/ag-ui/a', agUi, '"type":"RUN_ERROR"'],
    ['text', '/api/beddel/chat', { agentId: 'a', messages }, ''],
  ])('%s: ends with its error frame, which names the quota; the next start is a 429', async (_, path, body, frame) => {
    const { server, post } = await start({ perUser: { tokensPerDay: 100 } })
    const response = await post(path, body)
    expect(response.status).toBe(200)
    const said = await response.text().catch(() => '')
    if (frame !== '') expect(said).toContain('quota: perUser.tokensPerDay')
    expect(said).toContain(frame)
    const [row] = await server.store.runs.list()
    expect(row).toMatchObject({ status: 'budget-exceeded', owner: 'alice', error: { which: 'perUser.tokensPerDay' } })
    const refused = await post(path, body)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    const { error } = (await refused.json()) as { error: { code: string; which: string } }
    expect([error.code, error.which]).toEqual(['quota-exceeded', 'perUser.tokensPerDay'])
    expect(await server.store.runs.list()).toHaveLength(1)
    // Others are not limited by it.
    expect((await post(path, body, 'bob')).status).toBe(200)
  })

  test('Socket.IO: RUN_ERROR, and the next start is refused', async () => {
    const { server } = await start({ perTenant: { tokensPerMonth: 100 } })
    const token = headersFor('alice')['authorization']!.replace('Bearer ', '')
    const client = await connectSocket(server.url, 'websocket', { auth: { token } })
    const run = { ...agUi, forwardedProps: { agent: 'a' } }
    await client.send('run_agent', run)
    const { event } = await client.until(({ event: { type } }) => type === 'RUN_ERROR')
    expect(event).toMatchObject({ message: expect.stringContaining('quota: perTenant.tokensPerMonth') })
    const again = await client.send('run_agent', { ...run, runId: 'r2' })
    expect(again).toMatchObject({ ok: false, error: { code: 'quota-exceeded', retryAfter: expect.any(Number) } })
  })
})

test('one stream too many of a user is refused, until one ends; the server itself is not limited', async () => {
  const gate = latch()
  const { post } = await start({ perUser: { streams: 1 } }, gate)
  const body = { agentId: 'a', id: 't', messages: parts }
  const first = await post('/api/chat', body)
  const refused = await post('/api/chat', { ...body, id: 't2' })
  expect(refused.status).toBe(429)
  expect(((await refused.json()) as { error: object }).error).toMatchObject({
    code: 'too-many-streams',
    which: 'perUser.streams',
  })
  const others = await Promise.all([post('/api/chat', body, 'admin'), post('/api/chat', body, 'alice of beta')])
  expect(others.map(({ status }) => status)).toEqual([200, 200])
  gate.open()
  await Promise.all([first, ...others].map((response) => response.text()))
  await expect.poll(async () => (await post('/api/chat', { ...body, id: 't3' })).status).toBe(200)
})

test('withQuotas gives the place of the server back when the user has none left', async () => {
  let open = 0
  const place: Permit = { leave: () => void open-- }
  const error = new Error('full') as never
  const own = { start: async () => undefined, stream: async () => (open++, place) }
  const caller = { principal: { id: 'u', roles: ['user'] as const }, address: '' }
  const full = withQuotas(own, { admitStart: async () => error, occupyStream: async () => error })
  expect(await full.stream(caller)).toBe(error)
  expect(open).toBe(0)
  expect(await full.start(caller)).toBe(error)
})
