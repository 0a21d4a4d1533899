import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryStore } from '../../store/memory-store.ts'
import type { AccessConfig } from '../../project/config.ts'
import type { AccessRequest } from './access.ts'
import { createAccess, type AccessOptions } from './create-access.ts'
import { addKey, revokeKey } from './key-book.ts'

const secret = 'a-secret-of-the-environment-0123456789'

async function accessOf(config: AccessConfig, options: Partial<AccessOptions> = {}) {
  const store = memoryStore()
  const reported: unknown[] = []
  const rings: { ms: number; ring: () => void }[] = []
  const clock = { now: 1000 }
  const access = await createAccess({
    config,
    environment: { CI_KEY: secret },
    log: store.log,
    now: () => clock.now,
    report: (error) => reported.push(error),
    startTimer: (ms, ring) => {
      const timer = { ms, ring }
      rings.push(timer)
      return () => void rings.splice(rings.indexOf(timer), 1)
    },
    ...options,
  })
  onTestFinished(async () => {
    access.close()
    await store.close()
  })
  return { access, log: store.log, reported, rings, clock }
}

function asked(headers: Record<string, string> = {}, method = 'GET', path = '/api/runs') {
  const cookies: string[] = []
  const all = new Headers({ host: 'app.example', ...headers })
  const request: AccessRequest = {
    method,
    headers: all,
    request: () => new Request(`http://app.example${path}`, { method, headers: all }),
    setCookie: (cookie) => void cookies.push(cookie),
  }
  return { ...request, cookies }
}

const bearer = (text: string) => asked({ authorization: `Bearer ${text}` })
const cookieIn = (set: string) => set.slice(0, set.indexOf(';'))

describe('who makes a request', () => {
  test('a key of the config, a stored one, and that of the server', async () => {
    const config: AccessConfig = {
      keys: [{ name: 'ci', env: 'CI_KEY', role: 'operator', tenant: 'acme', agents: ['a'] }],
    }
    const { access, log } = await accessOf(config, { apiKey: 'the-key-of-the-server' })
    const ci = { id: 'key:ci', key: 'ci', roles: ['operator'], tenant: 'acme', agents: ['a'] }
    expect(access.identify(bearer(secret))).toEqual(ci)
    expect(access.identify(asked({ 'x-api-key': secret }))).toEqual(ci)
    expect(access.identify(bearer('the-key-of-the-server'))).toEqual({
      id: '',
      roles: ['admin'],
      key: 'MILLRACE_API_KEY',
    })
    const stored = await addKey(log, { name: 'other', role: 'user' }, { now: 0 })
    await expect.poll(async () => access.identify(bearer(stored))).toMatchObject({ id: 'key:other' })
  })

  test('what does not count has one text, whatever is wrong', async () => {
    const { access, log, clock } = await accessOf({ keys: [{ name: 'ci', env: 'CI_KEY', expires: '2026-01-01' }] })
    const revoked = await addKey(log, { name: 'gone', role: 'user' }, { now: 0 })
    await revokeKey(log, 'gone', { now: 0 })
    clock.now = Date.parse('2026-01-02')
    const requests = [
      asked(),
      bearer('wrong'),
      bearer(secret),
      bearer(revoked),
      bearer('mr_unknown'),
      bearer('eyJhbGciOiJub25lIn0.e30.'),
      asked({ authorization: 'Basic dTpw' }),
      asked({ authorization: '' }),
      asked({ 'x-api-key': '' }),
    ]
    const texts = new Set<string>()
    for (const request of requests) {
      const error = await Promise.resolve()
        .then(() => access.identify(request))
        .catch((refused: Error) => refused)
      expect(error).toMatchObject({ code: 'unauthorized', status: 401 })
      texts.add((error as Error).message)
    }
    expect(texts.size).toBe(1)
  })

  test('two credentials are refused, unless they are the same', async () => {
    const { access } = await accessOf({ keys: [{ name: 'ci', env: 'CI_KEY' }] })
    const both = (key: string) => asked({ authorization: `Bearer ${secret}`, 'x-api-key': key })
    expect(() => access.identify(both('other'))).toThrow(
      expect.objectContaining({ code: 'two-credentials', status: 400 }),
    )
    expect(() => access.identify(bearer(`${secret}, Bearer other`))).toThrow(expect.objectContaining({ status: 400 }))
    expect(access.identify(both(secret))).toMatchObject({ key: 'ci' })
  })

  test('a key is asked first, then the application, then the browser', async () => {
    const calls: string[] = []
    const { access } = await accessOf({
      keys: [{ name: 'ci', env: 'CI_KEY' }],
      anonymous: 'user',
      authenticate: ({ headers }) => {
        calls.push(headers.get('authorization') ?? headers.get('cookie') ?? 'nothing')
        return headers.get('authorization') === 'Bearer own' || headers.get('cookie') === 's=1' ? { id: 'u1' } : null
      },
    })
    expect(await access.identify(bearer(secret))).toMatchObject({ key: 'ci' })
    expect(calls).toEqual([])
    expect(await access.identify(bearer('own'))).toEqual({ id: 'u1', roles: ['user'] })
    expect(await access.identify(asked({ cookie: 's=1' }))).toEqual({ id: 'u1', roles: ['user'] })
    expect(await access.identify(asked())).toMatchObject({ id: expect.stringMatching(/^anonymous:/u) as string })
    expect(calls).toEqual(['Bearer own', 's=1', 'nothing'])
    // A credential that does not count makes nobody anonymous, and ours is never the application's.
    await expect(access.identify(bearer('wrong'))).rejects.toMatchObject({ status: 401 })
    expect(() => access.identify(bearer('mr_wrong'))).toThrow(expect.objectContaining({ status: 401 }))
  })
})

