/** Sign-in, tokens and `millrace login` against a real OpenID provider. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readCredential } from '../../src/cli/login/credentials.ts'
import { logIn } from '../../src/cli/login/login.ts'
import { storedAccess } from '../../src/cli/login/stored-access.ts'
import { createJwtCheck, type JwtCheck } from '../../src/server/access/jwt.ts'
import { createLogin, type Login } from '../../src/server/access/login.ts'
import { createCookieSeal } from '../../src/server/access/cookie-seal.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { folder, ran, serving } from '../support/cli.ts'
import { createContext } from '../support/command-context.ts'
import { createBrowser, openProvider, type OpenIdProvider } from '../support/oidc-provider.ts'

let provider: OpenIdProvider
let site: string
let login: Login
let check: JwtCheck
let skew = 0
const now = () => Date.now() + skew
const reports: string[] = []
const report = (error: unknown) => void reports.push((error as Error).message)
const names = { tenant: 'org', roles: 'roles' }
const ann = { id: 'ann', tenant: 'acme', roles: ['operator'], name: 'Ann Other', expiresAt: expect.any(Number) }
/** What a person types at the provider. */
const person = { login: 'ann', password: 'any' }

/** The routes that the server has for these ways to sign in. */
const server = createServer((request, response) => {
  void answer(new Request(new URL(request.url!, site), { headers: request.headers as never, method: request.method! }))
    .catch((error: unknown) => {
      const { status = 500 } = error as { status?: number }
      return Response.json({ message: (error as Error).message }, { status })
    })
    .then(async (found) => {
      for (const [name, value] of found.headers) if (name !== 'set-cookie') response.setHeader(name, value)
      response.setHeader('set-cookie', found.headers.getSetCookie())
      response.writeHead(found.status).end(await found.text())
    })
})

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname === '/auth/ways') return Response.json({ oidc: login.issuer })
  const signIn = login.signIn(request, pathname)
  if (signIn !== undefined) return signIn
  const token = request.headers.get('authorization')?.slice(7)
  const found = token === undefined ? await login.identify(request.headers) : await check.identify(token)
  return found === undefined ? new Response(null, { status: 401 }) : Response.json(found)
}

beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  provider = await openProvider(() => [`${site}/auth/callback`])
  const config = { issuer: provider.url, clientId: 'page', ...names }
  const seal = createCookieSeal(memoryStore().log, 'session', now)
  login = createLogin(config, { seal, now, report })
  check = createJwtCheck(login.tokens, { now, report })
})

afterAll(async () => {
  await provider.stop()
  server.close().closeAllConnections()
})

/** `millrace login` with a person who signs in when the command waits. */
async function signedInByDevice(configFolder: string, url = site) {
  let shown = ''
  const stderr = new Writable({
    write(chunk: Buffer, _, done) {
      shown += chunk.toString()
      done()
    },
  })
  const context = createContext({ stderr, env: { XDG_CONFIG_HOME: configFolder } })
  const browser = createBrowser()
  let waits = 0
  const wait = async () => {
    // The first time the person has not been there yet.
    if (++waits !== 2) return
    await browser.submitAll(/Sign in at (\S+)/u.exec(shown)![1]!, person)
  }
  await logIn(context, { server: url }, { wait })
  const credential = readCredential(context, url)
  if (credential?.type !== 'token') throw new Error('no token')
  return { context, credential, shown, waits }
}

