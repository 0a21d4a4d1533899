import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createBrowser } from '../../../../test/support/oidc-provider.ts'
import { memoryStore } from '../../../store/memory-store.ts'
import { createMcpPool, type McpPool } from '../pool.ts'
import type { PersonAuth } from './auth-config.ts'
import { createSignIns, type Caller, type Flow, type SignIns } from './sign-ins.ts'
import { openAuthorizationServer, type TestAuthorizationServer } from './testing/authorization-server.ts'
import { openProtectedServer, type ProtectedServer } from './testing/protected-server.ts'

const redirectUri = 'http://127.0.0.1/callback'
let issuer: TestAuthorizationServer
let drive: ProtectedServer
let log: ReturnType<typeof memoryStore>['log']
let skew = 0
/** Ends the wait of a sign-out. */
let stop: AbortController
const now = () => Date.now() + skew
const pools: McpPool[] = []
const ann = { id: 'ann', tenant: 'acme' }
const bob = { id: 'bob', tenant: 'acme' }

beforeAll(async () => {
  issuer = await openAuthorizationServer()
})
afterAll(() => issuer.close())
beforeEach(async () => {
  drive = await openProtectedServer(issuer.url)
  log = memoryStore().log
  skew = 0
  stop = new AbortController()
  issuer.grants.length = 0
  issuer.revocations.length = 0
  issuer.interceptRevocation = undefined
  issuer.registered = 0
  issuer.intercept = undefined
  issuer.documents.clear()
})
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()))
  await drive.close()
})

/** One process of the store. */
function instance(auth: Partial<PersonAuth> = { clientId: 'page' }) {
  const server = { url: drive.url, auth: { person: true, scope: 'files', ...auth } } as const
  const signIns = createSignIns(new Map([['drive', server]]), { log, now, environment: {} })
  const pool = createMcpPool({ drive: server }, { now })
  const poolOf = (caller: Caller) => {
    const own = pool.people!.poolOf((name) => signIns.source(name, caller))
    pools.push(own, pool)
    return own
  }
  return { signIns, poolOf, whoami: (caller: Caller) => poolOf(caller).call('drive', 'whoami', {}) }
}

/** Somebody signs in at the address. Resolves with where they come back to. */
async function visit(address: string, login = 'ann'): Promise<URL> {
  const { at } = await createBrowser().submitAll(address, { login, password: 'any' }, redirectUri)
  return new URL(at)
}

async function signIn(signIns: SignIns, caller: Caller, login = 'ann', more: object = {}): Promise<Flow> {
  const { address, flow } = await signIns.begin({ server: 'drive', caller, redirectUri, ...more })
  await signIns.finish(flow, await visit(address, login))
  return flow
}

const refreshes = () => issuer.grants.filter((each) => each.get('grant_type') === 'refresh_token')

