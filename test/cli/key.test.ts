/** Who gets MILLRACE_API_KEY: the server of the data folder on this machine, and one that the user names. Nobody else. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { folder, millrace, ran, serving } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const key = 'a-key-that-is-nobody-elses'
const env = { MILLRACE_API_KEY: key }
const demo = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]\n'

/** Pretends to be a Millrace server, and keeps what it is sent. */
async function impostor() {
  const asked: { path: string; authorization: string | undefined }[] = []
  const server = createServer((request, response) => {
    asked.push({ path: request.url!, authorization: request.headers.authorization })
    const isHealth = request.url === '/health'
    const status = isHealth || request.headers.authorization !== undefined ? 200 : 401
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(isHealth ? '{"status":"ok"}' : '{"runs":[]}')
  })
  server.listen(0, '127.0.0.1')
  await expect.poll(() => server.listening).toBe(true)
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { asked, port, url: `http://127.0.0.1:${port}` }
}

function plant(cwd: string, url: string): void {
  mkdirSync(join(cwd, '.millrace'), { recursive: true })
  // Of a process that is alive: this one.
  writeFileSync(join(cwd, '.millrace/server.json'), JSON.stringify({ pid: process.pid, url, key: true }))
}

const everyCommand = (id: string) => [
  ['ps', '--json'],
  ['logs', id, '--json'],
  ['logs', id, '--follow'],
  ['show', id],
  ['verify', id],
  ['stop', id],
  ['__complete', 'show', 'run_'],
]

describe('API key of the CLI', () => {
  test(
    'a server.json without a server behind it is not believed: nothing is sent to it, the database is read',
    { timeout: 60_000 },
    async () => {
      const fake = await impostor()
      const cwd = folder({ 'agents/a.yaml': demo })
      expect((await ran(['run', 'a', '-m', 'Hi'], { cwd })).code).toBe(0)
      const [{ id }] = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as [RunRow]
      plant(cwd, fake.url)
      for (const args of everyCommand(id)) {
        const { code, out, err } = await ran(args, { cwd, env })
        expect([args[0], code, (out + err).includes(id)]).toEqual([args[0], 0, true])
      }
      expect(fake.asked).toEqual([])

      // Nor in a folder that holds nothing else, as one that was cloned.
      const cloned = folder()
      plant(cloned, fake.url)
      for (const args of everyCommand(id).slice(0, -1)) {
        expect(await ran(args, { cwd: cloned, env })).toMatchObject({
          code: 2,
          out: '',
          err: expect.stringContaining('No runs found in'),
        })
      }
      expect(fake.asked).toEqual([])

      // The next server takes the folder as if nothing were there.
      const server = await serving([], { cwd, env })
      expect(JSON.parse((await ran(['ps', '--json'], { cwd, env })).out)).toMatchObject([{ id }])
      server.kill('SIGTERM')
      expect(await server.exit).toBe(0)
    },
  )

  test('a single run that holds the folder is no server either', async () => {
    const gate = Promise.withResolvers<void>()
    const upstream = await startUpstream(async (reply) => {
      reply.say('Half')
      await gate.promise
      reply.finish()
    })
    onTestFinished(() => upstream.close())
    const fake = await impostor()
    const cwd = folder({ 'agents/a.yaml': demo.replace('demo:assistant', 'up:m') })
    plant(cwd, fake.url)
    const run = millrace(['run', 'a', '-m', 'Hi', '--endpoint', `up=${upstream.baseURL}`], { cwd })
    await run.until('Half')
    expect(JSON.parse((await ran(['ps', '--json'], { cwd, env })).out)).toMatchObject([{ status: 'running' }])
    expect(fake.asked).toEqual([])
    gate.resolve()
    expect(await run.exit).toBe(0)
  })

  test('an address that leaves the machine gets the key only when the user names it', async ({ skip }) => {
    const fake = await impostor()
    // No name for this machine, though it leads here: as good as one that leads away.
    const away = `http://[::ffff:127.0.0.1]:${fake.port}`
    const isReachable = await fetch(`${away}/health`).then(
      () => true,
      () => false,
    )
    skip(!isReachable, 'no IPv6 here')
    fake.asked.length = 0
    const cwd = folder({ 'agents/a.yaml': demo })
    const server = await serving([], { cwd, env })
    // The server holds its folder; somebody has changed its file since.
    plant(cwd, away)
    const kept = await ran(['ps'], { cwd, env })
    expect([kept.code, kept.out, kept.err]).toEqual([
      1,
      '',
      expect.stringMatching(/--url http:\S+ to send it MILLRACE_API_KEY/),
    ])
    expect(fake.asked.map(({ path }) => path)).toEqual(['/health', expect.stringContaining('/api/runs')])
    expect(JSON.stringify(fake.asked)).not.toContain(key)

    // What is named is trusted, whatever the folder holds.
    const named = await ran(['ps', '--json', '--url', `${away}/`], { cwd, env })
    expect([named.code, named.out, fake.asked.at(-1)!.authorization]).toEqual([0, '[]\n', `Bearer ${key}`])
    const real = await ran(['ps', '--json', '--url', server.url], { cwd: folder(), env })
    expect([real.code, real.out]).toEqual([0, '[]\n'])
  })

  test('--url that is none, a server that is not there, a missing and a wrong key: each in one line', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    const server = await serving([], { cwd, env })
    const wants = `millrace: The server at ${server.url} requires a key: set MILLRACE_API_KEY, or run: millrace login --server ${server.url}\n`
    const refuses = `millrace: The server at ${server.url} rejects the key in MILLRACE_API_KEY.\n`
    expect(await ran(['ps'], { cwd })).toEqual({ code: 1, out: '', err: wants })
    expect(await ran(['ps'], { cwd, env: { MILLRACE_API_KEY: 'other' } })).toEqual({ code: 1, out: '', err: refuses })
    for (const [url, code, message] of [
      ['localhost:3000', 2, /--url must be a URL such as http/],
      ['http://127.0.0.1:9', 1, /^millrace: No server answers at http:\/\/127\.0\.0\.1:9\.\n$/],
    ] as const) {
      expect(await ran(['ps', '--url', url], { cwd, env })).toEqual({
        code,
        out: '',
        err: expect.stringMatching(message),
      })
    }
    // The file says where; the key is not in it.
    expect(readFileSync(join(cwd, '.millrace/server.json'), 'utf8')).not.toContain(key)
  })

  test('a key that ends in a line break is refused by name at the start, and by what sends it; nothing is made', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    const broken = { MILLRACE_API_KEY: `${key}\n` }
    const message = 'millrace: MILLRACE_API_KEY ends with a line break, as text from files often does: remove it.\n'
    for (const args of [
      ['serve', '--port', '0'],
      ['ps', '--url', 'http://127.0.0.1:9'],
    ]) {
      expect(await ran(args, { cwd, env: broken })).toEqual({ code: 2, out: '', err: message })
    }
    expect(existsSync(join(cwd, '.millrace'))).toBe(false)
  })
})