describe('a real OpenID provider', () => {
  test('someone signs in to the page by the code flow, and out', async () => {
    const browser = createBrowser()
    expect((await browser.request(`${site}/whoami`)).status).toBe(401)
    const { at, text } = await browser.submitAll(`${site}/auth/login?return=/whoami`, person)
    expect([at, JSON.parse(text)]).toEqual([`${site}/whoami`, ann])
    // Nobody else has the session, and its way in cannot be used twice.
    expect((await createBrowser().request(`${site}/whoami`)).status).toBe(401)
    const cookie = browser.cookieHeader(site)
    expect(cookie).not.toContain('millrace_sign_in')
    expect((await fetch(`${site}/auth/logout`, { method: 'POST', headers: { cookie } })).status).toBe(403)
    expect((await browser.request(`${site}/auth/logout`, new URLSearchParams())).status).toBe(204)
    expect((await browser.request(`${site}/whoami`)).status).toBe(401)
    expect(reports).toEqual([])
  })

  test('a callback that is sent twice signs in once', async () => {
    const browser = createBrowser()
    const stopped = await browser.submitAll(`${site}/auth/login`, person, `${site}/auth/callback`)
    const cookie = browser.cookieHeader(site)
    const first = await fetch(stopped.at, { redirect: 'manual', headers: { cookie } })
    const second = await fetch(stopped.at, { redirect: 'manual', headers: { cookie } })
    expect([first.status, second.status]).toEqual([303, 400])
    expect(reports.splice(0)).toEqual([expect.stringContaining('invalid_grant')])
  })

  test('millrace login uses the device flow, and its token counts', async () => {
    const { credential, shown, waits } = await signedInByDevice(folder())
    expect(waits).toBeGreaterThanOrEqual(2)
    expect(shown).toContain(`signed in to ${site}`)
    expect(shown).not.toContain(credential.token)
    expect(await check.identify(credential.token)).toEqual(ann)
    expect(credential.expiresAt).toBe((await check.identify(credential.token)).expiresAt)
  })

  test('a token that has ended is renewed, and once the issuer refuses, the command says what to do', async () => {
    const { context, credential } = await signedInByDevice(folder())
    expect(credential.refreshToken).toEqual(expect.any(String))
    const before = await storedAccess(context, site)
    expect(before?.key).toBe(credential.token)
    // The clocks of the provider and of this process agree, so only the command believes that the token has ended.
    const after = await storedAccess(context, site, () => credential.expiresAt)
    const kept = readCredential(context, site)
    expect(kept).toMatchObject({ token: after!.key, refreshToken: expect.any(String) })
    // Within a second, the next token has the same text. The one that gets it is new each time.
    expect(kept).not.toEqual(credential)
    await provider.stop()
    await provider.start()
    // It has forgotten all that it had issued.
    const ended = storedAccess(context, site, () => credential.expiresAt)
    await expect(ended).rejects.toThrow(`Your sign-in to ${site} has ended. Run: millrace login --server ${site}`)
  })

  test('tokens count while the issuer restarts, and those of its new key after it', async () => {
    const [first, second] = [await signedInByDevice(folder()), await signedInByDevice(folder())]
    await check.identify(first.credential.token)
    await provider.stop()
    expect(await check.identify(second.credential.token)).toEqual(ann)
    provider.keys = [await provider.newKey('second', 'RS256')]
    await provider.start()
    // `millrace login` asks the server, which has to fetch the new key.
    skew += 61_000
    const third = await signedInByDevice(folder())
    expect(await check.identify(third.credential.token)).toEqual(ann)
    skew = 0
  })

  test('a server with the config does all of it', async () => {
    const config = `export default { server: { access: { login: { issuer: '${provider.url}', clientId: 'page', tenant: 'org', roles: 'roles' } } } }`
    const agent = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]'
    const cwd = folder({ 'agents/a.yaml': agent, 'agents/millrace.config.mjs': config })
    const { url } = await serving([], { cwd })
    expect((await fetch(`${url}/api/runs`)).status).toBe(401)
    const browser = createBrowser()
    const { at, text } = await browser.submitAll(`${url}/auth/login?return=/api/runs`, person)
    expect([at, JSON.parse(text)]).toEqual([`${url}/api/runs`, expect.objectContaining({ runs: [] })])
    const start = { agentId: 'a', messages: [{ role: 'user', content: 'Hi' }] }
    const post = (headers: Record<string, string>) =>
      fetch(`${url}/api/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', cookie: browser.cookieHeader(url), ...headers },
        body: JSON.stringify(start),
      })
    expect((await post({ origin: 'https://evil.example' })).status).toBe(403)
    expect((await post({})).status).toBe(403)
    const response = await post({ origin: url })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('text-delta')])

    const { context } = await signedInByDevice(join(cwd, 'config'), url)
    const env = { XDG_CONFIG_HOME: join(cwd, 'config') }
    const { code, out } = await ran(['ps', '--url', url, '--json'], { cwd, env })
    expect([code, JSON.parse(out)]).toEqual([0, [expect.objectContaining({ agent: 'a' })]])
    expect(readCredential(context, url)).toMatchObject({ type: 'token' })
  })
})