describe('the application', () => {
  test('a function that throws or is late is a 503, whose cause is in the report only', async () => {
    let answer = (): Promise<null> => Promise.reject(new Error('database secret-host is down'))
    const { access, reported, rings } = await accessOf({ authenticate: () => answer() })
    const error = await Promise.resolve(access.identify(asked())).catch((refused: Error) => refused)
    expect(error).toMatchObject({ code: 'access-unavailable', status: 503 })
    expect((error as Error).message).not.toContain('secret-host')
    expect(String(reported[0])).toContain('database secret-host is down')
    expect(rings).toEqual([])
    answer = () => new Promise(() => undefined)
    const late = Promise.resolve(access.identify(asked())).catch((refused: Error) => refused)
    await expect.poll(() => rings.map(({ ms }) => ms)).toEqual([5000])
    rings[0]!.ring()
    expect(await late).toMatchObject({ code: 'access-unavailable' })
    expect(String(reported[1])).toContain('5000 ms')
  })

  test.each([
    ['an empty id', { id: '' }],
    ['a long id', { id: 'x'.repeat(257) }],
    ['the id of a key', { id: 'key:ci' }],
    ['the id of a browser', { id: 'anonymous:1' }],
    ['a number for an id', { id: 7 }],
    ['an empty tenant', { id: 'u', tenant: '' }],
    ['half a surrogate pair as an id', { id: '\uD800' }],
    ['half a surrogate pair as a tenant', { id: 'u', tenant: '\uD800' }],
    ['an unknown role', { id: 'u', roles: ['root'] }],
    ['a role that is no list', { id: 'u', roles: 'admin' }],
    ['a claim that is an object', { id: 'u', claims: { plan: {} } }],
    ['a text', 'u1'],
  ])('%s is a 503 and a report, never a principal', async (_, given) => {
    const { access, reported } = await accessOf({ claims: ['plan'], authenticate: () => given as never })
    await expect(access.identify(asked())).rejects.toMatchObject({ status: 503 })
    expect(reported).toHaveLength(1)
  })

  test('true is an admin without an id, false is refused', async () => {
    let answer: boolean = true
    const { access } = await accessOf({ authenticate: () => answer })
    expect(await access.identify(asked())).toEqual({ id: '', roles: ['admin'] })
    answer = false
    await expect(access.identify(asked())).rejects.toMatchObject({ code: 'forbidden', status: 403 })
  })

  test('it is asked once for each request, unless it says for how long its answer counts', async () => {
    let calls = 0
    let cacheSeconds: number | undefined
    const { access, clock } = await accessOf({
      authenticate: ({ headers }) => {
        calls++
        return { id: headers.get('x-user') ?? 'nobody', ...(cacheSeconds !== undefined && { cacheSeconds }) }
      },
    })
    const ask = async (user: string) => (await access.identify(asked({ 'x-user': user }))).id
    await ask('a')
    await ask('a')
    expect(calls).toBe(2)
    cacheSeconds = 10
    expect([await ask('a'), await ask('a'), await ask('b')]).toEqual(['a', 'a', 'b'])
    expect(calls).toBe(4)
    clock.now += 10_000
    await ask('a')
    expect(calls).toBe(5)
  })

  test('an answer that counts for a while counts for the same query only: a token may be in it', async () => {
    const { access } = await accessOf({
      authenticate({ url }) {
        const id = new URL(url).searchParams.get('token')
        return id === null ? null : { id, cacheSeconds: 10 }
      },
    })
    const ask = async (path: string) => access.identify(asked({}, 'GET', path))
    expect(await ask('/api/live?token=ann')).toMatchObject({ id: 'ann' })
    expect(await ask('/api/events?token=bob')).toMatchObject({ id: 'bob' })
    await expect(ask('/api/live')).rejects.toMatchObject({ status: 401 })
  })

  test('only the claims that the config lists reach agents', async () => {
    const { access } = await accessOf({
      claims: ['plan'],
      authenticate: () => ({ id: 'u', claims: { plan: 'pro', email: 'a@b.example' } }),
    })
    expect(await access.identify(asked())).toEqual({ id: 'u', roles: ['user'], claims: { plan: 'pro' } })
  })
})

