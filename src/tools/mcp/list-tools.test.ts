/** What servers list as their tools, and what of it can be used. */
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listTools } from './list-tools.ts'
import { readMcpTools } from './mcp-tool.ts'
import { createMcpPool } from './pool.ts'

const schema = { type: 'object', properties: {} }

function nested(levels: number): object {
  return levels === 0 ? {} : { items: nested(levels - 1) }
}

const odd: [reason: string, tool: unknown][] = [
  ['it has no inputSchema', { name: 'odd' }],
  ['its inputSchema is null, not a schema', { name: 'odd', inputSchema: null }],
  ['its inputSchema is a boolean, not a schema', { name: 'odd', inputSchema: true }],
  ['its inputSchema has no type; it must be "object"', { name: 'odd', inputSchema: {} }],
  ['its inputSchema is of the type "string"; it must be "object"', { name: 'odd', inputSchema: { type: 'string' } }],
  [
    'its inputSchema is of the type ["object","null"]; it must be "object"',
    { name: 'odd', inputSchema: { type: ['object', 'null'] } },
  ],
  ['the properties of its inputSchema are a list', { name: 'odd', inputSchema: { type: 'object', properties: [] } }],
  [
    '"required" of its inputSchema is no list of names',
    { name: 'odd', inputSchema: { type: 'object', required: true } },
  ],
  [
    'its outputSchema is of the type "array"; it must be "object"',
    { name: 'odd', inputSchema: schema, outputSchema: { type: 'array' } },
  ],
  ['its outputSchema is null, not a schema', { name: 'odd', inputSchema: schema, outputSchema: null }],
  ['its description is null, not text', { name: 'odd', description: null, inputSchema: schema }],
  ['its description is a list, not text', { name: 'odd', description: ['x'], inputSchema: schema }],
  [
    'its inputSchema refers to another document, "https://else.example/s.json", which is not loaded',
    { name: 'odd', inputSchema: { type: 'object', properties: { a: { $ref: 'https://else.example/s.json' } } } },
  ],
  [
    'its outputSchema refers to another document, "other.json#/x", which is not loaded',
    { name: 'odd', inputSchema: schema, outputSchema: { type: 'object', allOf: [{ $dynamicRef: 'other.json#/x' }] } },
  ],
  [
    'its inputSchema is nested deeper than 64 levels',
    { name: 'odd', inputSchema: { type: 'object', properties: { a: nested(64) } } },
  ],
  [
    'it runs only as a task of version 2025-11-25, and those tasks are not spoken',
    { name: 'odd', inputSchema: schema, execution: { taskSupport: 'required' } },
  ],
]

const nameless: unknown[] = [
  { inputSchema: schema },
  { name: '', inputSchema: schema },
  { name: 7, inputSchema: schema },
  null,
  'x',
]
/** Odd in what is of no use here. */
const fine = { name: 'fine', inputSchema: schema, title: null, annotations: 'none', icons: 7, _meta: [] }

/** Too large for the environment of a program. */
const large: [reason: string, tool: unknown][] = [
  [
    'its inputSchema has 65564 bytes; at most 65536 are read',
    { name: 'odd', inputSchema: { type: 'object', title: 'x'.repeat(65_536) } },
  ],
  [
    'its inputSchema has 65584 bytes; at most 65536 are read',
    { name: 'odd', inputSchema: { type: 'object', title: '\u00e9'.repeat(32_778) } },
  ],
]

/** Beside those that are left out. */
const usable: [what: string, inputSchema: object][] = [
  ['a reference inside of the schema', { type: 'object', properties: { a: { $ref: '#/$defs/b' } }, $defs: { b: {} } }],
  ['a property with the name $ref', { type: 'object', properties: { $ref: { type: 'string' } } }],
  ['data that looks like a reference', { type: 'object', properties: { a: { const: { $ref: 'x.json' } } } }],
  ['as many bytes as are read', { type: 'object', title: 'x'.repeat(65_536 - 28) }],
]

function serverOf(pages: unknown[][], last?: unknown) {
  const server = fileURLToPath(new URL('./testing/odd-server.ts', import.meta.url))
  const env = { ODD: JSON.stringify(pages), ...(last !== undefined && { LAST: JSON.stringify(last) }) }
  const pool = createMcpPool({ odd: { command: process.execPath, args: [server], env } })
  onTestFinished(() => pool.close())
  return pool
}

