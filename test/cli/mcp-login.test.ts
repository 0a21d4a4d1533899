/** `millrace mcp login`: with a real authorization server and a real MCP server. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openAuthorizationServer } from '../../src/tools/mcp/auth/testing/authorization-server.ts'
import { openProtectedServer } from '../../src/tools/mcp/auth/testing/protected-server.ts'
import { folder, millrace, ran, serving } from '../support/cli.ts'
import { createBrowser } from '../support/oidc-provider.ts'
import { onTerminal } from '../support/terminal.ts'

const step = 'workflow: [{ id: who, type: mcp-tool, config: { server: drive, tool: whoami }, result: who }]'

async function project({ clientId = '' } = {}) {
  const issuer = await openAuthorizationServer()
  onTestFinished(() => issuer.close())
  const drive = await openProtectedServer(issuer.url)
  onTestFinished(() => drive.close())
  const client = clientId === '' ? '' : `, clientId: '${clientId}'`
  const auth = `{ person: true, scope: 'files'${client} }`
  const config = `export default { mcpServers: { drive: { url: '${drive.url}', auth: ${auth} } } }`
  const cwd = folder({ 'agents/a.yaml': step, 'agents/millrace.config.mjs': config })
  return { issuer, drive, cwd }
}

test('somebody signs in on a terminal; runs of the data folder then use the server, until they sign out', async () => {
  const { issuer, drive, cwd } = await project({ clientId: 'page' })
  const login = millrace(['mcp', 'login', 'drive'], { cwd })
  await login.until('Sign in at ')
  const [, address] = /Sign in at (\S+)/u.exec(login.err)!
  const redirectUri = new URL(address!).searchParams.get('redirect_uri')!
  // Whoever asks without the state of this sign-in changes nothing.
  expect((await fetch(`${redirectUri}?code=x&state=y`)).status).toBe(404)
  const { text } = await createBrowser().submitAll(address!, { login: 'ann', password: 'any' })
  expect(text).toContain('You are signed in')
  expect(await login.exit).toBe(0)
  expect(login.err).toContain('signed in to drive')

  const used = await ran(['run', 'a', '-m', 'Hi'], { cwd })
  expect(used.err).not.toContain('millrace:')
  expect([used.code, used.out]).toEqual([0, expect.stringContaining('page ann')])
  const { token } = drive.calls.findLast((call) => call.token !== undefined)!
  const files = readdirSync(join(cwd, '.millrace'), { recursive: true, withFileTypes: true })
  const bytes = files.flatMap((file) =>
    file.isFile() ? [readFileSync(join(file.parentPath, file.name), 'latin1')] : [],
  )
  expect(bytes.some((each) => each.includes(token!.slice(-40)))).toBe(false)

  issuer.interceptRevocation = async () => ({
    status: 400,
    body: { error: 'unsupported', error_description: 'At lunch.' },
  })
  const out = await ran(['mcp', 'logout', 'drive'], { cwd })
  expect(out.code).toBe(0)
  expect(out.err).toContain('signed out of drive')
  expect(out.err).toContain('did not revoke them: it answered unsupported (At lunch.).')
  expect(issuer.revocations[0]!.get('token_type_hint')).toBe('refresh_token')
  expect((await ran(['mcp', 'logout', 'drive'], { cwd })).err).toContain('not signed in to drive')
})

test('a run on a terminal says where to sign in: with a server its address, without one a command', async () => {
  const { cwd } = await project()
  const alone = onTerminal(['run', 'a', '-m', 'Hi'], { cwd, columns: 400 })
  await alone.until('run millrace mcp login drive in another terminal')
  alone.type('no\r')
  expect(await alone.exit).toBe(1)
  const { url } = await serving([], { cwd })
  const asked = onTerminal(['run', 'a', '-m', 'Hi'], { cwd, columns: 400 })
  await asked.until('Press Enter')
  const [, link] = /open (http\S+)\. Press Enter/u.exec(asked.shown)!
  expect(link).toMatch(new RegExp(`^${url}/mcp/connect/run_`, 'u'))
  const begun = await fetch(link!, { redirect: 'manual' })
  const until = `${url}/mcp/connect/callback`
  const { at } = await createBrowser().submitAll(
    begun.headers.get('location')!,
    { login: 'ann', password: 'any' },
    until,
  )
  const cookie = begun.headers.getSetCookie().map((each) => each.split(';')[0]!)
  expect((await fetch(at, { headers: { cookie: cookie.join('; ') } })).status).toBe(200)
  // It goes on by itself.
  expect(await asked.exit).toBe(0)
  expect(asked.shown).toContain(' ann')
})

test('somebody who declines, and names that are none', async () => {
  const { issuer, cwd } = await project()
  const login = millrace(['mcp', 'login', 'drive'], { cwd })
  await login.until('Sign in at ')
  const { searchParams } = new URL(/Sign in at (\S+)/u.exec(login.err)![1]!)
  const query = { error: 'access_denied', state: searchParams.get('state')!, iss: issuer.url }
  await fetch(`${searchParams.get('redirect_uri')!}?${new URLSearchParams(query)}`)
  expect(await login.exit).toBe(1)
  expect(login.err).toContain('was declined')
  const wrong = await ran(['mcp', 'login', 'drvie'], { cwd })
  expect(wrong.err).toContain('did you mean "drive"')
  expect((await ran(['mcp', 'login'], { cwd })).err).toContain('Which server?')
  expect((await ran(['mcp', 'logon', 'drive'], { cwd })).err).toContain('login')
})
