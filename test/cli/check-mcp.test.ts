/** `millrace check` starts the MCP servers of the config that are programs. */
import { describe, expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'

const agent = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true, tools: [{ mcp: x }] } }]'
const withServer = (script: string, more = '') =>
  folder({
    'agents/a.yaml': agent,
    'agents/millrace.config.ts': `export default { mcpServers: { x: { command: process.execPath, args: ['-e', ${JSON.stringify(script)}]${more} } } }`,
  })

describe('millrace check: MCP servers', () => {
  test('a server that exits at its start is an error with its last words, at once', { timeout: 60_000 }, async () => {
    // It would be given an hour: its exit is noticed, not its silence.
    const cwd = withServer('console.error("Error: no GITHUB_TOKEN"); process.exit(3)', ', connectTimeout: 3600000')
    const { code, out, err } = await ran(['check', 'agents'], { cwd })
    const message = 'The MCP server "x" cannot be reached: it exited with code 3: its stderr: Error: no GITHUB_TOKEN'
    expect([code, out]).toEqual([1, `agents: ${message}\n`])
    expect(err).toContain('1 file checked, 1 error')
    const json = await ran(['check', 'agents', '--json'], { cwd })
    expect(JSON.parse(json.out)).toMatchObject({ faults: [], servers: [{ folder: 'agents', message }] })
  })

  test(
    'tools that are left out are told; so is a server that lacks a variable here, as it may have it elsewhere',
    { timeout: 60_000 },
    async () => {
      const answers = `require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    const result = method === 'initialize'
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
      : { tools: [{ name: 'bare' }] }
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })`
      const odd = await ran(['check', 'agents'], { cwd: withServer(answers) })
      expect([odd.code, odd.out]).toEqual([0, ''])
      expect(odd.err).toContain('warning: The tool "bare" of the MCP server "x" is left out: it has no inputSchema.')
      const keyless = await ran(['check', 'agents'], { cwd: withServer(answers, ", env: ['NO_SUCH_KEY']") })
      expect([keyless.code, keyless.err]).toEqual([0, expect.stringContaining('NO_SUCH_KEY')])
    },
  )
})