describe('sign-ins with an MCP server', () => {
  test('somebody signs in by the code flow, and the tokens are theirs alone', async () => {
    const { signIns, whoami } = instance()
    const needed = { code: 'mcp-unauthorized', server: 'drive' }
    await expect(whoami(ann)).rejects.toMatchObject(needed)
    const { address, flow } = await signIns.begin({ server: 'drive', caller: ann, redirectUri })
    const asked = Object.fromEntries(new URL(address).searchParams)
    expect(asked).toMatchObject({
      client_id: 'page',
      redirect_uri: redirectUri,
      response_type: 'code',
      resource: drive.url,
      scope: 'files offline_access',
      code_challenge_method: 'S256',
      state: flow.state,
    })
    expect(address).not.toContain(flow.verifier)
    await signIns.finish(flow, await visit(address))
    expect(Object.fromEntries(issuer.grants[0]!)).toMatchObject({ resource: drive.url, code_verifier: flow.verifier })
    expect(await whoami(ann)).toBe('page ann')
    await expect(whoami(bob)).rejects.toMatchObject(needed)
    await expect(whoami({ id: 'ann' })).rejects.toMatchObject(needed)
    await expect(whoami(undefined)).rejects.toMatchObject(needed)
    await signIn(signIns, bob, 'bob')
    expect([await whoami(ann), await whoami(bob)]).toEqual(['page ann', 'page bob'])
  })

  test('another process has them, too, and the store has them sealed', async () => {
    const { signIns } = instance()
    await signIn(signIns, ann)
    expect(await instance().whoami(ann)).toBe('page ann')
    const token = drive.calls.at(-1)!.token!
    const stored: string[] = []
    const seen = new Set<string>()
    const period = Math.floor(now() / (28 * 86_400_000))
    const { post } = log
    expect(post).toBeTypeOf('function')
    for (const inbox of ['access:mcp-secret', 'access:mcp-clients', ...(await inboxesOf(ann, period))]) {
      for await (const { message } of log.inbox(inbox)) stored.push(JSON.stringify(message))
      seen.add(inbox)
    }
    expect(stored.length).toBeGreaterThan(1)
    expect(stored.join().includes(token) || stored.join().includes('ann')).toBe(false)
  })

  test('two processes renew once, before the end, and a token that was refused once', async () => {
    const [one, two] = [instance(), instance()]
    await signIn(one.signIns, ann)
    const pools = [one.poolOf(ann), two.poolOf(ann)]
    const callAll = () => Promise.all(Array.from({ length: 20 }, (_, i) => pools[i % 2]!.call('drive', 'whoami', {})))
    const twenty = Array(20).fill('page ann')
    expect(await callAll()).toEqual(twenty)
    expect(refreshes()).toHaveLength(0)
    skew = 550_000
    expect(await callAll()).toEqual(twenty)
    expect(refreshes()).toHaveLength(1)
    expect(refreshes()[0]!.get('resource')).toBe(drive.url)
    drive.refused.add(drive.calls.at(-1)!.token!)
    expect(await callAll()).toEqual(twenty)
    expect(refreshes()).toHaveLength(2)
  })

  test('a sign-in that has ended at the authorization server is asked for again', async () => {
    const { signIns, whoami, poolOf } = instance()
    await signIn(signIns, ann)
    const pool = poolOf(ann)
    expect(await pool.call('drive', 'whoami', {})).toBe('page ann')
    drive.refused.add(drive.calls.at(-1)!.token!)
    issuer.intercept = async () => ({ status: 400, body: { error: 'invalid_grant' } })
    await expect(pool.call('drive', 'whoami', {})).rejects.toMatchObject({ server: 'drive' })
    // It is not tried again.
    await expect(whoami(ann)).rejects.toMatchObject({ server: 'drive' })
    expect(refreshes()).toHaveLength(1)
    issuer.intercept = undefined
    await signIn(signIns, ann)
    expect(await pool.call('drive', 'whoami', {})).toBe('page ann')
  })

  test('a server that names another authorization server later: nothing of the first is sent there', async () => {
    await signIn(instance().signIns, ann)
    const other = await openAuthorizationServer()
    try {
      drive.metadata = { authorization_servers: [other.url] }
      skew = 550_000
      await expect(instance().whoami(ann)).rejects.toMatchObject({ server: 'drive' })
      expect([other.grants, refreshes()]).toEqual([[], []])
    } finally {
      await other.close()
    }
  })

  test('signing out revokes the tokens, and no process uses them any more', async () => {
    const { signIns, whoami } = instance()
    expect(await signIns.signOut('drive', ann)).toBeUndefined()
    await signIn(signIns, ann)
    const elsewhere = instance().poolOf(ann)
    expect(await elsewhere.call('drive', 'whoami', {})).toBe('page ann')
    expect(await signIns.signOut('drive', ann)).toEqual({ notRevoked: undefined })
    expect(issuer.revocations.map((each) => each.get('token_type_hint'))).toEqual(['refresh_token', 'access_token'])
    const refused = await fetch(`${issuer.url}/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        client_id: 'page',
        refresh_token: issuer.revocations[0]!.get('token')!,
      }),
    })
    expect(await refused.json()).toMatchObject({ error: 'invalid_grant' })
    const calls = drive.calls.length
    // It had the token in memory.
    await expect(elsewhere.call('drive', 'whoami', {})).rejects.toMatchObject({ server: 'drive' })
    await expect(whoami(ann)).rejects.toMatchObject({ server: 'drive' })
    expect(drive.calls).toHaveLength(calls)
    await signIn(signIns, ann, 'anna')
    expect(await elsewhere.call('drive', 'whoami', {})).toBe('page anna')
  })

  test('a renewal that was under way when the person signed out is in vain, and what it got is revoked', async () => {
    const { signIns, poolOf } = instance()
    await signIn(signIns, ann)
    const pool = poolOf(ann)
    skew = 550_000
    const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    issuer.intercept = async () => {
      asked.resolve()
      await go.promise
      return undefined
    }
    issuer.interceptRevocation = async () => ({ status: 200, body: {} })
    const call = pool.call('drive', 'whoami', {})
    await asked.promise
    await signIns.signOut('drive', ann)
    go.resolve()
    await expect(call).rejects.toMatchObject({ server: 'drive' })
    await vi.waitFor(() => expect(issuer.revocations).toHaveLength(4))
    expect(new Set(issuer.revocations.map((each) => each.get('token'))).size).toBe(4)
  })

  test.for<[string, string, () => Promise<{ status: number; body: object }>]>([
    ['refuses', 'answered invalid_client', async () => ({ status: 401, body: { error: 'invalid_client' } })],
    ['is broken', 'answered HTTP 500', async () => ({ status: 500, body: {} })],
    [
      'does not answer',
      'did not answer in time',
      () => {
        stop.abort(new DOMException('late', 'TimeoutError'))
        return new Promise(() => {})
      },
    ],
  ])('an authorization server that %s: the tokens are forgotten all the same', async ([, why, answer]) => {
    const { signIns, whoami } = instance()
    await signIn(signIns, ann)
    issuer.interceptRevocation = answer
    expect(await signIns.signOut('drive', ann, stop.signal)).toMatchObject({ notRevoked: { why } })
    await expect(whoami(ann)).rejects.toMatchObject({ server: 'drive' })
  })

  test('an authorization server that revokes nothing, and one that another server names', async () => {
    const other = await openAuthorizationServer({ revokes: false })
    try {
      await signIn(instance().signIns, ann)
      drive.metadata = { authorization_servers: [other.url] }
      const { signIns } = instance()
      expect(await signIns.signOut('drive', ann)).toMatchObject({
        notRevoked: { why: 'is no longer that of the server' },
      })
      await signIn(signIns, ann)
      expect(await signIns.signOut('drive', ann)).toMatchObject({ notRevoked: { why: 'revokes no tokens' } })
      expect([issuer.revocations, other.revocations]).toEqual([[], []])
    } finally {
      await other.close()
    }
  })

  test('without a client id we register, once for all people', async () => {
    const { signIns, whoami } = instance({ clientId: undefined })
    await signIn(signIns, ann)
    await signIn(instance({ clientId: undefined }).signIns, bob, 'bob')
    expect(issuer.registered).toBe(1)
    expect(await whoami(ann)).toMatch(/^[\w-]{10,} ann$/u)
  })

  test('where others can read our metadata document, its address is our name', async () => {
    const document = 'https://agents.example/mcp/connect/client'
    issuer.documents.set(document, {
      client_id: document,
      client_name: 'Millrace',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    })
    const { signIns, whoami } = instance({ clientId: undefined })
    await signIn(signIns, ann, 'ann', { clientDocument: document })
    expect(await whoami(ann)).toBe(`${document} ann`)
    expect(issuer.registered).toBe(0)
  })

  test.for<[string, (back: URL, flow: Flow) => void, string]>([
    ['another state', (back) => back.searchParams.set('state', 'x'), 'cannot be used'],
    ['no state', (back) => back.searchParams.delete('state'), 'cannot be used'],
    ['another iss', (back) => back.searchParams.set('iss', 'https://evil.example'), 'cannot be used'],
    ['no iss', (back) => back.searchParams.delete('iss'), 'cannot be used'],
    ['another verifier', (_, flow) => (flow.verifier = 'x'.repeat(43)), 'invalid_grant'],
    ['another issuer', (_, flow) => (flow.issuer = 'https://evil.example'), 'has changed'],
    ['a code of nobody', (back) => back.searchParams.set('code', 'x'), 'invalid_grant'],
    ['too much time', () => (skew = 601_000), 'has taken too long'],
  ])('a return with %s signs nobody in', async ([, change, words]) => {
    const { signIns, whoami } = instance()
    const { address, flow } = await signIns.begin({ server: 'drive', caller: ann, redirectUri })
    const back = await visit(address)
    change(back, flow)
    await expect(signIns.finish(flow, back)).rejects.toMatchObject({
      code: 'mcp-unauthorized',
      message: expect.stringContaining(words),
    })
    skew = 0
    await expect(whoami(ann)).rejects.toMatchObject({ server: 'drive' })
  })

  test('somebody who declines', async () => {
    const { signIns } = instance()
    const { flow } = await signIns.begin({ server: 'drive', caller: ann, redirectUri })
    const back = new URL(redirectUri)
    back.search = String(new URLSearchParams({ error: 'access_denied', state: flow.state, iss: issuer.url }))
    await expect(signIns.finish(flow, back)).rejects.toMatchObject({
      code: 'sign-in-declined',
      message: 'The sign-in to the MCP server "drive" was declined.',
    })
  })

  test('an authorization server without PKCE, and one that another server names, get nobody', async () => {
    const { signIns } = instance({ clientId: undefined, issuer: `${drive.origin}/none` })
    await expect(signIns.begin({ server: 'drive', caller: ann, redirectUri })).rejects.toMatchObject({
      code: 'mcp-unauthorized',
    })
    drive.metadata = { authorization_servers: ['http://evil.example'] }
    await expect(instance().signIns.begin({ server: 'drive', caller: ann, redirectUri })).rejects.toMatchObject({
      message: expect.stringContaining('is not at an https:// address'),
    })
  })
})

/** Where a person's tokens are. */
async function inboxesOf(caller: { id: string; tenant: string }, period: number): Promise<string[]> {
  const bytes = new TextEncoder().encode(JSON.stringify([caller.tenant, caller.id, 'drive', drive.url]))
  const digest = Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex')
  return [`access:mcp:${digest}:${period}`]
}