describe('listing of MCP tools', () => {
  test(
    'a real server: each odd tool is left out with a warning that names it, and the others work',
    { timeout: 60_000 },
    async () => {
      const named = odd.map(([, tool], i) => ({ ...(tool as object), name: `odd ${i}` }))
      const checked = { name: 'checked', inputSchema: schema, outputSchema: { type: 'object', required: ['more'] } }
      const pool = serverOf([[...named, fine], [...nameless], [checked]])
      const warned: string[] = []
      const tools = await readMcpTools(pool, 'odd', undefined, ({ code, message }) => warned.push(`${code} ${message}`))
      expect([...tools.keys()]).toEqual(['odd_checked', 'odd_fine'])
      expect(warned.slice(0, odd.length)).toEqual(
        odd.map(([why], i) => `mcp-tool-left-out The tool "odd ${i}" of the MCP server "odd" is left out: ${why}.`),
      )
      expect(warned.slice(odd.length)).toEqual(nameless.map(() => expect.stringContaining('it has no name')))
      expect(await pool.call('odd', 'fine', {})).toEqual({ called: 'fine' })
      // What a tool returns is held to its schema as before.
      await expect(pool.call('odd', 'checked', {})).rejects.toMatchObject({
        message: expect.stringContaining('output schema'),
      })
    },
  )

  test(
    'a model gets the picture that stands beside structured content; a step gets the content',
    { timeout: 60_000 },
    async () => {
      const pool = serverOf([[{ name: 'shot', inputSchema: schema }]])
      const picture = { type: 'image', data: 'QUJD', mimeType: 'image/png' }
      expect(await pool.call('odd', 'shot', {}, { forModel: true })).toEqual([
        // The bytes once.
        { type: 'text', text: '{"called":"shot","picture":{"data":"(see the file)"}}' },
        picture,
      ])
      expect(await pool.call('odd', 'shot', {})).toEqual({ called: 'shot', picture: { data: 'QUJD' } })
    },
  )

  test('a property that is required and has a default need not be given: it is sent', { timeout: 60_000 }, async () => {
    const properties = { scale: { type: 'string', default: 'css' }, a: { type: 'string' } }
    const inputSchema = { type: 'object', properties, required: ['scale', 'a'] }
    const pool = serverOf([[{ name: 'shoot', inputSchema }]])
    const tools = await readMcpTools(pool, 'odd')
    expect(tools.get('odd_shoot')!.parameters).toMatchObject({ required: ['a'] })
    expect(await pool.call('odd', 'shoot', { a: 'x' })).toMatchObject({ given: { scale: 'css', a: 'x' } })
    expect(await pool.call('odd', 'shoot', { a: 'x', scale: 'd' })).toMatchObject({ given: { scale: 'd', a: 'x' } })
  })

  test.each(large)('%s', async (why, tool) => {
    const { tools } = await listTools(async () => ({ tools: [tool, fine] }))
    expect([tools.map(({ name }) => name), tools.leftOut]).toEqual([['fine'], [{ name: 'odd', why }]])
  })

  test.each(usable)('%s is fine', async (_, inputSchema) => {
    const { tools } = await listTools(async () => ({ tools: [{ name: 'a', inputSchema }] }))
    expect([tools.length, tools.leftOut]).toEqual([1, undefined])
  })

  const header = (name: unknown, more: object = { type: 'string' }) => ({ 'x-mcp-header': name, ...more })
  test.each([
    ['is not the name of a header', { a: header('two words') }],
    ['is not the name of a header', { a: header('') }],
    ['is not the name of a header', { a: header(7) }],
    ['is not a string, integer or boolean', { a: header('A', { type: 'number' }) }],
    ['is not a string, integer or boolean', { a: header('A', {}) }],
    ['is there twice', { a: header('Region'), b: { type: 'object', properties: { c: header('region') } } }],
    ['only "properties" lead to', { a: { type: 'array', items: header('A') } }],
    ['only "properties" lead to', { a: { anyOf: [header('A')] } }],
  ])('where arguments are sent as headers, an x-mcp-header %s: %j', async (why, properties) => {
    const inputSchema = { type: 'object', properties }
    const page = async () => ({ tools: [{ name: 'odd', inputSchema }, fine] })
    const { tools } = await listTools(page, { sendsHeaders: true })
    expect(tools.map(({ name }) => name)).toEqual(['fine'])
    expect(tools.leftOut).toEqual([{ name: 'odd', why: expect.stringContaining(why) }])
    expect((await listTools(page)).tools).toHaveLength(2)
  })

  test('a right x-mcp-header is no reason to leave a tool out', async () => {
    const properties = {
      a: header('Region'),
      b: { type: 'object', properties: { c: header('Zone', { type: 'integer' }) } },
    }
    const page = async () => ({ tools: [{ name: 'a', inputSchema: { type: 'object', properties } }] })
    expect((await listTools(page, { sendsHeaders: true })).tools).toHaveLength(1)
  })

  test('a description is cut at 4,000 characters, and what cannot be seen is removed', async () => {
    const description = `Reads\u202e a \u200bfile\u0007.\n${'x'.repeat(5000)}`
    const { tools } = await listTools(async () => ({ tools: [{ name: 'a', description, inputSchema: schema }] }))
    expect(tools[0]!.description).toHaveLength(4000)
    expect(tools[0]!.description).toMatch(/^Reads a file\.\nx+\u2026$/u)
  })

  test.each([
    ['null', null],
    ['nothing', undefined],
    ['an empty text', ''],
    ['a page that was read already', '1'],
  ])('%s as the next page is the end of the list', async (_, nextCursor) => {
    const asked: (string | undefined)[] = []
    const { tools } = await listTools(async (cursor) => {
      asked.push(cursor)
      return {
        tools: [{ name: `t${asked.length}`, inputSchema: schema }],
        nextCursor: cursor === undefined ? '1' : nextCursor,
      }
    })
    expect(tools.map(({ name }) => name)).toEqual(['t1', 't2'])
    expect(asked).toEqual([undefined, '1'])
    expect(tools.leftOut).toBe(undefined)
  })

  test('a long list is read up to its 200th page, and a warning says so', async () => {
    const listOf = (pages: number) =>
      listTools(async (cursor = '0') => {
        const next = Number(cursor) + 1
        return {
          tools: [{ name: `t${cursor}`, inputSchema: schema }],
          ...(next < pages && { nextCursor: String(next) }),
        }
      })
    const whole = await listOf(200)
    expect([whole.tools.length, whole.tools.leftOut]).toEqual([200, undefined])
    const endless = await listOf(Infinity)
    expect(endless.tools).toHaveLength(200)
    expect(endless.tools.leftOut).toEqual([
      { why: 'its list has more than 200 pages: what is behind them is not read' },
    ])
    const warned: string[] = []
    const pool = { ...serverOf([[]]), tools: async () => endless.tools }
    await readMcpTools(pool, 'odd', undefined, ({ message }) => warned.push(message))
    expect(warned).toEqual([
      'Tools of the MCP server "odd" are left out: its list has more than 200 pages: what is behind them is not read.',
    ])
  })

  test('a list of very many tools, or of slow pages, is not read to its end', async () => {
    let page = 0
    let time = 0
    const many = await listTools(async () => {
      const tools = Array.from({ length: 1000 }, (_, i) => ({ name: `t${page}_${i}`, inputSchema: schema }))
      return { tools, nextCursor: String(++page) }
    })
    expect([page, many.tools.length]).toEqual([10, 10_000])
    expect(many.tools.leftOut).toEqual([{ why: expect.stringContaining('more than 10000 tools') }])
    const slow = await listTools(
      async () => {
        time += 25_000
        return { tools: [{ name: `t${time}`, inputSchema: schema }], nextCursor: String(time) }
      },
      { within: 60_000, now: () => time },
    )
    expect([slow.tools.length, slow.tools.leftOut]).toEqual([3, [{ why: expect.stringContaining('60000 ms') }]])
  })

  test('what is no list at all has no tools', async () => {
    for (const answer of [undefined, null, {}, { tools: null }, { tools: {} }]) {
      expect((await listTools(async () => answer)).tools).toEqual([])
    }
  })
})
