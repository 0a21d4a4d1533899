import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createMcpPool, type McpPool, type PoolOptions } from '../pool.ts'
import type { ClientCredentials } from './auth-config.ts'
import { openAuthorizationServer, type TestAuthorizationServer } from './testing/authorization-server.ts'
import { openProtectedServer, type ProtectedServer } from './testing/protected-server.ts'

let issuer: TestAuthorizationServer
let crm: ProtectedServer
const pools: McpPool[] = []
let skew = 0
const now = () => Date.now() + skew

beforeAll(async () => {
  issuer = await openAuthorizationServer()
})
afterAll(() => issuer.close())
beforeEach(async () => {
  crm = await openProtectedServer(issuer.url)
  issuer.grants.length = 0
  issuer.intercept = undefined
  skew = 0
})
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()))
  await crm.close()
})

function poolOf(auth: Partial<ClientCredentials> = {}, options: PoolOptions = {}): McpPool {
  const clientCredentials = { clientId: 'desk', secretEnv: 'CRM_SECRET', scope: 'read', issuer: issuer.url, ...auth }
  const environment = { CRM_SECRET: issuer.secret, CRM_KEY: issuer.key }
  const pool = createMcpPool({ crm: { url: crm.url, auth: { clientCredentials } } }, { environment, now, ...options })
  pools.push(pool)
  return pool
}

const who = (pool: McpPool) => pool.call('crm', 'whoami', {})
const signed = { clientId: 'signer', secretEnv: undefined, privateKeyEnv: 'CRM_KEY', algorithm: 'ES256' } as const
const tokensSent = () => [...new Set(crm.calls.flatMap(({ token }) => token ?? []))]

describe('client credentials', () => {
  test('a secret gets a token for this server, and twenty calls at once get one', async () => {
    const pool = poolOf()
    expect(await Promise.all(Array.from({ length: 20 }, () => who(pool)))).toEqual(Array(20).fill('desk desk'))
    expect(issuer.grants.map((each) => Object.fromEntries(each))).toEqual([
      {
        grant_type: 'client_credentials',
        scope: 'read',
        resource: crm.url,
        client_id: 'desk',
        client_secret: issuer.secret,
      },
    ])
  })

  test('a private key signs the request, and is not sent', async () => {
    expect(await who(poolOf(signed))).toBe('signer signer')
    expect(await who(poolOf({ ...signed, keyId: 'one' }))).toBe('signer signer')
    const body = String(issuer.grants[0])
    expect(body).toContain('client_assertion=')
    expect(body).not.toContain('PRIVATE')
  })

  test('a token is renewed before its end, once, and the one before counts while nobody answers', async () => {
    const pool = poolOf()
    await who(pool)
    skew = 530_000
    await who(pool)
    expect(issuer.grants).toHaveLength(1)
    skew = 541_000
    issuer.intercept = async () => ({ status: 503, body: {} })
    expect(await who(pool)).toBe('desk desk')
    expect(await who(pool)).toBe('desk desk')
    expect([issuer.grants.length, tokensSent().length]).toEqual([2, 1])
    issuer.intercept = undefined
    skew += 5000
    await Promise.all(Array.from({ length: 20 }, () => who(pool)))
    expect([issuer.grants.length, tokensSent().length]).toEqual([3, 2])
    skew = 3_000_000
    issuer.intercept = async () => ({ status: 503, body: {} })
    await expect(who(pool)).rejects.toMatchObject({ code: 'mcp-unauthorized' })
  })

  test('a token that the server refuses in between is renewed once for all calls', async () => {
    const pool = poolOf()
    await who(pool)
    crm.refused.add(tokensSent()[0]!)
    const held = Promise.withResolvers<void>()
    crm.hold = held.promise
    const calls = Array.from({ length: 20 }, () => who(pool))
    held.resolve()
    expect(await Promise.all(calls)).toEqual(Array(20).fill('desk desk'))
    expect([issuer.grants.length, tokensSent().length]).toEqual([2, 2])
  })

  test('a token that counts nowhere is asked for twice, and then the call fails; others go on', async () => {
    const pool = poolOf()
    await who(pool)
    const refusesAll = { has: () => true } as unknown as Set<string>
    const { refused } = crm
    crm.refused = refusesAll
    const why = 'The MCP server "crm" cannot be used: it does not accept the token of its authorization server.'
    await expect(who(pool)).rejects.toMatchObject({ code: 'mcp-unauthorized', message: why })
    expect(issuer.grants).toHaveLength(2)
    crm.refused = refused
    expect(await who(pool)).toBe('desk desk')
    expect(crm.calls.filter(({ method }) => method === 'initialize').length).toBeLessThanOrEqual(1)
  })

  test('headers of a request win', async () => {
    const pool = poolOf()
    const own = pool.withHeaders({ crm: { Authorization: 'Bearer mine' } })
    await expect(own.call('crm', 'whoami', {})).rejects.toMatchObject({ code: 'mcp-unreachable' })
    expect(tokensSent()).toEqual(['mine'])
    const more = pool.withHeaders({ crm: { 'X-Trace': 'a' } })
    expect(await who(more)).toBe('desk desk')
    expect(crm.calls.at(-1)!.headers).toMatchObject({ 'x-trace': 'a' })
    await who(pool)
    expect(issuer.grants).toHaveLength(1)
  })
})

