/** No text becomes code: not in the source, not in what a tool is given, and not in the schemas that servers send. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Speaks just enough MCP. */
const server = `
  const schema = (properties) => ({ type: 'object', properties })
  const answers = {
    initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }),
    'tools/list': () => ({ tools: [{ name: 't', inputSchema: schema({ a: { type: 'string' } }), outputSchema: schema({ n: { anyOf: [{ type: 'number' }, { pattern: '^(a+)+$' }] } }) }] }),
    'tools/call': ({ arguments: { n } }) => ({ content: [], structuredContent: { n } }),
  }
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) }))
  })`

test('a tool of an MCP server with schemas for its input and its output is listed, checked and called without making code, whatever its patterns', async () => {
  const root = new URL('..', import.meta.url).href
  const child = await promisify(execFile)(process.execPath, [
    // From now on V8 throws when a text is to become code.
    '--disallow-code-generation-from-strings',
    '--input-type=module',
    '--eval',
    `
    import { createMcpPool } from '${root}src/tools/mcp/pool.ts'
    import { readMcpTools } from '${root}src/tools/mcp/mcp-tool.ts'
    import { parseToolInput } from '${root}src/tools/tool-input.ts'
    const server = ${JSON.stringify(server)}
    const pool = createMcpPool({ s: { command: process.execPath, args: ['--eval', server] } })
    const tool = (await readMcpTools(pool, 's')).get('s_t')
    const said = []
    for (const text of ['{"a":"b"}', '{"a":1}']) said.push((await parseToolInput(tool, text)).ok)
    const long = 'a'.repeat(100_000) + 'b'
    for (const n of [1, 'x', long]) said.push(await pool.call('s', 't', { n }).catch((error) => error.message))
    await pool.close()
    console.log(JSON.stringify(said))
    `,
  ])
  const misfit = 'n: matches none of the alternatives'
  expect(JSON.parse(child.stdout)).toEqual([
    true,
    false,
    { n: 1 },
    expect.stringContaining(misfit),
    expect.stringContaining(misfit),
  ])
}, 30_000)
