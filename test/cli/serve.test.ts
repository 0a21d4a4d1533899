/** `millrace serve`: ready, one per folder, and a tidy end. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder, killed, ran, serving } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const demo = `metadata: { description: "Says something" }
workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, tools: [calculator] } }
`
const post = (url: string, body: unknown) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
const say = { agentId: 'a', messages: [{ role: 'user', content: 'What is 12*7?' }] }

describe('millrace serve', () => {
  test('it says when it is ready, what it serves and how to try it; SIGTERM ends it with 0', async () => {
    const cwd = folder({ 'agents/a.yaml': demo, 'agents/bad.yaml': 'workflow: 7\n' })
    const server = await serving([], { cwd })
    expect(server.out).toMatch(/^Millrace is ready at http:\/\/127\.0\.0\.1:\d+\n/)
    expect(server.out).toMatch(/^ {2}a +Says something$/m)
    // What the README says as well.
    expect(server.out).toContain(
      "ended runs are deleted 30 days after the last use of their conversation, the oldest first when there are more than 2 GB; deltas are merged 1 day after a run's end",
    )
    expect(readFileSync('README.md', 'utf8')).toContain(
      'merges the deltas of runs a day after they end, and deletes runs after 30 days or beyond 2 GB',
    )
    expect(server.err).toMatch(/^bad\.yaml:1:\d+ /m)
    expect(JSON.parse(readFileSync(join(cwd, '.millrace/server.json'), 'utf8'))).toMatchObject({ url: server.url })
    // The line that it prints is pasted.
    const [, body] = /\/api\/beddel\/chat .*-d '(.*)'/u.exec(server.out)!
    expect(await (await post(`${server.url}/api/beddel/chat`, JSON.parse(body!))).text()).toContain('84')
    const [, asked] = /OpenAI .*\/v1\/chat\/completions .*-d '(.*)'/u.exec(server.out)!
    const answer = await post(`${server.url}/v1/chat/completions`, JSON.parse(asked!))
    expect(await answer.json()).toMatchObject({
      model: 'a',
      choices: [{ message: { content: expect.stringContaining('84') } }],
    })
    server.kill('SIGTERM')
    expect(await server.exit).toBe(0)
    expect(existsSync(join(cwd, '.millrace/server.json'))).toBe(false)
  })

  test('--data none: runs leave no file, and it says that they are in memory', async () => {
    const [cwd, home] = [folder({ 'agents/a.yaml': demo }), folder()]
    // What is kept in the home folder is the compiled code of the command.
    const files = () =>
      [cwd, home].flatMap((each) =>
        readdirSync(each, { recursive: true, encoding: 'utf8' }).filter(
          (name) => !/^\.cache($|\/millrace)/u.test(name),
        ),
      )
    const server = await serving(['--data', 'none'], { cwd, env: { HOME: home } })
    expect(server.out).toContain('runs are in memory only: the last 100 that have ended, until the server stops')
    expect(await (await post(`${server.url}/api/chat`, { ...say, id: 'chat' })).text()).toContain('[DONE]')
    const { runs } = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: { status: string }[] }
    expect(runs).toMatchObject([{ status: 'completed' }])
    expect(files()).toEqual(['agents', 'agents/a.yaml'])
    server.kill('SIGTERM')
    expect(await server.exit).toBe(0)
    expect(files()).toEqual(['agents', 'agents/a.yaml'])
  })

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s with an active run and open streams: terminal frames, then 0',
    async (signal) => {
      const upstream = await startUpstream((reply) => reply.say('Half an'))
      onTestFinished(() => upstream.close())
      const cwd = folder({ 'agents/a.yaml': demo.replace('demo:assistant', 'up:m') })
      const server = await serving(['--endpoint', `up=${upstream.baseURL}`], { cwd })
      const chat = await post(`${server.url}/api/chat`, say)
      const id = chat.headers.get('x-millrace-run-id')!
      const log = await fetch(`${server.url}/api/runs/${id}/events`, { headers: { accept: 'text/event-stream' } })
      const text = await post(`${server.url}/api/beddel/chat`, say)
      const idle = await fetch(`${server.url}/health`)
      await idle.text()
      const bodies = [chat.text(), log.text(), text.text()] as const
      // The text wire has no frame for it: its transfer breaks.
      const broken = expect(bodies[2]).rejects.toThrow()
      await expect.poll(() => upstream.requests.length).toBe(2)

      server.kill(signal)
      expect(await server.exit).toBe(0)
      await broken
      expect(await bodies[0]).toMatch(/"type":"(?:abort|error)"[^]*\[DONE\]/)
      expect(await bodies[1]).toMatch(/"type":"run-end","outcome":"interrupted"/)
      await Promise.all(upstream.requests.map(({ left }) => left))

      const { code, out } = await ran(['ps', '--json'], { cwd })
      expect([code, (JSON.parse(out) as { status: string }[]).map(({ status }) => status)]).toEqual([
        0,
        ['interrupted', 'interrupted'],
      ])
      expect((await ran(['verify', 'all'], { cwd })).code).toBe(0)
    },
  )

  test('a port in use is said in one line, exit 1', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await expect.poll(() => other.listening).toBe(true)
    const port = String((other.address() as AddressInfo).port)
    const cwd = folder({ 'agents/a.yaml': demo })
    const { code, out, err } = await ran(['serve', '--port', port], { cwd })
    expect([code, out]).toEqual([1, ''])
    expect(err).toBe(`millrace: Port ${port} is in use; choose another with --port (0 picks a free one).\n`)
    expect(existsSync(join(cwd, '.millrace/server.json'))).toBe(false)
  })

  test('a second server on the same data folder is refused and the first one is not disturbed', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    const first = await serving([], { cwd })
    const { code, out, err } = await ran(['serve', '--port', '0'], { cwd })
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain(`process ${process.pid} at ${first.url}`)
    expect(err.trim().split('\n')).toHaveLength(1)
    expect(JSON.parse(readFileSync(join(cwd, '.millrace/server.json'), 'utf8'))).toMatchObject({ url: first.url })
    expect((await post(`${first.url}/api/chat`, say)).status).toBe(200)
    // What a server that was killed has left is in nobody's way.
    expect((await fetch((await serving([], { cwd: killed(cwd) })).url + '/health')).status).toBe(200)
  })

  test('other addresses want a key; bad flags and a missing folder are exit 2', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    const cases: [string[], RegExp][] = [
      [['--host', '0.0.0.0'], /Refusing to listen on 0\.0\.0\.0 without a key.*MILLRACE_API_KEY.*--insecure-no-auth/],
      [['--port', 'x'], /--port must be a number/],
      [['--port', '70000'], /--port must be a number/],
      [['--endpoint', 'nonsense'], /"nonsense" is not a valid endpoint: write name=/],
      [['nowhere'], /nowhere/],
      [['--prot', '1'], /unknown option '--prot'[^]*Did you mean --port\?/],
    ]
    for (const [args, message] of cases) {
      const { code, out, err } = await ran(['serve', '--port', '0', ...args], { cwd })
      expect([args, code, out]).toEqual([args, 2, ''])
      expect(err).toMatch(message)
      expect(err).not.toMatch(/\n\s+at /)
    }
    const env = { MILLRACE_API_KEY: 'a-long-secret-key' }
    const server = await serving(['--host', '0.0.0.0'], { cwd, env })
    expect((await fetch(`${server.url}/api/agents`)).status).toBe(401)
    // The commands find the key where the server found it.
    expect((await ran(['ps', '--json'], { cwd, env })).out).toBe('[]\n')
    expect((await ran(['ps'], { cwd })).code).toBe(1)
    server.kill('SIGTERM')
    expect(await server.exit).toBe(0)
  })
})
