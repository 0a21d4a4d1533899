/** A run that needs an MCP server to which its person must sign in: over HTTP, with a real authorization server and a real MCP server. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/scripted.ts'
import {
  openAuthorizationServer,
  type TestAuthorizationServer,
} from '../../src/tools/mcp/auth/testing/authorization-server.ts'
import { openProtectedServer, type ProtectedServer } from '../../src/tools/mcp/auth/testing/protected-server.ts'
import type { Store } from '../../src/part/log.ts'
import { createTestAccess, headersFor, type Caller } from '../support/callers.ts'
import { agent, entriesOf, only, until, type EngineOptions } from '../support/engine.ts'
import { createBrowser } from '../support/oidc-provider.ts'
import { startServer, type TestServer } from '../support/server.ts'

let issuer: TestAuthorizationServer
let drive: ProtectedServer
let server: TestServer

beforeAll(async () => {
  issuer = await openAuthorizationServer()
})
afterAll(() => issuer.close())
beforeEach(async () => {
  drive = await openProtectedServer(issuer.url)
  server = await startServer(options(), { access: createTestAccess() })
})
afterEach(async () => {
  await server.close()
  await drive.close()
})

const step = `workflow:
  - { id: who, type: mcp-tool, config: { server: drive, tool: whoami }, result: who }
`

function options(): EngineOptions {
  return {
    agents: {
      a: agent('tools: [{ mcp: drive }]\nmaxSteps: 4'),
      named: agent('tools: [drive_whoami]'),
      step,
      both: `workflow:
  - id: all
    type: parallel
    config:
      branches:
        one: [{ id: one, type: mcp-tool, config: { server: drive, tool: whoami }, result: one }]
        two: [{ id: too, type: mcp-tool, config: { server: drive, tool: whoami }, result: two }]
`,
    },
    scripts: {
      m: createScriptedModel((call) => {
        const tools = call.options.tools?.map(({ name }) => name) ?? []
        const last = JSON.stringify(call.options.prompt.at(-1) ?? null)
        if (last.includes('Who') && tools.length > 0) {
          return [toolCall('drive_whoami', {}), toolCall('drive_echo_token', {}), finish('tool-calls')]
        }
        return [text(`${tools.length} tools. ${last}`), finish()]
      }),
    },
    mcpServers: { drive: { url: drive.url, auth: { person: true, scope: 'files' } } },
  }
}

const messages = [{ role: 'user', content: 'Who am I?' }]

async function start(agentId: string, caller: Caller = 'alice', at = server): Promise<string> {
  const response = await at.post('/api/runs', { agentId, input: { messages } }, { headers: headersFor(caller) })
  expect(response.status).toBe(202)
  return ((await response.json()) as { id: string }).id
}

interface OpenRequest {
  requestId: string
  message: string
  reason: string
  deadline: number
  timestamp: number
  metadata: { server: string; url: string }
}

async function requestsOf(run: string, caller: Caller = 'alice', at = server): Promise<OpenRequest[]> {
  await (await at.runtime.open(run))!.result
  const response = await fetch(`${at.url}/api/runs/${run}/requests`, { headers: headersFor(caller) })
  return ((await response.json()) as { requests: OpenRequest[] }).requests
}

/** Opens the link, as a browser or as a page with a key. */
function open({ metadata }: OpenRequest, caller: Caller, { method = 'GET', at = server } = {}): Promise<Response> {
  return fetch(at.url + metadata.url, { method, redirect: 'manual', headers: headersFor(caller) })
}

const cookiesOf = (response: Response) => response.headers.getSetCookie().map((each) => each.split(';')[0]!)

/** The way from the authorization server back. `change`: what somebody does to the address. */
async function comeBack(
  address: string,
  cookies: string[],
  { login = 'ann', change, at = server }: { login?: string; change?: (back: URL) => void; at?: TestServer } = {},
): Promise<Response> {
  const until = `${at.url}/mcp/connect/callback`
  const back = new URL((await createBrowser().submitAll(address, { login, password: 'any' }, until)).at)
  expect(back.href.startsWith(until)).toBe(true)
  change?.(back)
  // As after a link of another site: without a credential, and marked as such.
  return fetch(back, { headers: { cookie: cookies.join('; '), 'sec-fetch-site': 'cross-site' } })
}

async function signIn(request: OpenRequest, caller: Caller = 'alice', login = 'ann', at = server): Promise<Response> {
  const begun = await open(request, caller, { at })
  expect(begun.status).toBe(303)
  return comeBack(begun.headers.get('location')!, cookiesOf(begun), { login, at })
}

const resultOf = async (run: string) => (await server.runtime.open(run))!.result

