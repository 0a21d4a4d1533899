import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openIssuer, type TestIssuer } from '../../../test/support/issuer.ts'
import type { LoginConfig } from '../../project/config.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { createCookieSeal } from './cookie-seal.ts'
import { createLogin, type Login, type LoginOptions } from './login.ts'

let issuer: TestIssuer
let time: number
let reports: string[]
const log = memoryStore().log
const seal = createCookieSeal(log, 'session', () => time)
const minute = 60_000
const here = 'http://127.0.0.1:3000'

beforeEach(async () => {
  issuer = await openIssuer()
  time = Date.UTC(2026, 10, 28)
  reports = []
})
afterEach(() => issuer.close())

function loginOf(config: Partial<LoginConfig> = {}, options: Partial<LoginOptions> = {}): Login {
  const report = (error: unknown) => void reports.push((error as Error).message)
  return createLogin({ issuer: issuer.url, clientId: 'page', ...config }, { seal, now: () => time, report, ...options })
}

interface Visit {
  method?: string
  cookies?: string[]
  headers?: Record<string, string>
}

function visit(login: Login, url: string, { method = 'GET', cookies = [], headers = {} }: Visit = {}) {
  const { host, pathname } = new URL(url)
  const sent = new Headers({ host, ...headers })
  if (cookies.length > 0) sent.set('cookie', cookies.join('; '))
  return login.signIn({ url, method, headers: sent }, pathname)!
}

/** What a browser keeps of the cookies: `name=value`. */
const kept = (response: Response) => response.headers.getSetCookie().map((each) => each.slice(0, each.indexOf(';')))

/** The whole way. Returns the last response and its cookies. */
async function signedIn(login: Login, { at = here, back = '/runs', claims = {} } = {}) {
  const begun = await visit(login, `${at}/auth/login?return=${encodeURIComponent(back)}`)
  const to = issuer.authorize(begun.headers.get('location')!, time, claims)
  const response = await visit(login, to, { cookies: kept(begun) })
  return { response, cookies: kept(response).filter((each) => !each.endsWith('=')), to, begun }
}

const who = (login: Login, cookies: string[], host = '127.0.0.1:3000') =>
  login.identify(new Headers({ host, cookie: cookies.join('; ') }))

