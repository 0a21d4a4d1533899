import { afterEach, describe, expect, test, vi } from 'vitest'
import { parseToolInput, toToolSpec } from '../tool-input.ts'
import type { ToolContext } from '../tool.ts'
import { type McpWarning, readMcpTools, toToolImplementation, toToolName } from './mcp-tool.ts'
import { createMcpPool, type McpPool } from './pool.ts'
import { createJournal, everything } from './testing/everything.ts'

const journal = createJournal()
const real = createMcpPool({ all: { ...everything(journal), timeout: 60_000 } })
afterEach(async () => {
  await real.close()
  journal.remove()
})

const context: ToolContext = {
  signal: new AbortController().signal,
  toolCallId: 'c',
  runId: 'r',
  threadId: 't',
  messages: [],
  searchEarlier: async () => [],
}

describe('MCP tool', () => {
  test('a tool of an MCP server is a tool like any other', async () => {
    const tools = await readMcpTools(real, 'all')
    const sum = tools.get('all_get-sum')!
    expect(sum.timeout).toBe(60_000)
    expect(await toToolSpec('all_get-sum', sum)).toMatchObject({
      name: 'all_get-sum',
      description: 'Returns the sum of two numbers',
      inputSchema: { type: 'object', required: ['a', 'b'] },
    })
    expect(await parseToolInput(sum, '{"a":1,"b":"two"}')).toEqual({
      ok: false,
      error: expect.stringMatching(/do not match the tool's schema: b: /),
    })
    const input = await parseToolInput(sum, '{"a":1,"b":2}')
    expect(input).toEqual({ ok: true, value: { a: 1, b: 2 } })
    expect(await sum.execute!({ a: 1, b: 2 }, context)).toBe('The sum of 1 and 2 is 3.')
  })

  function poolWith(names: string[]) {
    const tools = names.map((name) => ({ name, inputSchema: { type: 'object' } }))
    const call = vi.fn<McpPool['call']>(async () => 'done')
    const pool: McpPool = {
      servers: new Map(),
      withHeaders: () => expect.fail('no headers here'),
      names: ['s'],
      timeout: () => 7,
      tools: async () => tools,
      call,
      exchange: () => expect.fail('nothing is exchanged here'),
      task: () => expect.fail('no tasks here'),
      endRun: async () => {},
      close: async () => {},
    }
    return { pool, call }
  }

  test('tools have the same order, however the server lists them', async () => {
    for (const names of [
      ['b', 'a', 'c'],
      ['c', 'b', 'a'],
    ]) {
      expect([...(await readMcpTools(poolWith(names).pool, 's')).keys()]).toEqual(['s_a', 's_b', 's_c'])
    }
  })

  test('names are such as every provider takes, and the server is called by its own', async () => {
    expect(toToolName('s', 'admin.tools/list users')).toBe('s_admin_tools_list_users')
    expect(toToolName('s', 'x'.repeat(100))).toHaveLength(64)
    const { pool, call } = poolWith(['a.b'])
    const tool = (await readMcpTools(pool, 's')).get('s_a_b')!
    await tool.execute!({ x: 1 }, context)
    expect(call).toHaveBeenCalledWith('s', 'a.b', { x: 1 }, expect.objectContaining({ signal: context.signal }))
  })

  test('of two tools that would have one name the first is offered, and the other is left out with a warning', async () => {
    const warned: McpWarning[] = []
    const { pool, call } = poolWith(['a.b', 'a b', 'c'])
    const tools = await readMcpTools(pool, 's', undefined, (warning) => warned.push(warning))
    expect([...tools.keys()]).toEqual(['s_a_b', 's_c'])
    await tools.get('s_a_b')!.execute!({}, context)
    expect(call.mock.calls[0]![1]).toBe('a.b')
    expect(warned).toEqual([
      {
        code: 'mcp-tool-left-out',
        leftOut: 's_a_b',
        message: expect.stringContaining('The tool "a b" of the MCP server "s" is left out'),
      },
    ])
  })

  test('the time of a call is set by who runs the tool', async () => {
    const { pool, call } = poolWith([])
    const tool = toToolImplementation(pool, 's', { name: 'a', inputSchema: {} })
    expect(tool.timeout).toBe(7)
    await tool.execute!({}, context)
    expect(call.mock.calls[0]![3]!.timeout).toBeGreaterThan(24 * 3600_000)
  })

  test('patterns that are not checked are told', async () => {
    const { pool } = poolWith(['a'])
    const unchecked = ['"^(?=x)" uses a lookahead, which is not supported']
    const warned: string[] = []
    const listing = { ...pool, tools: async () => [{ name: 'a', inputSchema: {}, unchecked }] }
    await readMcpTools(listing, 's', undefined, ({ message }) => warned.push(message))
    expect(warned).toEqual([`A pattern in a schema of the MCP tool "s_a" is not checked: ${unchecked[0]}.`])
  })
})
