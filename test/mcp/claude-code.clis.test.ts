/**
 * Claude Code from npm calls agents of a real server by MCP, with a model that is a server of this test. In `-p` a call blocks; on a terminal it is a task,
 * which goes on when the server is killed.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
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
const long = `metadata: { description: Writes a long text }
workflow:
  - { id: answer, type: lines, config: { count: 30000 } }
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
  steps: {
    say: ({ text }) => new Response(text),
    lines: ({ count }) => new Response(Array.from({ length: count }, (_, i) => \`line \${i}\\n\`).join('')),
  },
  tools: { deploy: { description: 'Deploys', parameters: { type: 'object' }, execute: () => 'deployed' } },
}
`

/** A server with these agents, and Claude Code with a model and a home of its own. */
async function open({ skip }: TestContext, answer: (request: ModelRequest) => ModelReply) {
  skip(npm === undefined, 'needs the npm registry')
  const upstream = await startUpstream((reply, n) => {
    if (n === 1) {
      reply.call('call_1', 'deploy', { to: 'production' })
      return reply.finish('tool_calls')
    }
    reply.say(`Shipped: ${JSON.stringify(reply.body.messages.at(-1)!.content)}.`)
    return reply.finish()
  })
  onTestFinished(() => upstream.close())
  const agents = { 'hello.yaml': hello, 'long.yaml': long, 'ship.yaml': ship, 'millrace.config.ts': config }
  const cwd = folder(Object.fromEntries(Object.entries(agents).map(([name, each]) => [`agents/${name}`, each])))
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
  const tools = ['hello', 'long', 'ship'].map((name) => `mcp__desk__${name}`).join(',')
  const common = ['--mcp-config', 'mcp.json', '--strict-mcp-config', '--allowedTools', tools]
  const runsOf = async () => {
    const { runs } = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: RunRow[] }
    return runs
  }
  return { server, cwd, flags, model, work, env, claude, common, runsOf }
}

type Opened = Awaited<ReturnType<typeof open>>

async function print({ claude, common, work, env }: Opened, said: string): Promise<string> {
  const args = ['-p', said, ...common, '--output-format', 'stream-json', '--verbose']
  return (await run(claude, args, { cwd: work, env, timeout: 100_000 })).stdout
}

/** Claude Code on a pseudo-terminal, killed when the test ends. */
function onTerminal({ claude, common, work, env }: Opened, said: string) {
  const words = [claude, said, ...common].map((word) => `'${word}'`).join(' ')
  const shell = `stty rows 40 cols 120; echo $$ > claude.pid; exec ${words}`
  const terminal = spawn('script', ['-qfec', shell, '/dev/null'], { cwd: work, env })
  const closed = new Promise((resolve) => terminal.on('close', resolve))
  onTestFinished(async () => {
    // It has a session of its own, and would write to its folder for a while.
    process.kill(Number(readFileSync(join(work, 'claude.pid'), 'utf8')), 'SIGKILL')
    await closed
  })
  const shown = { screen: '' }
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => void (shown.screen += text))
  return { shown, press: (keys: string) => void terminal.stdin.write(keys) }
}