describe('browsers without a name', () => {
  test('each is a user of its own, by a sealed cookie that scripts and other sites do not get', async () => {
    const { access } = await accessOf({ anonymous: 'user' })
    const first = asked()
    const principal = await access.identify(first)
    expect(principal).toEqual({ id: expect.stringMatching(/^anonymous:[\w-]{36}$/u) as string, roles: ['user'] })
    const [set] = first.cookies
    expect(set).toMatch(/^__Host-millrace_visitor=\S+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/u)
    expect(set).not.toContain(principal.id.slice(10))
    const second = asked({ cookie: `other=1; ${cookieIn(set!)}` })
    expect(await access.identify(second)).toEqual(principal)
    expect(second.cookies).toEqual([])
    expect((await access.identify(asked())).id).not.toBe(principal.id)
    const forged = asked({ cookie: `${cookieIn(set!)}A` })
    expect((await access.identify(forged)).id).not.toBe(principal.id)
  })

  test('a page of another site cannot use the cookie, and neither can a request that does not say where it is from', async () => {
    const { access } = await accessOf({ anonymous: 'user' }, { allowedOrigins: new Set(['https://friend.example']) })
    const first = asked()
    await access.identify(first)
    const cookie = cookieIn(first.cookies[0]!)
    const post = async (headers: Record<string, string>) => access.identify(asked({ cookie, ...headers }, 'POST'))
    await expect(post({ origin: 'https://evil.example' })).rejects.toMatchObject({ status: 403 })
    await expect(post({ 'sec-fetch-site': 'cross-site' })).rejects.toMatchObject({ status: 403 })
    await expect(post({ 'sec-fetch-site': 'same-site' })).rejects.toMatchObject({ status: 403 })
    await expect(post({})).rejects.toMatchObject({ status: 403 })
    const own: Record<string, string>[] = [
      { origin: 'https://app.example' },
      { 'sec-fetch-site': 'same-origin' },
      { origin: 'https://friend.example' },
    ]
    for (const headers of own) expect(await post(headers)).toMatchObject({ roles: ['user'] })
  })

  test('on this machine the cookie is not Secure; a month later it is renewed, and after two it is a new browser', async () => {
    const { access, clock } = await accessOf({ anonymous: 'user' })
    const local = (cookie?: string) => asked({ host: 'localhost:3000', ...(cookie !== undefined && { cookie }) })
    const first = local()
    const { id } = await access.identify(first)
    expect(first.cookies[0]).toMatch(/^millrace_visitor=[^;]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/u)
    clock.now += 30 * 86_400_000
    const later = local(cookieIn(first.cookies[0]!))
    expect((await access.identify(later)).id).toBe(id)
    expect(later.cookies).toHaveLength(1)
    clock.now += 30 * 86_400_000
    expect((await access.identify(local(cookieIn(first.cookies[0]!)))).id).not.toBe(id)
    expect((await access.identify(local(cookieIn(later.cookies[0]!)))).id).toBe(id)
  })
})

describe('open streams', () => {
  test('they end once when their key is revoked', async () => {
    const { access, log } = await accessOf({})
    const stored = await addKey(log, { name: 'ci', role: 'user' }, { now: 0 })
    await expect
      .poll(() =>
        Promise.resolve()
          .then(() => access.identify(bearer(stored)))
          .catch(() => 0),
      )
      .toMatchObject({ key: 'ci' })
    const principal = await access.identify(bearer(stored))
    const ended: string[] = []
    access.onExpired(principal, () => ended.push('left'))()
    access.onExpired(principal, ({ code }) => ended.push(code))
    await revokeKey(log, 'ci', { now: 0 })
    await expect.poll(() => ended).toEqual(['unauthorized'])
  })

  test('they end when their principal does, and not before', async () => {
    const { access, clock, rings } = await accessOf({ authenticate: () => ({ id: 'u', expiresAt: 5000 }) })
    const ended: string[] = []
    access.onExpired(await access.identify(asked()), ({ code }) => ended.push(code))
    const [timer] = rings.splice(0)
    expect(timer!.ms).toBe(4000)
    timer!.ring()
    expect(ended).toEqual([])
    clock.now = 5000
    rings[0]!.ring()
    expect(ended).toEqual(['unauthorized'])
  })
})

describe('keys of the config', () => {
  test.each([
    [
      [{ name: 'ci', env: 'CI_KYE' }],
      'server.access.keys[0].env: the variable CI_KYE is not set (did you mean "CI_KEY"?).',
    ],
    [[{ name: 'ci', env: 'SHORT' }], 'server.access.keys[0].env: the key in SHORT must have at least 32 characters.'],
    [
      [
        { name: 'ci', env: 'CI_KEY' },
        { name: 'ci', env: 'OTHER' },
      ],
      'server.access.keys[1].name: there is another key "ci".',
    ],
    [
      [
        { name: 'a', env: 'CI_KEY' },
        { name: 'b', env: 'SAME' },
      ],
      'server.access.keys[1].env: another key has the same secret as SAME.',
    ],
    [[{ name: 'a', env: 'CI_KEY', expires: 'soon' }], 'server.access.keys[0].expires: write a day'],
  ])('%o is refused at start', async (keys, message) => {
    const environment = { CI_KEY: secret, SHORT: 'x'.repeat(31), OTHER: 'y'.repeat(32), SAME: secret }
    await expect(accessOf({ keys }, { environment })).rejects.toThrow(message)
  })
})