describe('a run that needs a sign-in', () => {
  test('waits for its person before it lists the tools, and goes on when they are back', async () => {
    const run = await start('a')
    const [request] = await requestsOf(run)
    expect(request).toMatchObject({
      reason: 'mcp-sign-in',
      message: 'The MCP server "drive" asks you to sign in.',
      metadata: { server: 'drive', url: `/mcp/connect/${request!.requestId}` },
    })
    expect(Math.round((request!.deadline - request!.timestamp) / 1000)).toBe(600)
    const response = await signIn(request!)
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('You are signed in')])
    expect(cookiesOf(response)[0]).toMatch(/^millrace_connect_[\w-]+=$/u)
    expect(await resultOf(run)).toMatchObject({ outcome: 'completed', text: expect.stringContaining('3 tools.') })
    const entries = await entriesOf(server.store, run)
    const results = only(entries, 'tool-result').map(({ result }) => result)
    expect(results).toHaveLength(2)
    expect(results).toEqual(expect.arrayContaining([expect.stringMatching(/ ann$/u), 'token: [redacted]!']))
    expect(only(entries, 'response')).toMatchObject([{ by: { id: 'alice', tenant: 'acme' }, outcome: 'answered' }])
    // The next run of hers asks nothing.
    const next = await start('step')
    expect(await resultOf(next)).toMatchObject({
      outcome: 'completed',
      output: { who: expect.stringMatching(/ ann$/u) },
    })
  })

  test('a step asks before its call, and two of them at once need one sign-in', async () => {
    const run = await start('both')
    const requests = await requestsOf(run)
    expect(requests).toHaveLength(2)
    await signIn(requests[1]!)
    expect(await resultOf(run)).toMatchObject({ outcome: 'completed' })
    expect(drive.calls.filter(({ method }) => method === 'tools/call')).toHaveLength(2)
  })

  test('nobody else has the tokens, or may use the link', async () => {
    const run = await start('step')
    const [request] = await requestsOf(run)
    const unknown = { ...request!, metadata: { ...request!.metadata, url: '/mcp/connect/run_nobodys.1.1' } }
    for (const caller of ['bob', 'alice of beta', 'operator', 'admin of acme', 'admin'] as const) {
      for (const method of ['GET', 'POST']) {
        const response = await open(request!, caller, { method })
        const nobodys = await open(unknown, caller, { method })
        expect([response.status, nobodys.status], caller).toEqual([404, 404])
        const [one, two] = [await response.text(), await nobodys.text()]
        expect(one.replaceAll(request!.requestId, '')).toBe(two.replaceAll('run_nobodys.1.1', ''))
      }
    }
    expect((await open(request!, 'no one')).status).toBe(401)
    await signIn(request!)
    expect(await resultOf(run)).toMatchObject({ outcome: 'completed' })
    const bobs = await start('step', 'bob')
    const [asked] = await requestsOf(bobs, 'bob')
    await signIn(asked!, 'bob', 'bob')
    expect(await resultOf(bobs)).toMatchObject({ output: { who: expect.stringMatching(/ bob$/u) } })
    // A link that was used counts no more.
    expect((await open(request!, 'alice')).status).toBe(404)
  })

  test('a request that brings its own Authorization is not asked, and other headers of it change nothing', async () => {
    const user = { id: 'alice', tenant: 'acme' }
    const withHeaders = async (headers: Record<string, string>) => {
      const run = await server.runtime.start('step', { messages }, { user, mcpHeaders: { drive: headers } })
      return run.result
    }
    expect(await withHeaders({ Authorization: 'Bearer mine' })).toMatchObject({ outcome: 'failed' })
    expect(drive.calls.flatMap(({ token }) => token ?? [])).toContain('mine')
    expect(await withHeaders({ 'X-Trace': 'a' })).toMatchObject({ outcome: 'suspended' })
    await signIn((await requestsOf(await start('step')))[0]!)
    expect(await withHeaders({ 'X-Trace': 'b' })).toMatchObject({ outcome: 'completed' })
    // The sign-in woke the runs that waited, too: their calls may come last.
    expect(drive.calls.map(({ headers }) => headers['x-trace'])).toContain('b')
  })

  test('a page that sends a key gets the address as JSON', async () => {
    const run = await start('step')
    const [request] = await requestsOf(run)
    const begun = await open(request!, 'alice', { method: 'POST' })
    const { url } = (await begun.json()) as { url: string }
    expect((await comeBack(url, cookiesOf(begun))).status).toBe(200)
    expect(await resultOf(run)).toMatchObject({ outcome: 'completed' })
  })

  test.for<[string, { change?: (back: URL) => void; isWithoutCookie?: true }]>([
    ['another state', { change: (back) => back.searchParams.set('state', 'x'.repeat(43)) }],
    ['another iss', { change: (back) => back.searchParams.set('iss', 'https://evil.example') }],
    ['another code', { change: (back) => back.searchParams.set('code', 'x') }],
    ['the cookie of nobody', { isWithoutCookie: true }],
  ])('a return with %s signs nobody in: the run waits on', async ([, { change, isWithoutCookie }]) => {
    const run = await start('step')
    const [request] = await requestsOf(run)
    const begun = await open(request!, 'alice')
    const cookies = isWithoutCookie ? [] : cookiesOf(begun)
    const response = await comeBack(begun.headers.get('location')!, cookies, change ? { change } : {})
    expect(response.status).toBe(400)
    expect(await response.text()).not.toContain('evil')
    expect(await requestsOf(run)).toHaveLength(1)
    await signIn(request!)
    expect(await resultOf(run)).toMatchObject({ outcome: 'completed' })
  })

  test('declined at the authorization server: the tools are left out, or the step fails', async () => {
    for (const [agentId, end] of [
      ['a', { outcome: 'completed', text: expect.stringContaining('0 tools.') }],
      ['named', { outcome: 'failed', error: { message: expect.stringContaining('the sign-in was declined') } }],
      ['step', { outcome: 'failed', error: { code: 'mcp-unauthorized' } }],
    ] as const) {
      const run = await start(agentId)
      const [request] = await requestsOf(run)
      const begun = await open(request!, 'alice')
      const state = new URL(begun.headers.get('location')!).searchParams.get('state')!
      const query = new URLSearchParams({ error: 'access_denied', state, iss: issuer.url })
      const response = await fetch(`${server.url}/mcp/connect/callback?${query}`, {
        headers: { cookie: cookiesOf(begun).join('; ') },
      })
      expect(response.status).toBe(403)
      expect(await resultOf(run)).toMatchObject(end)
    }
  })

  test('declined over any protocol, and an answer without a sign-in', async () => {
    const reply = async (run: string, answer: object) => {
      const [request] = await requestsOf(run)
      const path = `/api/runs/${run}/requests/${request!.requestId}`
      const response = await server.post(path, answer, { headers: headersFor('alice') })
      expect(response.status).toBe(200)
    }
    const declined = await start('step')
    await reply(declined, { cancelled: true })
    expect(await resultOf(declined)).toMatchObject({ outcome: 'failed' })
    const lied = await start('step')
    await reply(lied, { value: true })
    // It asks once more.
    await reply(lied, { value: true })
    expect(await resultOf(lied)).toMatchObject({
      error: { message: expect.stringContaining('nobody has signed in to it') },
    })
  })

  test('tokens that end in between: the call is an error for the model, and the next call asks', async () => {
    const first = await start('step')
    await signIn((await requestsOf(first))[0]!)
    await resultOf(first)
    issuer.intercept = async () => ({ status: 400, body: { error: 'invalid_grant' } })
    try {
      drive.refused.add(drive.calls.findLast(({ token }) => token !== undefined)!.token!)
      const run = await start('step')
      expect(await resultOf(run)).toMatchObject({ outcome: 'failed', error: { code: 'mcp-unauthorized' } })
    } finally {
      issuer.intercept = undefined
    }
    const next = await start('step')
    await signIn((await requestsOf(next))[0]!)
    expect(await resultOf(next)).toMatchObject({ outcome: 'completed' })
  })

  test('another process finishes what one has begun, also the run', async () => {
    const run = await start('step')
    const [request] = await requestsOf(run)
    const begun = await open(request!, 'alice')
    const other = await startServer({ ...options(), dir: server.dir, keep: true }, { access: createTestAccess() })
    try {
      const change = (back: URL) => void (back.host = new URL(other.url).host)
      const response = await comeBack(begun.headers.get('location')!, cookiesOf(begun), { change })
      expect(response.status).toBe(200)
      const who = { who: expect.stringMatching(/ ann$/u) }
      expect(await (await other.runtime.open(run))!.result).toMatchObject({ outcome: 'completed', output: who })
    } finally {
      await other.close()
    }
  })

  test('two instances on one store renew a token once, before its end', async () => {
    const first = await start('step')
    await signIn((await requestsOf(first))[0]!)
    await resultOf(first)
    issuer.grants.length = 0
    const late = (store: Store): Store => ({ ...store, now: () => Date.now() + 550_000 })
    const instances = await Promise.all(
      [1, 2].map(() =>
        startServer({ ...options(), dir: server.dir, keep: true, wrapStore: late }, { access: createTestAccess() }),
      ),
    )
    try {
      const ends = await Promise.all(
        Array.from({ length: 8 }, async (_, i) => {
          const at = instances[i % 2]!
          return (await at.runtime.open(await start('step', 'alice', at)))!.result
        }),
      )
      expect(ends.map(({ outcome }) => outcome)).toEqual(Array(8).fill('completed'))
      expect(issuer.grants.map((each) => each.get('grant_type'))).toEqual(['refresh_token'])
    } finally {
      for (const each of instances) await each.close()
    }
  })

  test('after ten minutes nobody is waited for any more', async () => {
    const before = (store: Store): Store => ({ ...store, now: () => Date.now() - 601_000 })
    const earlier = await startServer(
      { ...options(), dir: server.dir, keep: true, wrapStore: before },
      { access: createTestAccess() },
    )
    const runs = [await start('step', 'alice', earlier), await start('a', 'alice', earlier)]
    for (const run of runs) expect(await requestsOf(run, 'alice', earlier)).toHaveLength(1)
    await earlier.close()
    await server.runtime.recover()
    for (const run of runs) await until(server.store, run, ({ type }) => type === 'run-end')
    const [step, listing] = await Promise.all(runs.map(resultOf))
    expect(step).toMatchObject({ error: { message: expect.stringContaining('nobody has signed in to it') } })
    expect(listing).toMatchObject({ outcome: 'completed', text: expect.stringContaining('0 tools.') })
  })

  test('no byte of a token is stored, answered or told', async () => {
    const run = await start('a')
    await signIn((await requestsOf(run))[0]!)
    await resultOf(run)
    const tokens = new Set(drive.calls.flatMap(({ token }) => token ?? []))
    expect(tokens.size).toBe(1)
    const [token] = tokens
    const found: string[] = []
    const look = (place: string, bytes: string) => {
      // A piece is enough.
      if (bytes.includes(token!.slice(-40))) found.push(place)
    }
    for (const path of [`/api/runs/${run}`, `/api/runs/${run}/events`, `/api/runs/${run}/export`]) {
      look(path, await (await fetch(server.url + path, { headers: headersFor('operator') })).text())
    }
    for (const file of readdirSync(server.dir)) look(file, readFileSync(join(server.dir, file)).toString('latin1'))
    look('addresses', drive.addresses.join())
    look('reports', JSON.stringify(server.reported))
    expect(found).toEqual([])
  })
})

