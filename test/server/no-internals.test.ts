/** What of this machine no client sees on any route: paths, commands, names of the environment, the system's own words. */
import { DatabaseSync } from 'node:sqlite'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { McpServer } from '../../src/tools/mcp/server.ts'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const asked = { extensions: ['tools'] }

/** The body of every route that answers for an agent; one that breaks off is what came of it. */
async function answers(url: string, agentId: string): Promise<{ route: string; body: string }[]> {
  const requests: [string, object][] = [
    ['/api/chat', { agentId, messages }],
    ['/api/beddel/chat', { agentId, messages }],
    ['/v1/chat/completions', { model: agentId, messages }],
    ['/v1/chat/completions', { model: agentId, messages, stream: true, ...asked }],
    ['/api/v1/chat/completions', { model: agentId, messages, stream: true }],
    ['/v1/completions', { model: agentId, prompt: 'Hi' }],
  ]
  return Promise.all(
    requests.map(async ([route, body]) => {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(url + route, { method: 'POST', headers, body: JSON.stringify(body) })
      return { route, body: await response.text().catch(() => '(broken off)') }
    }),
  )
}

const node = process.execPath
const saying = 'console.error("no entry for 10.0.0.7"); process.exit(2)'
/** Offers one tool; the call of it ends the program. */
const dying = `
const say = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
const read = { name: 'read', inputSchema: { type: 'object' } }
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') say(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } })
  else if (method === 'tools/list') say(id, { tools: [read] })
  else if (method === 'tools/call') { console.error('no entry for 10.0.0.7'); process.exit(2) }
})`

describe('internals in responses', () => {
  test.each<[string, McpServer, string?]>([
    ['a command that is not there', { command: '/opt/internal/mcp-thing' }, 'ENOENT'],
    ['a folder that is not there', { command: node, cwd: '/opt/internal' }, 'ENOENT'],
    ['a variable that is not set', { command: node, env: ['INTERNAL_MCP_KEY'] }, 'not set: INTERNAL_MCP_KEY'],
    ['a program that ends', { command: node, args: ['-e', saying] }, 'its stderr: no entry for 10.0.0.7'],
    ['an address', { url: 'http://127.0.0.1:1/internal' }],
  ])('an MCP server that does not start, %s: clients see its name and the reason', async (_, shop, detail) => {
    const server = await startServer({
      agents: {
        step: 'workflow: [{ id: read, type: mcp-tool, config: { server: shop, tool: read } }]',
        tools: agent('tools: [shop_read]'),
      },
      scripts: { m: createScriptedModel([]) },
      mcpServers: { shop },
    })
    onTestFinished(() => server.close())
    for (const agentId of ['step', 'tools']) {
      for (const { route, body } of await answers(server.url, agentId)) {
        expect(body, route).not.toMatch(/internal|mcp-thing|spawn|bin\/node|10\.0\.0|127\.0\.0|ENOENT/iu)
        if (body !== '(broken off)') expect(body, route).toContain('MCP server')
      }
    }
    const runs = await server.store.runs.list()
    expect(runs).toHaveLength(12)
    for (const { id, error } of runs) {
      expect(error!.detail).toBe(detail)
      // The command is not even in the log.
      const log = await (await fetch(`${server.url}/api/runs/${id}/events`)).text()
      expect(log).not.toMatch(/mcp-thing|bin\/node|\/opt|127\.0\.0/u)
    }
  })

  test('an MCP server that is lost during a call: the model and clients are told so, the log what it printed', async () => {
    const model = createScriptedModel([
      [toolCall('c', 'shop_read', {}), finish('tool-calls')],
      [text('Sorry.'), finish()],
    ])
    const server = await startServer({
      agents: { a: agent('tools: [shop_read]') },
      scripts: { m: model },
      mcpServers: { shop: { command: node, args: ['-e', dying] } },
    })
    onTestFinished(() => server.close())
    const response = await server.post('/api/chat', { agentId: 'a', messages })
    const body = await response.text()
    expect(body).toContain('disconnected during read: it exited with code 2')
    expect(body).not.toMatch(/10\.0\.0|bin\/node|its stderr/u)
    const entries = await entriesOf(server.store, response.headers.get('x-millrace-run-id')!)
    expect(only(entries, 'tool-result')).toMatchObject([
      { result: expect.not.stringContaining('its stderr'), isError: true },
    ])
    expect(only(entries, 'warning')).toMatchObject([
      { code: 'tool-failed', message: expect.stringMatching(/its stderr: no entry for 10\.0\.0\.7/u) },
    ])
  })

  test('a database that fails: no route names its file or repeats its words; the operator reads both', async () => {
    const lines: string[] = []
    const data = folder()
    const dir = folder({ 'a.yaml': agent().replace('script:m', 'demo:assistant') })
    const server = await serve({ dir, data, port: 0, env: {}, log: (line) => void lines.push(line) })
    onTestFinished(() => server.close())
    const db = new DatabaseSync(join(data, 'millrace.db'))
    db.exec('ALTER TABLE runs RENAME TO gone')
    db.close()
    const read = [
      '/api/runs',
      '/api/runs/run_x',
      '/api/runs/run_x/events',
      '/api/runs/run_x/requests',
      '/api/threads/t',
    ]
    const bodies = await Promise.all(
      [...read, '/api/stats', '/api/search?q=x', '/metrics', '/api/chat/t/stream'].map(async (route) => {
        const response = await fetch(server.url + route)
        return { route, status: response.status, body: await response.text() }
      }),
    )
    // The metrics are counted from the log, which is there.
    for (const { route, status } of bodies) expect([route, status]).toEqual([route, route === '/metrics' ? 200 : 503])
    for (const { route, body } of [...bodies, ...(await answers(server.url, 'a'))]) {
      expect(body, route).not.toMatch(/millrace\.db|no such table|SQLITE/u)
      expect(body, route).not.toContain(data)
    }
    expect(lines.join('\n')).toContain(`${join(data, 'millrace.db')}: no such table`)
  })

  test('an agent file that cannot be read is told by its name, without the folder', async () => {
    const dir = folder({ 'a.yaml': agent().replace('script:m', 'demo:assistant') })
    mkdirSync(join(dir, 'odd.yaml'))
    const server = await serve({ dir, data: 'none', port: 0, env: {} })
    onTestFinished(() => server.close())
    for (const route of ['/api/agents', '/']) {
      const body = await (await fetch(server.url + route)).text()
      expect(body).toContain('odd.yaml:1:1 this file cannot be read: it is a folder')
      expect(body).not.toContain(dir)
    }
  })
})
