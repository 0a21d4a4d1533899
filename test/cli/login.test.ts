/** `millrace login` with a key, and what the other commands do with it. The device flow is in test/server/openid.all.test.ts. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'
import { onTerminal } from '../support/terminal.ts'

const key = 'mr_a-key-of-somebody-for-a-server'

/** A server that knows one key, and may have a sign-in. */
async function keyServer(login?: object) {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization)
    const isOpen = request.url === '/auth/ways'
    const isKnown = request.headers.authorization === `Bearer ${key}`
    response.writeHead(isOpen || isKnown ? 200 : 401, { 'content-type': 'application/json' })
    response.end(
      isOpen
        ? JSON.stringify({ oidc: login })
        : isKnown
          ? '{"runs":[],"agents":[]}'
          : '{"error":{"code":"unauthorized"}}',
    )
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close().closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

function setUp() {
  const cwd = folder()
  return { cwd, env: { XDG_CONFIG_HOME: join(cwd, 'config') }, file: join(cwd, 'config/millrace/credentials.json') }
}

describe('millrace login', () => {
  test('keeps a key from stdin, which other commands then send to this server, until millrace logout', async () => {
    const [server, other, { cwd, env, file }] = [await keyServer(), await keyServer(), setUp()]
    const kept = await ran(['login', '--server', `${server.url}/`], { cwd, env, input: `${key}\nmore\n` })
    expect(kept).toEqual({ code: 0, out: '', err: `signed in to ${server.url}\n` })
    expect([statSync(file).mode & 0o777, statSync(join(file, '..')).mode & 0o777]).toEqual([0o600, 0o700])
    expect(await ran(['ps', '--url', server.url, '--json'], { cwd, env })).toMatchObject({ code: 0 })
    expect(server.seen.at(-1)).toBe(`Bearer ${key}`)

    const elsewhere = await ran(['ps', '--url', other.url], { cwd, env })
    expect(other.seen).toEqual([undefined])
    expect(elsewhere.err).toContain(
      `requires a key: set MILLRACE_API_KEY, or run: millrace login --server ${other.url}`,
    )

    expect(await ran(['logout'], { cwd, env })).toEqual({ code: 0, out: '', err: `signed out of ${server.url}\n` })
    expect(existsSync(file)).toBe(false)
    expect(await ran(['ps', '--url', server.url], { cwd, env })).toMatchObject({ code: 1 })
    expect(server.seen.at(-1)).toBeUndefined()
    expect(await ran(['logout'], { cwd, env })).toMatchObject({ code: 0, err: 'signed in nowhere\n' })
  })

  test('an issuer without https is not asked, because anybody could answer', async () => {
    const server = await keyServer({ issuer: 'http://id.example', clientId: 'page' })
    const { cwd, env } = setUp()
    const { code, err } = await ran(['login', '--server', server.url], { cwd, env, input: key })
    const why = 'The sign-in with http://id.example failed: only requests to HTTPS are allowed.'
    expect([code, err]).toEqual([1, `millrace: ${why}\n`])
    expect(await ran(['login', '--server', server.url, '--key'], { cwd, env, input: key })).toMatchObject({ code: 0 })
  })

  test('MILLRACE_API_KEY comes first, and login says so', async () => {
    const [server, { cwd, env }] = [await keyServer(), setUp()]
    const own = { ...env, MILLRACE_API_KEY: 'another-key-of-this-machine' }
    const { err } = await ran(['login', '--server', server.url], { cwd, env: own, input: key })
    expect(err).toContain('MILLRACE_API_KEY is set')
    const refused = await ran(['ps', '--url', server.url], { cwd, env: own })
    expect(refused.err).toContain('rejects the key in MILLRACE_API_KEY')
    expect(server.seen.at(-1)).toBe('Bearer another-key-of-this-machine')
  })

  test('a terminal does not show the key', async () => {
    const [server, { cwd, env, file }] = [await keyServer(), setUp()]
    const command = onTerminal(['login', '--server', server.url], { cwd, env })
    await command.until(`Key for ${server.url}: `)
    command.type(`${key}\r`)
    expect(await command.exit).toBe(0)
    expect(command.shown).toContain('signed in to')
    expect(command.shown).not.toContain('mr_')
    expect(readFileSync(file, 'utf8')).toContain(key)
  })

  test('Ctrl-C at the question changes nothing', async () => {
    const [server, { cwd, env, file }] = [await keyServer(), setUp()]
    const command = onTerminal(['login', '--server', server.url], { cwd, env })
    await command.until(`Key for ${server.url}: `)
    command.type('\u0003')
    expect(await command.exit).toBe(2)
    expect([existsSync(file), server.seen.length]).toEqual([false, 1])
  })

  test('a key that the server refuses is not kept, and nobody prints it', async () => {
    const [server, { cwd, env, file }] = [await keyServer(), setUp()]
    const refused = await ran(['login', '--server', server.url], { cwd, env, input: 'mr_wrong' })
    expect(refused).toEqual({
      code: 1,
      out: '',
      err: `millrace: The server at ${server.url} does not accept this key.\n`,
    })
    expect(existsSync(file)).toBe(false)
    const spaced = await ran(['login', '--server', server.url], { cwd, env, input: 'mr wrong' })
    expect(spaced.err).toBe('millrace: The key must consist of printable ASCII characters without spaces.\n')
  })

  test('a sign-in that the server no longer accepts is told apart from a missing key', async () => {
    const [server, { cwd, env, file }] = [await keyServer(), setUp()]
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, JSON.stringify({ servers: { [server.url]: { key: 'mr_revoked' } } }))
    const { err } = await ran(['ps', '--url', server.url], { cwd, env })
    expect(err).toBe(
      `millrace: The server at ${server.url} no longer accepts your sign-in. Run: millrace login --server ${server.url}\n`,
    )
  })

  test('a token that has ended and cannot be renewed says what to do', async () => {
    const [server, { cwd, env, file }] = [await keyServer(), setUp()]
    mkdirSync(join(file, '..'), { recursive: true })
    const token = { token: 'eyJ', expiresAt: 1, issuer: 'http://127.0.0.1:1', clientId: 'page' }
    writeFileSync(file, JSON.stringify({ servers: { [server.url]: token } }))
    const { code, err } = await ran(['ps', '--url', server.url], { cwd, env })
    expect([code, err]).toEqual([
      1,
      `millrace: Your sign-in to ${server.url} has ended. Run: millrace login --server ${server.url}\n`,
    ])
    expect(server.seen).toEqual([])
  })

  test('a file that is damaged is named, without what is in it', async () => {
    const [server, { cwd, env, file }] = [await keyServer(), setUp()]
    mkdirSync(join(file, '..'), { recursive: true })
    for (const text of ['{"servers": "mr_secret"', '[]', '{"servers": 1}']) {
      writeFileSync(file, text)
      const { code, err } = await ran(['ps', '--url', server.url], { cwd, env })
      expect([code, err]).toEqual([2, expect.stringContaining(`${file} is not a file of millrace login. Delete it`)])
      expect(err).not.toContain('mr_secret')
    }
  })

  test('mistakes in the command line', async () => {
    const { cwd, env, file } = setUp()
    const refused = async (...args: string[]) => (await ran(args, { cwd, env })).err
    expect(await refused('login')).toContain("required option '--server <url>' not specified")
    expect(await refused('login', '--server', 'agents')).toContain(
      '--server must be a URL such as http://localhost:3000',
    )
    expect(await refused('login', '--server', 'http://127.0.0.1:1')).toContain(
      'No server answers at http://127.0.0.1:1.',
    )
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, JSON.stringify({ servers: { 'http://a': { key: 'k' }, 'http://b': { key: 'k' } } }))
    expect(await refused('logout')).toContain('Which server? Pass one of them with --server: http://a, http://b')
    expect(await refused('logout', '--server', 'http://c')).toBe('not signed in to http://c\n')
    expect(await refused('logout', '--server', 'http://a/')).toBe('signed out of http://a\n')
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ servers: { 'http://b': { type: 'key', key: 'k' } } })
  })
})
