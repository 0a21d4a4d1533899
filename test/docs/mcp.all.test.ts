/** docs/mcp.md: each of its blocks is pasted and run. Its servers are the reference server, as a program, and one of the official SDK, over HTTP. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createJournal, everything, type HttpChild, type Journal } from '../../src/tools/mcp/testing/everything.ts'
import { startSdk } from '../../src/tools/mcp/testing/sdk.ts'
import { ran } from '../support/cli.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'
import { snippets } from './documents.ts'

const blocks = snippets.filter(({ place }) => place.startsWith('docs/mcp.md'))
const of = (language: string) => blocks.filter((block) => block.language === language).map(({ text }) => text)

let dir: string
let journal: Journal
let crm: HttpChild
let server: ServerProcess

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'millrace-docs-mcp-'))
  journal = createJournal()
  crm = await startSdk(journal)
  const agents = join(dir, 'agents')
  mkdirSync(agents)
  cpSync(resolve(import.meta.dirname, '../../agents/assistant.yaml'), join(agents, 'assistant.yaml'))
  for (const text of of('yaml')) writeFileSync(join(dir, /^# (\S+)/u.exec(text)![1]!), text)
  const { command, args } = everything(journal) as { command: string; args: string[] }
  const [written] = of('js')
  const config = written!
    .replace("command: 'npx'", `command: ${JSON.stringify(command)}, env: { JOURNAL: ${JSON.stringify(journal.file)} }`)
    .replace("['-y', '@modelcontextprotocol/server-everything']", JSON.stringify(args))
    .replace('https://crm.example/mcp', crm.url)
  writeFileSync(join(dir, /^\/\/ (\S+)/u.exec(written!)![1]!), config)
  server = await spawnServer(agents, join(dir, 'data'))
})

afterAll(async () => {
  await server.kill()
  await crm.kill()
  journal.remove()
  rmSync(dir, { recursive: true, force: true })
})

interface View {
  id: string
  status: string
  text?: string
  requests?: { requestId: string }[]
}

const post = async (path: string, body: object) => {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  return fetch(server.url + path, init)
}
async function say(agentId: string, content: string): Promise<string> {
  const input = { messages: [{ role: 'user', content }] }
  return ((await (await post('/api/runs', { agentId, input })).json()) as View).id
}
const view = async (run: string) => (await (await fetch(`${server.url}/api/runs/${run}`)).json()) as View
const reaches = (run: string, status: string) =>
  vi.waitFor(async () => expect((await view(run)).status).toBe(status), { timeout: 30_000, interval: 50 })

async function resultsOf(run: string): Promise<unknown[]> {
  const events = await fetch(`${server.url}/api/runs/${run}/events`, { headers: { accept: 'application/x-ndjson' } })
  const lines = (await events.text()).split('\n').filter((line) => line.startsWith('{'))
  return lines.flatMap((line) => {
    const entry = JSON.parse(line) as { type: string; result?: unknown }
    return entry.type === 'tool-result' ? [entry.result] : []
  })
}

/** As somebody pastes it, with the address of this server. */
async function paste(block: string, env: Record<string, string> = {}): Promise<string> {
  const text = block.replaceAll('http://localhost:3000', server.url)
  const { stdout } = await promisify(execFile)('sh', ['-c', text], { env: { ...process.env, ...env } })
  return stdout
}

describe('docs: MCP', () => {
  test('these are its blocks', () => {
    expect(Object.fromEntries(['js', 'yaml', 'sh', 'json'].map((each) => [each, of(each).length]))).toEqual({
      js: 1,
      yaml: 4,
      sh: 2,
      json: 1,
    })
    expect(blocks).toHaveLength(8)
  })

  test('the config and the agents are valid', { timeout: 60_000 }, async () => {
    const { code, out } = await ran(['check', join(dir, 'agents')])
    expect([code, out]).toEqual([0, ''])
  })

  test('the clerk calls both servers; what a tool asks is answered with the command', { timeout: 60_000 }, async () => {
    const [answer] = of('sh')
    const echo = await say('clerk', 'Use the tool files_echo with {"message": "hi"}')
    await reaches(echo, 'completed')
    expect(await resultsOf(echo)).toEqual(['Echo: hi'])
    const ask = await say('clerk', 'Use the tool crm_ask with {}')
    await reaches(ask, 'suspended')
    const { requests } = await view(ask)
    expect(await paste(answer!, { RUN: ask, REQUEST: requests![0]!.requestId })).toContain('"duplicate":false')
    await reaches(ask, 'completed')
    expect(await resultsOf(ask)).toEqual(['colour: {"action":"accept","content":{"colour":"red"}}'])
  })

  test('the accountant finds a tool that it does not see', { timeout: 60_000 }, async () => {
    const run = await say('accountant', 'Use the tool find_tools with {"query": "say it again"}')
    await reaches(run, 'completed')
    expect(await resultsOf(run)).toEqual([
      expect.objectContaining({ tools: expect.arrayContaining([{ name: 'crm_echo', description: 'Says it again' }]) }),
    ])
  })

  test('a request brings headers of its own', { timeout: 60_000 }, async () => {
    const own = JSON.parse(of('json')[0]!.replace('…', 'x')) as object
    const messages = [{ id: 'u1', role: 'user', content: 'Use the tool crm_echo with {"text": "hi"}' }]
    const input = { threadId: 't', runId: 'r', messages, tools: [], context: [], state: {}, ...own }
    const response = await post('/ag-ui/clerk', input)
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('You said hi')])
  })

  test('agents are tools, and a call may be a task', { timeout: 60_000 }, async () => {
    const said = await paste(of('sh')[1]!)
    // Progress comes before the end.
    const called = JSON.parse(/^data: (.*"resultType".*)$/mu.exec(said)?.[1] ?? said) as {
      result: { resultType: string }
    }
    expect(['complete', 'task']).toContain(called.result.resultType)
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const response = await post('/mcp', list)
    const text = await response.text()
    for (const name of ['desk', 'trips', 'clerk', 'accountant']) expect(text).toContain(`"name":"${name}"`)
  })
})