function withoutEscapes(text: string): string {
  // oxlint-disable-next-line no-control-regex -- those of a terminal
  return text.replaceAll(/\u001B\[[0-9;?]*[A-Za-z]/gu, ' ')
}

const patience = { timeout: 60_000, interval: 100 }

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
    const opened = await open(context, calls('hello'))
    const said = await print(opened, 'Say hello')
    expect(said).toContain('"name":"desk","status":"connected"')
    expect(wordsIn(opened.model.requests.at(-1)!)).toContain('Hello from the desk.')
    expect(said).toContain('Thank you.')
  })

  test('gets it from a program, too', { timeout: 120_000 }, async (context) => {
    const opened = await open(context, calls('hello'))
    const { cwd, work, model, runsOf } = opened
    const args = [resolve('bin/millrace.js'), 'mcp', '--dir', join(cwd, 'agents'), '--data', join(cwd, '.millrace')]
    const desk = { type: 'stdio', command: process.execPath, args: [...args, ...opened.flags] }
    writeFileSync(join(work, 'mcp.json'), JSON.stringify({ mcpServers: { desk } }))
    expect(await print(opened, 'Say hello')).toContain('"name":"desk","status":"connected"')
    expect(wordsIn(model.requests.at(-1)!)).toContain('Hello from the desk.')
    // The server has run it.
    expect(await runsOf()).toMatchObject([{ agent: 'hello', status: 'completed' }])
  })

  test('is told that a call was denied where nobody could be asked', { timeout: 120_000 }, async (context) => {
    const opened = await open(context, calls('ship'))
    await print(opened, 'Ship it')
    const words = wordsIn(opened.model.requests.at(-1)!)
    expect(words).toContain('Shipped:')
    expect(words).toMatch(/nobody could be asked|denied/iu)
    expect(await opened.runsOf()).toMatchObject([{ agent: 'ship', protocol: 'mcp', status: 'completed' }])
  })

  test('keeps a long answer in a file', { timeout: 120_000 }, async (context) => {
    const opened = await open(context, calls('long'))
    await print(opened, 'Write')
    expect(wordsIn(opened.model.requests.at(-1)!)).toContain('(318,890 characters across 30,000 lines)')
    expect(await opened.runsOf()).toMatchObject([{ agent: 'long', status: 'completed' }])
  })
})

describe('claude on a terminal', () => {
  test(
    'has a task, gets its result after the server was killed, and its approval on the page',
    { timeout: 300_000 },
    async (context) => {
      const opened = await open(context, calls('ship'))
      const { model, server, cwd, flags, runsOf } = opened
      const { shown, press } = onTerminal(opened, 'Ship it')
      await vi.waitFor(async () => expect((await runsOf())[0]?.status).toBe('suspended'), patience)
      const [{ id }] = (await runsOf()) as [RunRow]
      // It has polled: the form is shown.
      await vi.waitFor(() => expect(shown.screen).toContain('deploy'), patience)
      expect(model.requests.some((each) => wordsIn(each).includes('started server-side task mrtask_'))).toBe(true)

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
      await vi.waitFor(async () => expect((await runsOf())[0]?.status).toBe('completed'), patience)
      // While the form is open it does not poll. Esc: to answer later.
      press('\u001B')
      const isTold = (each: ModelRequest) => wordsIn(each).includes('Shipped:')
      await vi.waitFor(() => expect(model.requests.some(isTold)).toBe(true), patience)
      expect(wordsIn(model.requests.findLast(isTold)!)).toContain('deployed')
      expect(await runsOf()).toHaveLength(1)
    },
  )

  test('asks in a form, and what the person enters goes on with the task', { timeout: 300_000 }, async (context) => {
    const opened = await open(context, calls('ship'))
    const { shown, press } = onTerminal(opened, 'Ship it')
    await vi.waitFor(() => expect(shown.screen).toContain('Approve this call'), patience)
    // Down to the reason, down to Accept.
    for (const chosen of [/❯\s*Reason/u, /❯\s*Accept/u]) {
      const before = shown.screen.length
      press('\u001B[B')
      await vi.waitFor(() => expect(withoutEscapes(shown.screen.slice(before))).toMatch(chosen), patience)
    }
    const isTold = (each: ModelRequest) => wordsIn(each).includes('Shipped:')
    // A key that comes right after another is lost.
    const enter = () => {
      press('\r')
      expect(opened.model.requests.some(isTold)).toBe(true)
    }
    await vi.waitFor(enter, { timeout: 60_000, interval: 1000 })
    expect(wordsIn(opened.model.requests.findLast(isTold)!)).toContain('deployed')
    expect(await opened.runsOf()).toMatchObject([{ agent: 'ship', status: 'completed' }])
  })

  test('stops a task', { timeout: 300_000 }, async (context) => {
    const opened = await open(context, (request) => {
      const words = wordsIn(request)
      const [, task] = /as task (\w+) and keeps running/u.exec(words) ?? []
      if (task === undefined) return calls('ship')(request)
      return words.includes('TaskStop') && words.includes('toolu_2')
        ? 'Stopped.'
        : { id: 'toolu_2', name: 'TaskStop', input: { task_id: task } }
    })
    onTerminal(opened, 'Ship it, then stop')
    await vi.waitFor(async () => expect((await opened.runsOf())[0]?.status).toBe('aborted'), patience)
  })
})
