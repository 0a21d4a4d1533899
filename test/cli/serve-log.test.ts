/** What `millrace serve` prints while it works. */
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readServerFile } from '../../src/server/server-file.ts'
import { folder, millrace, serving, type CommandOptions } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const secret = 'tok-0123456789-abcdef'
const agents = {
  'agents/demo.yaml': 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]',
  'agents/keyless.yaml': 'workflow: [{ id: answer, type: llm, config: { model: gpt-5, stream: true } }]',
  'agents/leaky.yaml': 'workflow: [{ id: leak, type: leak }]',
  'agents/millrace.config.ts': `export default {
    steps: {
      leak: () => { throw new Error('the token is ${secret}') },
    },
  }`,
}
const cwd = () => folder(agents)

async function ask(url: string, agentId: string, init: RequestInit = {}) {
  const body = JSON.stringify({ agentId, messages: [{ role: 'user', content: 'Hi' }] })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${url}/api/chat`, { method: 'POST', headers, body, ...init })
  await response.text()
  return response.headers.get('x-millrace-run-id')
}

const serveIn = (flags: string[] = [], options: CommandOptions = {}) => serving(flags, { cwd: cwd(), ...options })

describe('millrace serve: log', () => {
  test('a line for each run, for each failure with its cause and cure, for each refusal, and at the end', async () => {
    const server = await serveIn([], { env: { SOME_TOKEN: secret } })
    const run = await ask(server.url, 'demo')
    await server.until(`${run}  demo  completed  `)
    expect(server.err).toMatch(/demo {2}completed {2}\d+\.\d\ds {2}\d+~? tokens\n/u)
    const failed = await ask(server.url, 'keyless')
    await server.until('OPENAI_API_KEY in the environment')
    expect(server.err).toMatch(new RegExp(`${failed} {2}keyless {2}failed .*: missing-key: .*OPENAI_API_KEY`, 'u'))
    await ask(server.url, 'leaky')
    await server.until('leaky  failed')
    expect(server.err).toContain('the token is [redacted]')
    await ask(server.url, 'nobody')
    await server.until('POST /api/chat  404: unknown-agent: There is no agent "nobody"')
    expect(server.err).not.toContain('\u001B[')
    server.kill('SIGINT')
    expect(await server.exit).toBe(0)
    expect(server.err).toContain('stopping (Ctrl-C): no active runs. Press Ctrl-C again to stop at once.')
    expect(server.out + server.err).not.toContain(secret)
  })

  test('a run that ends as the last thing has its line', async () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const upstream = await startUpstream(async (reply) => {
      reached.resolve()
      await gate.promise
      reply.finish()
    })
    onTestFinished(() => upstream.close())
    const last = 'workflow: [{ id: wait, type: llm, config: { model: "up:m" } }]'
    const server = await serving(['--endpoint', `up=${upstream.baseURL}`], {
      cwd: folder({ ...agents, 'agents/last.yaml': last }),
    })
    const asked = ask(server.url, 'last')
    await reached.promise
    server.kill('SIGTERM')
    await server.until('1 active run has 2 s to finish')
    gate.resolve()
    const run = await asked
    expect(await server.exit).toBe(0)
    expect(server.err).toMatch(new RegExp(`1 active run has 2 s to finish.*${run} {2}last {2}completed`, 'su'))
  })

  test('--quiet: failures and nothing else', async () => {
    const dir = cwd()
    const server = millrace(['serve', '--quiet', '--port', '0', '--data', 'data'], { cwd: dir })
    const url = await urlIn(join(dir, 'data'))
    await ask(url, 'demo')
    await ask(url, 'keyless')
    await server.until('keyless  failed')
    expect(server.out).toBe('')
    expect(server.err.trimEnd().split('\n')).toHaveLength(1)
  })

  test('--json: NDJSON on stdout, from the beginning to the end', async () => {
    const server = millrace(['serve', '--json', '--port', '0'], { cwd: cwd() })
    await server.until('"event":"ready"')
    const lines = () =>
      server.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    const { url } = lines().find(({ event }) => event === 'ready') as { url: string }
    const run = await ask(url, 'demo')
    await server.until('"outcome":"completed"')
    await ask(url, 'keyless')
    await server.until('missing-key')
    server.kill('SIGTERM')
    await server.exit
    const runs = lines().filter(({ event }) => event === 'run')
    expect(runs).toMatchObject([
      { level: 'info', run, agent: 'demo', outcome: 'completed', ms: expect.any(Number), usage: expect.any(Object) },
      { level: 'error', agent: 'keyless', outcome: 'failed', error: { code: 'missing-key' } },
    ])
    expect(lines().at(-1)).toMatchObject({ event: 'note', message: expect.stringContaining('stopping (SIGTERM)') })
  })
})

/** Of a server that prints nothing: it says where it is found. */
async function urlIn(data: string): Promise<string> {
  for (;;) {
    const found = readServerFile(data)
    if (found?.url !== undefined) return found.url
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