describe('createLogin', () => {
  test('signs in by the code flow with PKCE, state and nonce, and returns to the page', async () => {
    const login = loginOf({ tenant: 'org', roles: 'roles' }, { claims: ['plan'] })
    const claims = { org: 'acme', roles: ['operator'], name: 'Ann', plan: 'pro', secret: 'x' }
    const { begun, response, cookies } = await signedIn(login, { claims })
    const asked = Object.fromEntries(new URL(begun.headers.get('location')!).searchParams)
    expect(asked).toMatchObject({
      client_id: 'page',
      redirect_uri: `${here}/auth/callback`,
      response_type: 'code',
      scope: 'openid profile',
      code_challenge_method: 'S256',
    })
    for (const name of ['state', 'nonce', 'code_challenge']) expect(asked[name]).toMatch(/^[\w-]{43}$/u)
    expect([response.status, response.headers.get('location')]).toEqual([303, `${here}/runs`])
    expect(await who(login, cookies)).toEqual({
      id: 'u1',
      tenant: 'acme',
      roles: ['operator'],
      name: 'Ann',
      claims: { plan: 'pro' },
      expiresAt: time + 10 * minute,
    })
    expect(cookies.join()).not.toMatch(/acme|operator/u)
  })

  test('the session ends with the token, and after 12 hours at the latest', async () => {
    const login = loginOf()
    const short = await signedIn(login)
    const long = await signedIn(login, { claims: { exp: time / 1000 + 86_400 } })
    expect(long.response.headers.getSetCookie().at(-1)).toContain('Max-Age=43200;')
    time += 10 * minute
    expect(await who(login, short.cookies)).toBeUndefined()
    expect(await who(login, long.cookies)).toMatchObject({ id: 'u1' })
    time += 12 * 60 * minute
    expect(await who(login, long.cookies)).toBeUndefined()
  })

  test('cookies are for this host and https, unless the server is this machine', async () => {
    const login = loginOf()
    const local = await signedIn(login)
    for (const cookie of local.response.headers.getSetCookie()) {
      expect(cookie).toMatch(/^millrace_\w+=[\w.-]*; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/u)
    }
    const far = await signedIn(login, { at: 'http://agents.example' })
    // A proxy in front of it ends TLS.
    expect(new URL(far.to).origin).toBe('https://agents.example')
    for (const cookie of far.response.headers.getSetCookie()) {
      expect(cookie).toMatch(/^__Host-millrace_\w+=[\w.-]*; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/u)
    }
    expect(await who(login, far.cookies, 'agents.example')).toMatchObject({ id: 'u1' })
    // A plain name is what a subdomain could have set.
    const plain = far.cookies.map((each) => each.replace('__Host-', ''))
    expect(await who(login, plain, 'agents.example')).toBeUndefined()
  })

  test('`url` is what browsers see, whatever a proxy says', async () => {
    const login = loginOf({ url: 'https://agents.example' })
    const begun = await visit(login, `${here}/auth/login`)
    const asked = new URL(begun.headers.get('location')!).searchParams
    expect(asked.get('redirect_uri')).toBe('https://agents.example/auth/callback')
    expect(begun.headers.get('set-cookie')).toMatch(/^__Host-/u)
  })

  test.for([
    ['/runs/r1?a=b#c', '/runs/r1?a=b#c'],
    ['', '/'],
    ['https://evil.example/', '/'],
    ['//evil.example/x', '/'],
    ['/\\evil.example/x', '/'],
    ['/\t/evil.example/', '/'],
    ['/.//evil.example/', '//evil.example/'],
    ['/auth/login', '/'],
    [`/${'x'.repeat(500)}`, '/'],
    [`/${'ä'.repeat(300)}`, '/'],
  ])('after the sign-in, %s leads to a page of this server', async ([back, path]) => {
    const { response } = await signedIn(loginOf(), { back })
    expect(response.headers.get('location')).toBe(here + path)
  })

  test('changed, foreign and other cookies are no session', async () => {
    const login = loginOf()
    const { cookies, begun } = await signedIn(login)
    const [session] = cookies
    const value = session!.slice(session!.indexOf('=') + 1)
    const changed = `${session!.slice(0, -4)}${session!.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`
    const other = createCookieSeal(memoryStore().log, 'session', () => time)
    const foreign = `millrace_session=${await other.seal((await seal.open(value))!.text)}`
    // What the browser kept during the sign-in is sealed with the same key.
    const early = `millrace_session=${kept(begun)[0]!.split('=')[1]}`
    for (const cookie of [changed, foreign, early, 'millrace_session=', 'millrace_session=x', 'a=b', '']) {
      expect(await who(login, [cookie]), cookie).toBeUndefined()
    }
    expect(await who(login, ['a=b', session!])).toMatchObject({ id: 'u1' })
    expect(await who(loginOf({ clientId: 'other' }), cookies)).toBeUndefined()
  })

  test.for<[string, (to: URL, cookies: string[]) => void]>([
    ['without the cookie of its beginning', (_, cookies) => cookies.pop()],
    ['with another state', (to) => to.searchParams.set('state', 'x'.repeat(43))],
    ['without a state', (to) => to.searchParams.delete('state')],
    ['with a code that does not exist', (to) => to.searchParams.set('code', 'x')],
    ['with the code of another browser', (to) => void to.searchParams.set('code', otherCode)],
    ['of another issuer', (to) => to.searchParams.set('iss', 'https://evil.example')],
    ['that took too long', () => (time += 11 * minute)],
  ])('a return %s signs nobody in', async ([, change]) => {
    const login = loginOf()
    const other = await visit(login, `${here}/auth/login`)
    otherCode = new URL(issuer.authorize(other.headers.get('location')!, time)).searchParams.get('code')!
    const begun = await visit(login, `${here}/auth/login`)
    const to = new URL(issuer.authorize(begun.headers.get('location')!, time))
    const cookies = kept(begun)
    change(to, cookies)
    const response = await visit(login, to.href, { cookies })
    expect(response.status).toBe(400)
    expect(kept(response)).toEqual(['millrace_sign_in='])
    expect(await response.text()).not.toContain('evil')
  })
  let otherCode = ''

  test.for([
    ['another nonce', { nonce: 'x' }],
    ['another audience', { aud: 'other' }],
    ['another issuer', { iss: 'https://id.example' }],
    ['an end that has passed', { exp: Date.UTC(2026, 10, 28) / 1000 - 61 }],
  ] as const)('an ID token with %s signs nobody in', async ([, claims]) => {
    const { response, cookies } = await signedIn(loginOf(), { claims: { ...claims } })
    expect([response.status, cookies]).toEqual([400, []])
    expect(reports).toEqual([expect.stringMatching(/^A sign-in with .* failed: /u)])
  })

  test('claims that do not fit are refused, and the operator learns which', async () => {
    const { response, cookies } = await signedIn(loginOf({ tenant: 'org' }))
    expect([response.status, cookies]).toEqual([403, []])
    expect(reports[0]).toMatch(/ was refused\. The claim org must be/u)
    const long = await signedIn(loginOf({}, { claims: ['bio'] }), { claims: { bio: 'x'.repeat(3000) } })
    expect([long.response.status, long.cookies]).toEqual([403, []])
    expect(reports[1]).toContain('too long for a cookie')
  })

  test('someone who cancels at the issuer is told so, without a report', async () => {
    const login = loginOf()
    const begun = await visit(login, `${here}/auth/login`)
    const state = new URL(begun.headers.get('location')!).searchParams.get('state')!
    const to = `${here}/auth/callback?error=access_denied&error_description=evil&state=${state}`
    const response = await visit(login, to, { cookies: kept(begun) })
    expect([response.status, reports]).toEqual([403, []])
    expect(await response.text()).not.toContain('evil')
  })

  test('an issuer that is away is a 503 at the sign-in, and nothing for sessions that have begun', async () => {
    const login = loginOf()
    issuer.isAway = true
    expect((await visit(login, `${here}/auth/login`)).status).toBe(503)
    expect(reports).toEqual([expect.stringContaining('cannot be reached')])
    issuer.isAway = false
    const { cookies } = await signedIn(login)
    issuer.isAway = true
    expect(await who(login, cookies)).toMatchObject({ id: 'u1' })
  })

  test('signing out takes the session from the browser, if its own page asks', async () => {
    const login = loginOf()
    const out = (headers: Record<string, string>) => visit(login, `${here}/auth/logout`, { method: 'POST', headers })
    const response = await out({ origin: here })
    expect([response.status, response.headers.getSetCookie()]).toEqual([
      204,
      ['millrace_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'],
    ])
    await expect(out({ origin: 'https://evil.example' })).rejects.toMatchObject({ code: 'forbidden', status: 403 })
    await expect(out({})).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('other paths and methods are not of the sign-in', () => {
    const login = loginOf()
    const sent = (method: string, path: string) =>
      login.signIn({ method, url: here + path, headers: new Headers() }, path)
    expect([sent('GET', '/auth/logout'), sent('POST', '/auth/login'), sent('GET', '/auth/x')]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('a client with a secret sends it to the issuer only, and it must be set', async () => {
    const login = loginOf({ secretEnv: 'PAGE_SECRET' }, { environment: { PAGE_SECRET: 'hush-hush' } })
    const { begun, response } = await signedIn(login)
    expect(issuer.secrets).toEqual(['hush-hush'])
    for (const each of [begun, response]) expect(JSON.stringify([...each.headers])).not.toContain('hush')
    expect(() => loginOf({ secretEnv: 'PAGE_SECRET' })).toThrow('the variable PAGE_SECRET is not set')
  })

  test('tokens for the client count with the same claims', () => {
    expect(loginOf({ tenant: 'org' }).tokens).toEqual({ issuer: issuer.url, audience: 'page', tenant: 'org' })
  })

  test('tells millrace login where to sign in', () => {
    const told = { issuer: issuer.url, clientId: 'page', scope: 'openid email' }
    expect(loginOf({ scope: 'openid email' }).issuer).toEqual(told)
  })
})
