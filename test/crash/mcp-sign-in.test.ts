/**
 * A person signs in to an MCP server for a run, and the process is killed (SIGKILL): when the link is open, while the code is exchanged, when the run
 * has gone on. The person finishes or begins again, nobody else gets anything, and the run goes on. On Redis another server takes over.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openAuthorizationServer } from '../../src/tools/mcp/auth/testing/authorization-server.ts'
import { openProtectedServer } from '../../src/tools/mcp/auth/testing/protected-server.ts'
import { createBrowser } from '../support/oidc-provider.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'

const agents = {
  step: `recover: true
workflow:
  - { id: who, type: mcp-tool, config: { server: drive, tool: whoami }, result: who }
`,
  chat: `recover: true
workflow:
  - id: answer
    type: llm
    config: { model: "demo:assistant", stream: true, messages: "$input.messages", tools: [{ mcp: drive }] }
`,
}

interface View {
  status: string
  output?: unknown
  requests?: { requestId: string; reason: string; metadata: { url: string } }[]
}

/** Servers of which one is killed and another one goes on. `flags`: of a shared store, where that one stands by. */
async function start(flags: readonly string[]) {
  const issuer = await openAuthorizationServer()
  onTestFinished(() => issuer.close())
  const drive = await openProtectedServer(issuer.url)
  onTestFinished(() => drive.close())
  const shared = flags.length > 0
  const dir = mkdtempSync(join(tmpdir(), 'millrace-sign-in-kill-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  mkdirSync(join(dir, 'agents'))
  for (const [id, yaml] of Object.entries(agents)) writeFileSync(join(dir, 'agents', `${id}.yaml`), yaml)
  writeFileSync(
    join(dir, 'agents', 'millrace.config.mjs'),
    `export default {
  mcpServers: { drive: { url: '${drive.url}', auth: { person: true, scope: 'files' } } },
  server: { access: { authenticate: ({ headers }) => (headers.has('x-user') ? { id: headers.get('x-user'), roles: ['user'] } : null) } },
}\n`,
  )
  let started = 0
  const open = async () => {
    const server = await spawnServer(join(dir, 'agents'), join(dir, shared ? `data${started++}` : 'data'), ...flags)
    onTestFinished(() => server.kill())
    return server
  }
  let server: ServerProcess = await open()
  const ask = (user: string, path: string, body?: object, at = server.url) =>
    fetch(at + path, {
      redirect: 'manual',
      headers: { 'x-user': user, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
  const view = async (user: string, run: string) => (await (await ask(user, `/api/runs/${run}`)).json()) as View
  const reaches = (user: string, run: string, status: string) =>
    vi.waitFor(
      async () => {
        const found = await view(user, run)
        expect(found.status).toBe(status)
        return found
      },
      { timeout: 30_000, interval: 20 },
    )
  return {
    issuer,
    drive,
    ask,
    reaches,
    async kill() {
      const next = shared ? await open() : undefined
      await server.kill()
      server = next ?? (await open())
    },
    /** Resolves with the run and the link of what it asks. */
    async begins(user: string, agentId: string): Promise<{ run: string; link: string }> {
      const input = { messages: [{ role: 'user', content: 'Hi' }] }
      const { id } = (await (await ask(user, '/api/runs', { agentId, input })).json()) as { id: string }
      const { requests } = await reaches(user, id, 'suspended')
      expect(requests![0]!.reason).toBe('mcp-sign-in')
      return { run: id, link: requests![0]!.metadata.url }
    },
    /** Opens a link and signs in: where the browser comes back to, and its cookie. */
    async visits(user: string, link: string): Promise<{ back: URL; cookie: string }> {
      const begun = await ask(user, link)
      expect(begun.status).toBe(303)
      const until = `${server.url}/mcp/connect/callback`
      const { at } = await createBrowser().submitAll(
        begun.headers.get('location')!,
        { login: user, password: 'x' },
        until,
      )
      return { back: new URL(at), cookie: begun.headers.getSetCookie()[0]!.split(';')[0]! }
    },
    /** The servers have one address, behind which each in turn has another port here. */
    comesBack: ({ back, cookie = '' }: { back: URL; cookie?: string }) =>
      fetch(server.url + back.pathname + back.search, { headers: { cookie } }),
  }
}

type Run = Awaited<ReturnType<typeof start>>
type Begun = Awaited<ReturnType<Run['begins']>>
type Away = Awaited<ReturnType<Run['visits']>>

/** `more`: what happens before she comes back. */
async function story(flags: readonly string[], more?: (run: Run, away: Away, begun: Begun) => Promise<Away>) {
  const run = await start(flags)
  const { issuer, drive, ask, begins, visits, comesBack, reaches, kill } = run
  const [first, second, bobs] = [await begins('ann', 'chat'), await begins('ann', 'step'), await begins('bob', 'step')]
  const grants = () => issuer.grants.filter((each) => each.get('grant_type') === 'authorization_code').length

  // The link is open, and the server dies. The next one takes her back, and nobody else.
  const away = await visits('ann', first.link)
  await kill()
  expect((await ask('bob', first.link)).status).toBe(404)
  expect((await comesBack({ back: away.back })).status).toBe(400)
  const { cookie } = await visits('bob', bobs.link)
  expect((await comesBack({ back: away.back, cookie })).status).toBe(400)
  expect(grants()).toBe(0)

  const then = more === undefined ? away : await more(run, away, first)

  // She is back, and the run is about to list the tools, when the server dies again.
  const hold = Promise.withResolvers<void>()
  drive.hold = hold.promise
  drive.calls.length = 0
  expect((await comesBack(then)).status).toBe(200)
  const called = () => drive.calls.filter(({ token }) => token !== undefined)
  await vi.waitFor(() => expect(called().length).toBeGreaterThan(0))
  await kill()
  drive.hold = undefined
  hold.resolve()
  await reaches('ann', first.run, 'completed')
  expect(called().map(({ method }) => method)).toContain('tools/list')

  // She has signed in, and the other run still asks: its link answers at once.
  const before = grants()
  expect((await ask('bob', second.link)).status).toBe(404)
  const known = await ask('ann', second.link)
  expect([known.status, await known.text()]).toEqual([200, expect.stringContaining('You are signed in')])
  expect((await reaches('ann', second.run, 'completed')).output).toEqual({ who: expect.stringMatching(/ ann$/u) })
  expect(grants()).toBe(before)
  await reaches('bob', bobs.run, 'suspended')
}

/** The server dies while the code is exchanged. A code counts once, so she begins again. */
async function exchangeDies({ issuer, comesBack, kill, reaches, visits }: Run, away: Away, begun: Begun) {
  const asked = Promise.withResolvers<void>()
  issuer.intercept = () => {
    asked.resolve()
    return new Promise(() => {})
  }
  const cut = comesBack(away).catch(() => 'cut')
  await asked.promise
  await kill()
  expect(await cut).toBe('cut')
  issuer.intercept = async () => ({ status: 400, body: { error: 'invalid_grant' } })
  expect((await comesBack(away)).status).toBe(400)
  issuer.intercept = undefined
  await reaches('ann', begun.run, 'suspended')
  return visits('ann', begun.link)
}

test('SQLite: the process dies at each step of a sign-in', () => story([], exchangeDies))

describeRedis('Redis', (redis) => {
  test('the process dies around a sign-in, and another takes over', () =>
    story(['--store', `${redis().url}?prefix=${freshPrefix()}`]))
})