describe('where tokens and secrets do not go', () => {
  test('a token that a server repeats reaches nobody', async () => {
    const pool = poolOf()
    expect(await pool.call('crm', 'echo_token', {})).toBe('token: [redacted]!')
    await expect(pool.call('crm', 'fail_with_token', {})).rejects.toMatchObject({ message: 'no, [redacted]' })
    // No address of the server or of its metadata has it.
    const [token] = tokensSent()
    expect(crm.addresses.filter((each) => each.includes(token!) || each.includes(issuer.secret))).toEqual([])
  })

  test.for<[string, () => Record<string, unknown>, string]>([
    [
      'another resource',
      () => ({ resource: 'https://other.example/mcp' }),
      'its metadata are those of another resource',
    ],
    ['a resource below', () => ({ resource: `${crm.url}/below` }), 'its metadata are those of another resource'],
    ['no resource', () => ({ resource: undefined }), 'its metadata are those of another resource'],
  ])('metadata about %s: nobody gets anything', async ([, metadata, why]) => {
    crm.metadata = metadata()
    const message = `The MCP server "crm" cannot be used: ${why}.`
    await expect(who(poolOf())).rejects.toMatchObject({ code: 'mcp-unauthorized', message })
    expect([issuer.grants, tokensSent()]).toEqual([[], []])
  })

  test('a server that names another authorization server gets no secret sent there, unless the config names it', async () => {
    await expect(who(poolOf({ issuer: undefined }))).rejects.toMatchObject({
      code: 'mcp-unauthorized',
      message: expect.stringContaining('set it as issuer in auth'),
      detail: `it names ${issuer.url}`,
    })
    // Not even a key, whose signature would be of no use elsewhere.
    await expect(who(poolOf({ ...signed, issuer: undefined }))).rejects.toMatchObject({ code: 'mcp-unauthorized' })
    expect(issuer.grants).toEqual([])
    crm.metadata = { authorization_servers: ['https://evil.example'] }
    expect(await who(poolOf())).toBe('desk desk')
  })

  test('a server that redirects to another origin: no token goes there', async () => {
    const other = await openProtectedServer(issuer.url)
    try {
      crm.redirect = other.url
      await expect(who(poolOf())).rejects.toMatchObject({ code: 'redirect-refused' })
      expect(other.calls).toEqual([])
    } finally {
      await other.close()
    }
  })

  test.for<[string, object, string]>([
    ['an error', { error: 'invalid_client', error_description: 'unknown SECRET' }, 'answered invalid_client'],
    ['an error with a strange name', { error: 'SECRET' }, 'answered an error'],
    ['a token with a line break', { access_token: 'SECRET\n', token_type: 'Bearer' }, 'cannot be used'],
    ['no token', { token_type: 'Bearer', scope: 'SECRET' }, 'cannot be used'],
    ['another kind of token', { access_token: 'SECRET', token_type: 'mac' }, 'cannot be used'],
  ])('%s of the authorization server is said without secrets', async ([, body, words]) => {
    const said = JSON.stringify(body).replace('SECRET', issuer.secret)
    issuer.intercept = async () => ({ status: 'error' in body ? 400 : 200, body: JSON.parse(said) })
    const error = await who(poolOf()).then(
      () => undefined,
      (each: unknown) => each as Error & { detail?: string },
    )
    expect(error).toMatchObject({ code: 'mcp-unauthorized', message: expect.stringContaining(words) })
    // A cause would have the request and the answer.
    expect([error!.cause, `${error!.message} ${error!.detail}`.includes(issuer.secret)]).toEqual([undefined, false])
  })

  test('a variable that is not set, and a key that is none, are said by name in the log only', async () => {
    await expect(who(poolOf({}, { environment: {} }))).rejects.toMatchObject({
      message: 'The MCP server "crm" cannot be used: an environment variable named in its auth is not set.',
      detail: 'not set: CRM_SECRET',
    })
    await expect(who(poolOf(signed, { environment: { CRM_KEY: 'x' } }))).rejects.toMatchObject({
      message: expect.stringContaining('its private key is no ES256 key'),
    })
  })
})
