/** The page's sign-in among the ways of `createAccess`. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openIssuer, type TestIssuer } from '../../../test/support/issuer.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { AccessConfig } from '../../project/config.ts'
import { createAccess } from './create-access.ts'
import { createJwtCheck } from './jwt.ts'

const site = 'https://agents.example'
const now = () => Date.UTC(2026, 10, 28)
let issuer: TestIssuer

beforeEach(async () => void (issuer = await openIssuer()))
afterEach(() => issuer.close())

const accessOf = (config: AccessConfig) =>
  createAccess({ config, environment: {}, log: memoryStore().log, now, report: () => undefined })

type Opened = Awaited<ReturnType<typeof accessOf>>

function asked(given: Record<string, string>, method = 'GET') {
  const headers = new Headers({ host: 'agents.example', ...given })
  return { method, headers, request: () => new Request(site, { method, headers }), setCookie: () => undefined }
}

async function sessionOf(access: Opened, claims = {}): Promise<string> {
  const visit = (url: string, cookie = '') =>
    access.signIn!(new Request(url, { headers: { host: 'agents.example', cookie } }), new URL(url).pathname)!
  const kept = (response: Response) => response.headers.getSetCookie().map((each) => each.split(';')[0]!)
  const begun = await visit(`${site}/auth/login`)
  const back = issuer.authorize(begun.headers.get('location')!, now(), claims)
  return kept(await visit(back, kept(begun).join('; '))).find((each) => each.includes('millrace_session'))!
}

describe('createAccess with a sign-in', () => {
  test('a session counts for pages of the server only', async () => {
    const access = await accessOf({ login: { issuer: issuer.url, clientId: 'page' } })
    const cookie = await sessionOf(access)
    const ann = { id: 'u1', roles: ['user'] }
    expect(await access.identify(asked({ cookie }))).toMatchObject(ann)
    expect(await access.identify(asked({ cookie, origin: site }, 'POST'))).toMatchObject(ann)
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      {},
      { 'sec-fetch-site': 'same-site' },
    ]
    for (const headers of foreign) {
      const request = asked({ cookie, ...headers }, 'POST')
      await expect(async () => access.identify(request)).rejects.toMatchObject({ code: 'forbidden' })
    }
    expect([access.ways.login, access.readsCookies]).toEqual([true, true])
    access.close()
  })

  test('it comes before the application and visitors; without it, they are asked', async () => {
    const access = await accessOf({
      login: { issuer: issuer.url, clientId: 'page' },
      authenticate: ({ headers }) => (headers.has('x-app') ? { id: 'app' } : null),
      anonymous: 'user',
    })
    const cookie = await sessionOf(access)
    expect(await access.identify(asked({ cookie, 'x-app': '1' }))).toMatchObject({ id: 'u1' })
    expect(await access.identify(asked({ 'x-app': '1' }))).toMatchObject({ id: 'app' })
    expect(await access.identify(asked({ cookie: `${cookie}x` }))).toMatchObject({
      id: expect.stringMatching(/^anon/u),
    })
    access.close()
  })

  test('tokens of the issuer for its client count without `jwt`, and others do not', async () => {
    const access = await accessOf({ login: { issuer: issuer.url, clientId: 'page' } })
    const bearer = (token: string) => asked({ authorization: `Bearer ${token}` })
    const token = await issuer.token(now(), { aud: 'page' })
    expect(await access.identify(bearer(token))).toMatchObject({ id: 'u1' })
    const other = bearer(await issuer.token(now(), { aud: 'other' }))
    await expect(async () => access.identify(other)).rejects.toMatchObject({ code: 'unauthorized' })
    access.close()
  })

  test('claims have the names of `jwt` for the same issuer, and no way leads around a missing tenant', async () => {
    const jwt = { issuer: issuer.url, audience: 'page', tenant: 'org', roles: 'roles' }
    const access = await accessOf({ jwt, login: { issuer: issuer.url, clientId: 'page' } })
    const cookie = await sessionOf(access, { org: 'acme', roles: ['operator'] })
    const ann = { id: 'u1', tenant: 'acme', roles: ['operator'] }
    expect(await access.identify(asked({ cookie }))).toMatchObject(ann)
    const bearer = async (claims: object) =>
      access.identify(asked({ authorization: `Bearer ${await issuer.token(now(), { aud: 'page', ...claims })}` }))
    expect(await bearer({ org: 'acme', roles: 'operator' })).toMatchObject(ann)
    await expect(bearer({ roles: 'admin' })).rejects.toMatchObject({ code: 'unauthorized' })
    access.close()
    const loose = { ...jwt, tenant: undefined }
    const both = createJwtCheck([jwt, loose], { now, report: () => undefined })
    const token = await issuer.token(now(), { aud: 'page', roles: 'admin' })
    await expect(async () => both.identify(token)).rejects.toMatchObject({ code: 'unauthorized' })
  })

  test('without `login` there is no sign-in', async () => {
    const access = await accessOf({ jwt: { issuer: issuer.url, audience: 'millrace' } })
    expect([access.signIn, access.ways.login]).toEqual([undefined, false])
    access.close()
  })
})
