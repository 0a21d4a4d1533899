/**
 * Claude Code from npm calls agents of a real server by MCP, with a model that is a server of this test. In `-p` a call blocks; on a terminal it is a task,
 * which goes on when the server is killed.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi, type TestContext } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { startAnthropicModel, wordsIn, type ModelReply, type ModelRequest } from '../support/anthropic-model.ts'
import { folder } from '../support/cli.ts'
import { millrace, serving } from '../support/cli-process.ts'
import { installed, type Installed } from '../support/from-npm.ts'
import { startUpstream } from '../support/upstream.ts'

const run = promisify(execFile)
const version = '2.1.332'
const key = `sk-ant-test-${'k'.repeat(40)}`

let npm: Installed | undefined
beforeAll(async () => {
  npm = await installed([`@anthropic-ai/claude-code@${version}`], { scripts: true })
}, 600_000)
afterAll(() => npm?.remove(), 60_000)

const hello = `metadata: { description: Says hello }
workflow:
  - { id: answer, type: say, config: { text: "Hello from the desk." } }
`
const ship = `metadata: { description: Ships a release }
workflow:
  - id: answer
    type: llm
    config:
      model: "up:m"
      stream: true
      messages: "$input.messages"
      tools: [{ name: deploy, approval: true }]
recover: true
`
const config = `export default {
  steps: { say: ({ text }) => new Response(text) },
  tools: { deploy: { description: 'Deploys', parameters: { type: 'object' }, execute: () => 'deployed' } },
}
`

/** A server with these agents, and Claude Code with a model and a home of its own. */
async function open({ skip }: TestContext, answer: (request: ModelRequest) => ModelReply) {
  skip(npm === undefined, 'needs the npm registry, for Claude Code')
  const upstream = await startUpstream((reply, n) => {
    if (n === 1) {
      reply.call('call_1', 'deploy', { to: 'production' })
      return reply.finish('tool_calls')
    }
    reply.say(`Shipped: ${JSON.stringify(reply.body.messages.at(-1)!.content)}.`)
    return reply.finish()
  })
  onTestFinished(() => upstream.close())
  const cwd = folder({ 'agents/hello.yaml': hello, 'agents/ship.yaml': ship, 'agents/millrace.config.ts': config })
  const flags = ['--endpoint', `up=${upstream.baseURL}`]
  const server = await serving(flags, { cwd })
  const model = await startAnthropicModel(answer)
  onTestFinished(() => model.close())
  const work = folder()
  const home = join(work, 'home')
  mkdirSync(home)
  const servers = { mcpServers: { desk: { type: 'http', url: `${server.url}/mcp` } } }
  writeFileSync(join(work, 'mcp.json'), JSON.stringify(servers))
  const known = {
    hasCompletedOnboarding: true,
    customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] },
    projects: { [work]: { hasTrustDialogAccepted: true } },
  }
  writeFileSync(join(home, '.claude.json'), JSON.stringify(known))
  const env = {
    PATH: process.env['PATH']!,
    HOME: home,
    TERM: 'xterm-256color',
    ANTHROPIC_API_KEY: key,
    ANTHROPIC_BASE_URL: model.url,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }
  const claude = join(npm!.root, 'node_modules/.bin/claude')
  const common = [
    '--mcp-config',
    'mcp.json',
    '--strict-mcp-config',
    '--allowedTools',
    'mcp__desk__hello,mcp__desk__ship',
  ]
  return { server, cwd, flags, model, work, env, claude, common }
}

/** Calls the tool first; what comes of it is in the requests that follow. */
function calls(name: string) {
  return ({ messages }: ModelRequest): ModelReply => {
    const said = JSON.stringify(messages)
    return said.includes('tool_use')
      ? 'Thank you.'
      : { id: 'toolu_1', name: `mcp__desk__${name}`, input: { message: 'Go' } }
  }
}

describe('claude -p', () => {
  test('gets the result of a call', { timeout: 120_000 }, async (context) => {
    const { claude, common, work, env, model } = await open(context, calls('hello'))
    const args = ['-p', 'Say hello', ...common, '--output-format', 'stream-json', '--verbose']
    const { stdout } = await run(claude, args, { cwd: work, env, timeout: 100_000 })
    expect(stdout).toContain('"name":"desk","status":"connected"')
    expect(wordsIn(model.requests.at(-1)!)).toContain('Hello from the desk.')
    expect(stdout).toContain('Thank you.')
  })

  test('is told that a call was denied where nobody could be asked', { timeout: 120_000 }, async (context) => {
    const { claude, common, work, env, model, server } = await open(context, calls('ship'))
    const args = ['-p', 'Ship it', ...common, '--output-format', 'stream-json', '--verbose']
    await run(claude, args, { cwd: work, env, timeout: 100_000 })
    expect(wordsIn(model.requests.at(-1)!)).toContain('Shipped:')
    expect(wordsIn(model.requests.at(-1)!)).toMatch(/nobody could be asked|denied/iu)
    const { runs } = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: RunRow[] }
    expect(runs).toMatchObject([{ agent: 'ship', protocol: 'mcp', status: 'completed' }])
  })
})

describe('claude on a terminal', () => {
  test(
    'has a task, gets its result after the server was killed, and its approval on the page',
    { timeout: 300_000 },
    async (context) => {
      const { claude, common, work, env, model, server, cwd, flags } = await open(context, calls('ship'))
      const words = [claude, 'Ship it', ...common].map((word) => `'${word}'`).join(' ')
      const terminal = spawn('script', ['-qfec', `stty rows 40 cols 120; ${words}`, '/dev/null'], { cwd: work, env })
      onTestFinished(async () => {
        terminal.kill('SIGKILL')
        await new Promise((resolve) => terminal.on('close', resolve))
      })
      let screen = ''
      terminal.stdout.setEncoding('utf8').on('data', (text: string) => void (screen += text))
      const list = async () => {
        const { runs } = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: RunRow[] }
        return runs
      }
      const patience = { timeout: 60_000, interval: 100 }
      await vi.waitFor(async () => expect((await list())[0]?.status).toBe('suspended'), patience)
      const [{ id }] = (await list()) as [RunRow]
      // It has polled: the form is shown.
      await vi.waitFor(() => expect(screen).toContain('deploy'), patience)

      server.kill('SIGKILL')
      await server.exit
      const again = millrace(['serve', ...flags, '--port', new URL(server.url).port], { cwd })
      await again.until('Try it')

      const { requests } = (await (await fetch(`${server.url}/api/runs/${id}/requests`)).json()) as {
        requests: { requestId: string }[]
      }
      await fetch(`${server.url}/api/runs/${id}/requests/${requests[0]!.requestId}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ approved: true }),
      })
      await vi.waitFor(async () => expect((await list())[0]?.status).toBe('completed'), patience)
      // While the form is open it does not poll. Esc: to answer later.
      terminal.stdin.write('\u001B')
      await vi.waitFor(
        () => expect(model.requests.some((each) => wordsIn(each).includes('Shipped:'))).toBe(true),
        patience,
      )
      expect(wordsIn(model.requests.findLast((each) => wordsIn(each).includes('Shipped:'))!)).toContain('deployed')
      expect(await list()).toHaveLength(1)
    },
  )
})
