import { exportSPKI, SignJWT, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openIssuer, type TestIssuer } from '../../../test/support/issuer.ts'
import type { JwtConfig } from '../../project/config.ts'
import { createJwtCheck } from './jwt.ts'
import { accessUnavailable, unauthorized } from './refusals.ts'

let issuer: TestIssuer
let time: number
let reports: string[]
const now = () => time
const minute = 60_000

beforeEach(async () => {
  issuer = await openIssuer()
  time = Date.UTC(2026, 10, 28)
  reports = []
})
afterEach(() => issuer.close())

function checkOf(config: Partial<JwtConfig> = {}, claims?: string[]) {
  // What the check of an earlier test still fetches is not reported here.
  const mine = reports
  const report = (error: unknown) => void mine.push((error as Error).message)
  return createJwtCheck({ issuer: issuer.url, audience: 'millrace', ...config }, { now, report, claims })
}

/** The error that a client gets, or undefined. */
async function refusal(check: ReturnType<typeof checkOf>, token: string) {
  const wait = async () => check.identify(token)
  const error = (await wait().catch((thrown: unknown) => thrown)) as Error & { code?: string; status?: number }
  return error instanceof Error ? [error.code, error.status, error.message] : undefined
}
const refused = ['unauthorized', 401, unauthorized().message]
const unavailable = ['access-unavailable', 503, accessUnavailable().message]

