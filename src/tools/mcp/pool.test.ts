import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { everything, lines } from './testing/everything.ts'
import { journal, journalEachTest, poolOf, node, mute } from './testing/pools.ts'

journalEachTest()

describe('MCP pool', () => {
  test('tools are listed and called; a server starts with its first use, and once', async () => {
    const pool = poolOf({ all: everything(journal) })
    expect(pool.names).toEqual(['all'])
    expect(journal.pids()).toEqual([])

    const sums = Array.from({ length: 20 }, (_, b) => pool.call('all', 'get-sum', { a: 100, b }))
    expect(await Promise.all(sums)).toEqual(sums.map((_, b) => `The sum of 100 and ${b} is ${100 + b}.`))
    const tools = await pool.tools('all')
    expect(tools.find(({ name }) => name === 'echo')).toEqual({
      name: 'echo',
      description: expect.any(String),
      inputSchema: expect.objectContaining({ type: 'object', required: ['message'] }),
    })
    expect(journal.pids()).toHaveLength(1)
  })

  test('a result is the structured content, the text, or the content blocks', async () => {
    const pool = poolOf({ all: everything(journal), own: lines(journal) })
    expect(await pool.call('all', 'get-structured-content', { location: 'Chicago' })).toEqual({
      temperature: 36,
      conditions: 'Light rain / drizzle',
      humidity: 82,
    })
    expect(await pool.call('all', 'get-tiny-image', undefined)).toEqual([
      { type: 'text', text: expect.any(String) },
      { type: 'image', data: expect.any(String), mimeType: 'image/png' },
      { type: 'text', text: expect.any(String) },
    ])
    expect(await pool.call('own', 'empty', {})).toBe('')
  })

  test('an error result is thrown with the words of the server', async () => {
    const pool = poolOf({ all: everything(journal) })
    await expect(pool.call('all', 'get-sum', { a: 'one' })).rejects.toMatchObject({
      name: 'MillraceError',
      code: 'tool-failed',
      message: expect.stringContaining('get-sum'),
    })
    await expect(pool.call('all', 'no-such-tool', {})).rejects.toMatchObject({
      code: 'tool-failed',
      message: expect.stringContaining('no-such-tool'),
    })
  })

  test('a list in pages is one list, asked for once until the server says that it has changed', async () => {
    const pool = poolOf({ own: lines(journal) })
    const names = async () => (await pool.tools('own')).map(({ name }) => name)
    const before = ['hold', 'grow', 'empty', 'big']
    expect(await Promise.all([names(), names()])).toEqual([before, before])
    expect(await names()).toEqual(before)
    expect(journal.lines().filter((line) => line.startsWith('list'))).toEqual(['list', 'list second'])

    expect(await pool.call('own', 'grow', {})).toBe('grown')
    expect(await names()).toEqual([...before, 'grown'])
  })

  test('a message beyond every measure ends the connection, not the memory', async () => {
    const pool = poolOf({ own: lines(journal) }, { lineBytes: 100_000, bodyBytes: 100_000 })
    await expect(pool.call('own', 'big', {})).rejects.toMatchObject({
      code: 'line-too-long',
      message: expect.stringContaining('limits.lineBytes'),
    })
  })

  test('a long line without an end is joined once, not at every piece of it', async () => {
    const copied: number[] = []
    const { concat } = Buffer
    const spy = vi.spyOn(Buffer, 'concat').mockImplementation((list, length) => {
      const joined = concat(list, length)
      copied.push(joined.length)
      return joined
    })
    onTestFinished(() => spy.mockRestore())
    const endless = `const write = () => { while (process.stdout.write('x'.repeat(8192))); process.stdout.once('drain', write) }
    process.stdout.on('error', () => process.exit())
    process.stdin.once('data', write)`
    const lineBytes = 4 << 20
    const pool = poolOf({ own: { command: node, args: ['-e', endless] } }, { lineBytes, bodyBytes: lineBytes })
    await expect(pool.call('own', 'x', {})).rejects.toMatchObject({ code: 'line-too-long' })
    expect(copied.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(2 * lineBytes)
  })

  test('an unknown server is said with those that are known', async () => {
    const pool = poolOf({ one: mute, two: mute })
    await expect(pool.call('three', 'x', {})).rejects.toMatchObject({
      code: 'unknown-mcp-server',
      message: 'There is no MCP server "three". Known: one, two.',
    })
  })
})
