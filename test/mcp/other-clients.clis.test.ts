/** Clients of MCP from npm beside Claude Code: Codex, and the command line of the MCP Inspector in both eras, over HTTP and as a program. */
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { folder } from '../support/cli.ts'
import { serving } from '../support/cli-process.ts'
import { installed, type Installed } from '../support/from-npm.ts'

const run = promisify(execFile)
const needs = 'needs the npm registry'
let npm: Installed | undefined
beforeAll(async () => {
  npm = await installed(['@modelcontextprotocol/inspector@2.12.0', '@openai/codex@0.171.0'])
}, 600_000)
afterAll(() => npm?.remove(), 60_000)

const hello = `metadata:
  description: Says hello
  prompts:
    - { name: greet, description: Greets, arguments: { who: Whom }, text: "Greet {who}." }
workflow:
  - { id: answer, type: say, config: { text: "Hello from the desk." } }
`
const config = 'export default { steps: { say: ({ text }) => new Response(text) } }\n'

async function open() {
  const cwd = folder({ 'agents/hello.yaml': hello, 'agents/millrace.config.ts': config })
  const server = await serving([], { cwd })
  const runs = async () => {
    const found = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: RunRow[] }
    return found.runs
  }
  const program = [
    process.execPath,
    resolve('bin/millrace.js'),
    'mcp',
    '--dir',
    join(cwd, 'agents'),
    '--data',
    join(cwd, '.millrace'),
  ]
  return { server, cwd, runs, program }
}

describe('the MCP Inspector', () => {
  test.for([
    ['http', 'legacy'],
    ['http', 'modern'],
    ['stdio', 'legacy'],
    ['stdio', 'modern'],
  ])('over %s in the %s era', { timeout: 120_000 }, async ([transport, era], { skip }) => {
    skip(npm === undefined, needs)
    const { server, runs, program } = await open()
    const work = folder()
    const env = { PATH: process.env['PATH']!, HOME: work }
    const bin = join(npm!.root, 'node_modules/.bin/mcp-inspector')
    const target = transport === 'http' ? [`${server.url}/mcp`, '--transport', 'http'] : program
    const ask = async (...args: string[]) => {
      const flags = ['--cli', ...(transport === 'http' ? target : []), '--protocol-era', era!, ...args]
      const all =
        transport === 'http' ? flags : ['--cli', ...target.slice(0, 2), 'mcp', ...target.slice(3), ...flags.slice(1)]
      const { stdout } = await run(bin, all, { cwd: work, env, timeout: 60_000 })
      return JSON.parse(stdout) as Record<string, unknown>
    }
    expect(await ask('--method', 'tools/list')).toMatchObject({ tools: [{ name: 'hello' }] })
    const called = await ask('--method', 'tools/call', '--tool-name', 'hello', '--tool-arg', 'message=Go')
    expect(called).toMatchObject({ content: [{ type: 'text', text: 'Hello from the desk.' }] })
    const [row] = await runs()
    expect(row).toMatchObject({ agent: 'hello', protocol: 'mcp', status: 'completed' })
    const read = await ask('--method', 'resources/read', '--uri', `run://${row!.id}`)
    expect(JSON.stringify(read)).toContain('Hello from the desk.')
    const prompt = await ask('--method', 'prompts/get', '--prompt-name', 'hello.greet', '--prompt-args', 'who=Ada')
    expect(JSON.stringify(prompt)).toContain('Greet Ada.')
  })
})

/** A model of OpenAI's Responses API: it calls this tool of the server, then thanks. Codex offers the tools of a server as a namespace. */
async function startResponsesModel(name: string) {
  const bodies: string[] = []
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const body = (await incoming.setEncoding('utf8').toArray()).join('')
      if (incoming.method !== 'POST') return void outgoing.writeHead(404).end('{}')
      bodies.push(body)
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' })
      const send = (event: { type: string }) =>
        outgoing.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      const call = {
        type: 'function_call',
        id: 'f',
        call_id: 'c',
        namespace: 'mcp__desk',
        name,
        arguments: '{"message":"Go"}',
      }
      const words = { type: 'message', role: 'assistant', id: 'm', content: [{ type: 'output_text', text: 'Thanks.' }] }
      const item = body.includes('function_call_output') ? words : call
      send({ type: 'response.created', response: { id: 'r' } } as { type: string })
      send({ type: 'response.output_item.done', output_index: 0, item } as { type: string })
      const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
      send({ type: 'response.completed', response: { id: 'r', usage } } as { type: string })
      outgoing.end()
    })()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, bodies }
}

describe('Codex', () => {
  test.for(['http', 'stdio'])('calls an agent over %s', { timeout: 120_000 }, async (transport, { skip }) => {
    skip(npm === undefined, needs)
    const { server, runs, program } = await open()
    const model = await startResponsesModel('hello')
    const work = folder()
    const home = join(work, 'home')
    mkdirSync(join(home, '.codex'), { recursive: true })
    const [command, ...args] = program
    const desk =
      transport === 'http' ? `url = "${server.url}/mcp"` : `command = "${command}"\nargs = ${JSON.stringify(args)}`
    writeFileSync(
      join(home, '.codex/config.toml'),
      `model = "own"
model_provider = "own"
[model_providers.own]
name = "own"
base_url = "${model.url}"
wire_api = "responses"
env_key = "OWN_KEY"
[mcp_servers.desk]
${desk}
default_tools_approval_mode = "approve"
`,
    )
    const env = { PATH: process.env['PATH']!, HOME: home, OWN_KEY: 'none' }
    const flags = ['exec', '--json', '--skip-git-repo-check', '--sandbox', 'danger-full-access', '-']
    const child = spawn(join(npm!.root, 'node_modules/.bin/codex'), flags, { cwd: work, env, timeout: 100_000 })
    child.stdin.end('Say hello')
    const out = (await child.stdout.setEncoding('utf8').toArray()).join('')
    expect(model.bodies.at(-1), out).toContain('Hello from the desk.')
    expect(await runs()).toMatchObject([{ agent: 'hello', protocol: 'mcp', status: 'completed' }])
  })
})