test('of tokens of our own, and of the secret for them, no byte is stored or answered either', async () => {
  const secret = issuer.secret
  const own = await startServer({
    agents: { a: agent('tools: [{ mcp: crm }]\nmaxSteps: 4') },
    scripts: {
      m: createScriptedModel((_, n) =>
        n === 1
          ? [toolCall('crm_echo_token', {}), toolCall('crm_fail_with_token', { secret }), finish('tool-calls')]
          : [text('Done: ', secret.slice(0, 9), secret.slice(9)), finish()],
      ),
    },
    environment: { CRM: secret },
    mcpServers: {
      crm: {
        url: drive.url,
        auth: { clientCredentials: { clientId: 'desk', secretEnv: 'CRM', issuer: issuer.url } },
      },
    },
  })
  try {
    const run = await start('a', 'no one', own)
    expect(await (await own.runtime.open(run))!.result).toMatchObject({
      outcome: 'completed',
      text: 'Done: [redacted]',
    })
    const { token } = drive.calls.findLast(({ method }) => method === 'tools/call')!
    const places = [`/api/runs/${run}`, `/api/runs/${run}/events`, `/api/chat`, `/api/runs/${run}/export`]
    const texts = await Promise.all(places.map(async (path) => (await fetch(own.url + path)).text()))
    texts.push(...readdirSync(own.dir).map((file) => readFileSync(join(own.dir, file)).toString('latin1')))
    for (const each of texts)
      expect([each.includes(token!.slice(-40)), each.includes(secret.slice(-20))]).toEqual([false, false])
  } finally {
    await own.close()
  }
})

test('our metadata document is public, if the server has a public address', async () => {
  const path = '/mcp/connect/client'
  expect((await fetch(server.url + path)).status).toBe(404)
  const other = await startServer(options(), { access: createTestAccess(), publicUrl: 'https://agents.example' })
  try {
    expect(await (await fetch(other.url + path)).json()).toEqual({
      client_id: 'https://agents.example/mcp/connect/client',
      client_name: 'Millrace',
      redirect_uris: ['https://agents.example/mcp/connect/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'web',
    })
  } finally {
    await other.close()
  }
})

test('a server without a key: the link and the way back work, though they come from another site', async () => {
  const own = await startServer(options(), { authorize: undefined as never, localOnly: true })
  try {
    const run = await start('step', 'no one', own)
    const [request] = await requestsOf(run, 'no one', own)
    const begun = await fetch(own.url + request!.metadata.url, {
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'cross-site' },
    })
    expect(begun.status).toBe(303)
    const back = await comeBack(begun.headers.get('location')!, cookiesOf(begun), { at: own })
    expect(back.status).toBe(200)
    expect(await (await own.runtime.open(run))!.result).toMatchObject({ outcome: 'completed' })
  } finally {
    await own.close()
  }
})