describe('createJwtCheck', () => {
  test.for(['RS256', 'ES256', 'EdDSA'])('a token that is signed with %s counts until its end', async (alg) => {
    await issuer.addKey('other', alg)
    const check = checkOf()
    const token = await issuer.token(time)
    expect(check.matches(token)).toBe(true)
    expect(await check.identify(token)).toEqual({ id: 'u1', roles: ['user'], expiresAt: time + 10 * minute })
  })

  test('claims say who the user is, and only those that are listed reach the principal', async () => {
    const check = checkOf({ user: 'uid', tenant: 'org', roles: 'realm.roles' }, ['plan', 'seats', 'beta', 'none'])
    const realm = { roles: ['editor', 'operator', 'user'] }
    const claims = { uid: 'ann', org: 'acme', realm, name: 'Ann', plan: 'pro', seats: 3, beta: true, secret: 'x' }
    expect(await check.identify(await issuer.token(time, claims))).toEqual({
      id: 'ann',
      tenant: 'acme',
      roles: ['user', 'operator'],
      name: 'Ann',
      claims: { plan: 'pro', seats: 3, beta: true },
      expiresAt: time + 10 * minute,
    })
  })

  test.for([
    ['a list', ['admin'], ['admin']],
    ['a text', 'operator other', ['operator']],
    ['none of ours', ['editor'], ['user']],
    ['absent', undefined, ['user']],
  ] as const)('roles: %s', async ([, given, roles]) => {
    const check = checkOf({ roles: 'https://example.com/roles' })
    const token = await issuer.token(time, given === undefined ? {} : { 'https://example.com/roles': given })
    expect(await check.identify(token)).toMatchObject({ roles })
  })

  test.for<[string, object]>([
    ['a user that is a number', { org: 'acme', sub: 7 }],
    ['an empty user', { org: 'acme', sub: '' }],
    ['a user of 257 characters', { org: 'acme', sub: 'u'.repeat(257) }],
    ['a user like a key', { org: 'acme', sub: 'key:ci' }],
    ['a user that is half a surrogate pair', { org: 'acme', sub: '\uD800' }],
    ['a tenant that is half a surrogate pair', { org: '\uDFFF' }],
    ['no tenant', {}],
    ['a tenant that is null', { org: null }],
    ['roles that are an object', { org: 'acme', roles: { admin: true } }],
    ['roles with a number among them', { org: 'acme', roles: ['admin', 1] }],
    ['a listed claim that is a list', { org: 'acme', plan: ['pro'] }],
  ])('%s is refused, and the operator learns which claim it was', async ([, claims]) => {
    const check = checkOf({ tenant: 'org', roles: 'roles' }, ['plan'])
    expect(await refusal(check, await issuer.token(time, { ...claims }))).toEqual(refused)
    expect(reports).toEqual([expect.stringMatching(/^A token of .* was refused\. The claim \w+ /u)])
  })

  test.for<[string, object]>([
    ['another audience', { aud: 'other' }],
    ['no audience', { aud: undefined }],
    ['another issuer', { iss: 'http://127.0.0.1:1' }],
    ['an end before the skew', { exp: Date.UTC(2026, 10, 28) / 1000 - 61 }],
    ['no end', { exp: undefined }],
    ['a beginning after the skew', { nbf: Date.UTC(2026, 10, 28) / 1000 + 61 }],
    ['an end that is a text', { exp: '9999999999' }],
  ])('a token with %s is refused with the one text', async ([, claims]) => {
    expect(await refusal(checkOf(), await issuer.token(time, { ...claims }))).toEqual(refused)
    expect(reports).toEqual([])
  })

  test('a clock that is a minute off does no harm, and what began late ends with the skew', async () => {
    const seconds = time / 1000
    const check = checkOf()
    expect(await check.identify(await issuer.token(time, { nbf: seconds + 59 }))).toMatchObject({ id: 'u1' })
    const late = await issuer.token(time, { exp: seconds - 59 })
    expect(await check.identify(late)).toMatchObject({ id: 'u1', expiresAt: time + 1000 })
    time += 1000
    expect(await refusal(check, late)).toEqual(refused)
  })

  test('a token without a signature is refused', async () => {
    const claims = { iss: issuer.url, aud: 'millrace', sub: 'u1', exp: time / 1000 + 600 }
    const token = new UnsecuredJWT(claims).encode()
    const check = checkOf()
    expect(check.matches(token)).toBe(true)
    expect(await refusal(check, token)).toEqual(refused)
    const [, body] = (await issuer.token(time)).split('.')
    const [head] = (await issuer.token(time)).split('.')
    expect(await refusal(check, `${head}.${body}.`)).toEqual(refused)
  })

  test('HMAC with the public key as its secret is refused', async () => {
    const publicKey = await issuer.addKey('known')
    const secret = new TextEncoder().encode(await exportSPKI(publicKey))
    const claims = { iss: issuer.url, aud: 'millrace', sub: 'u1', exp: time / 1000 + 600 }
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'known' }).sign(secret)
    expect(await refusal(checkOf(), token)).toEqual(refused)
  })

  test.for(['RS512', 'ES384', 'PS256'])('%s is refused, although the issuer has such a key', async (alg) => {
    await issuer.addKey('other', alg)
    expect(await refusal(checkOf(), await issuer.token(time))).toEqual(refused)
  })

  test('a changed token is refused, and so is one of another key with a known id', async () => {
    const check = checkOf()
    const [head, , signature] = (await issuer.token(time)).split('.')
    const [, admin] = (await issuer.token(time, { sub: 'admin' })).split('.')
    expect(await refusal(check, `${head}.${admin}.${signature}`)).toEqual(refused)
    await issuer.addKey('first', 'RS256', true)
    expect(await refusal(check, await issuer.token(time, {}, { kid: 'first' }))).toEqual(refused)
  })

  test('a token of 8 KB is refused before anything of it is read', async () => {
    const check = checkOf()
    const token = await issuer.token(time, { filler: 'x'.repeat(7000) })
    expect(token.length).toBeGreaterThan(8192)
    expect(await refusal(check, token)).toEqual(refused)
    expect(issuer.requests).toEqual([])
  })

  test('what is no JWT does not look like one', () => {
    const check = checkOf()
    for (const text of ['', 'mr_abc', 'a.b.c', 'eyJhbGciOiJub25lIn0', 'eyJ.a.b.c.d', 'eyJa.b.c\n']) {
      expect(check.matches(text), text).toBe(false)
    }
  })

  test('keys are fetched once, and again for an unknown key id at most once a minute', async () => {
    const check = checkOf()
    await Promise.all([check.identify(await issuer.token(time)), check.identify(await issuer.token(time))])
    expect(issuer.requests).toEqual(['/.well-known/openid-configuration', '/jwks.json'])
    issuer.requests = []
    await issuer.addKey('second')
    expect(await check.identify(await issuer.token(time))).toMatchObject({ id: 'u1' })
    expect(issuer.requests).toContain('/jwks.json')
    issuer.requests = []
    await issuer.addKey('third')
    time += minute - 1
    const third = await issuer.token(time)
    expect(await refusal(check, third)).toEqual(refused)
    expect(issuer.requests).toEqual([])
    time += 1
    expect(await check.identify(third)).toMatchObject({ id: 'u1' })
    expect(issuer.requests).toContain('/jwks.json')
  })

  test('a token that is known costs no signature check, and ends with its end', async () => {
    const check = checkOf()
    const token = await issuer.token(time)
    const principal = await check.identify(token)
    expect(check.identify(token)).toBe(principal)
    time += 10 * minute + minute
    expect(await refusal(check, token)).toEqual(refused)
  })

  test('keys that are known count while the issuer is away', async () => {
    const check = checkOf({ jwks: `${issuer.url}/jwks.json` })
    await check.identify(await issuer.token(time))
    issuer.isAway = true
    time += 60 * minute
    expect(await check.identify(await issuer.token(time))).toMatchObject({ id: 'u1' })
    await expect.poll(() => reports.length).toBe(1)
  })

  test('tokens of a key that the issuer has withdrawn end, once the keys are fetched again', async () => {
    const check = checkOf()
    const token = await issuer.token(time, { exp: time / 1000 + 7200 })
    await check.identify(token)
    issuer.keys = []
    await issuer.addKey('second')
    time += 10 * minute
    issuer.requests = []
    await check.identify(token)
    await expect.poll(() => refusal(check, token)).toEqual(refused)
  })

  test('an issuer that was never reached is a 503 that the report explains, and is asked again', async () => {
    const check = checkOf()
    issuer.isAway = true
    const token = await issuer.token(time)
    expect(await refusal(check, token)).toEqual(unavailable)
    expect(reports).toEqual([`The keys of the issuer ${issuer.url} cannot be fetched.`])
    issuer.isAway = false
    expect(await refusal(check, token)).toEqual(unavailable)
    expect(issuer.requests).toHaveLength(1)
    time += 5000
    expect(await check.identify(token)).toMatchObject({ id: 'u1' })
  })

  test('discovery that names another issuer is not trusted', async () => {
    const { url } = issuer
    const token = await issuer.token(time, { iss: `${url}/other` })
    expect(await refusal(checkOf({ issuer: `${url}/other` }), token)).toEqual(unavailable)
  })

  test('without a key id, each key that fits is tried', async () => {
    await issuer.addKey('second')
    const token = await issuer.token(time, {}, { isNameless: true })
    expect(await checkOf().identify(token)).toMatchObject({ id: 'u1' })
  })

  test('of several configs, that of the issuer and the audience counts', async () => {
    const other = await openIssuer()
    // What the check of an earlier test still fetches is not reported here.
    const mine = reports
    const report = (error: unknown) => void mine.push((error as Error).message)
    const configs = [
      { issuer: issuer.url, audience: 'api', tenant: 'org' },
      { issuer: issuer.url, audience: 'page' },
      { issuer: other.url, audience: 'page', user: 'email' },
    ]
    const check = createJwtCheck(configs, { now, report })
    expect(await check.identify(await issuer.token(time, { aud: 'page' }))).toMatchObject({ id: 'u1' })
    expect(issuer.requests.filter((path) => path === '/jwks.json')).toHaveLength(1)
    expect(await check.identify(await other.token(time, { aud: 'page', email: 'a@b' }))).toMatchObject({ id: 'a@b' })
    expect(await refusal(check, await other.token(time, { aud: 'api' }))).toEqual(refused)
    const forged = await other.token(time, { iss: issuer.url, aud: 'page' })
    expect(await refusal(check, forged)).toEqual(refused)
    // A token of nobody we know makes no issuer be asked.
    issuer.requests = []
    time += 2 * minute
    expect(await refusal(check, await issuer.token(time, { iss: 'https://id.example' }))).toEqual(refused)
    await issuer.addKey('new')
    expect(await refusal(check, await issuer.token(time, { iss: 'https://id.example' }))).toEqual(refused)
    expect(issuer.requests).toEqual([])
    await other.close()
  })
})
