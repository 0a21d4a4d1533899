import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createMcpPool, type McpPool } from './pool.ts'
import type { McpHttpServer } from './server.ts'
import { startEverything, type HttpChild } from './testing/everything.ts'
import { startStub, type HttpStub } from './testing/http-stub.ts'

const endings: (() => Promise<void>)[] = []

function poolOf(servers: Record<string, McpHttpServer>): McpPool {
  const pool = createMcpPool(servers)
  endings.unshift(() => pool.close())
  return pool
}

async function startServer(port?: number): Promise<HttpChild> {
  const server = await startEverything(port)
  endings.push(server.kill)
  return server
}

const eventually = (check: () => void) => vi.waitFor(check)

afterEach(async () => {
  for (const end of endings.splice(0)) await end()
})

const long = { duration: 60, steps: 1 }
const slow = 'trigger-long-running-operation'

describe('MCP over HTTP', () => {
  test('tools are listed and called, twenty at once, on two servers', async () => {
    const [one, two] = await Promise.all([startServer(), startServer()])
    const pool = poolOf({ one: { url: one.url }, two: { url: two.url } })
    const sums = Array.from({ length: 20 }, (_, b) => pool.call(b % 2 ? 'one' : 'two', 'get-sum', { a: 100, b }))
    expect(await Promise.all(sums)).toEqual(sums.map((_, b) => `The sum of 100 and ${b} is ${100 + b}.`))
    expect((await pool.tools('one')).map(({ name }) => name)).toContain('echo')
    await expect(pool.call('two', 'get-sum', { a: 'one' })).rejects.toMatchObject({ code: 'tool-failed' })
    expect(await pool.call('one', 'get-structured-content', { location: 'Chicago' })).toMatchObject({ temperature: 36 })
  })

  test('calls are stopped and time out', async () => {
    const { url } = await startServer()
    const pool = poolOf({ all: { url, timeout: 300 } })
    await expect(pool.call('all', slow, long)).rejects.toMatchObject({ code: 'timed-out' })
    const stop = new AbortController()
    const call = expect(pool.call('all', slow, long, { signal: stop.signal })).rejects.toMatchObject({
      code: 'aborted',
    })
    stop.abort()
    await call
    expect(await pool.call('all', 'echo', { message: 'a' }, { timeout: 60_000 })).toBe('Echo: a')
  })

  test('a server killed in mid-call fails that call at once; back again, it is used again', async () => {
    const server = await startServer()
    const pool = poolOf({ all: { url: server.url } })
    expect(await pool.call('all', 'echo', { message: 'a' })).toBe('Echo: a')
    const call = expect(pool.call('all', slow, long)).rejects.toMatchObject({
      code: 'mcp-lost',
      message: expect.stringContaining(`"all" disconnected during ${slow}`),
    })
    await server.kill()
    await call
    await expect(pool.call('all', 'echo', { message: 'b' })).rejects.toMatchObject({
      code: 'mcp-unreachable',
      message: `The MCP server "all" cannot be reached: nothing listens at its url (ECONNREFUSED).`,
    })
    await startServer(server.port)
    expect(await pool.call('all', 'echo', { message: 'c' })).toBe('Echo: c')
  })

  test('a server that was started anew between two calls is called as before', async () => {
    const server = await startServer()
    const pool = poolOf({ all: { url: server.url } })
    expect(await pool.call('all', 'echo', { message: 'a' })).toBe('Echo: a')
    await server.kill()
    await startServer(server.port)
    const calls = ['b', 'c', 'd'].map((message) => pool.call('all', 'echo', { message }))
    expect(await Promise.all(calls)).toEqual(['Echo: b', 'Echo: c', 'Echo: d'])
  })

  let stub: HttpStub
  beforeEach(async () => {
    stub = await startStub()
    endings.push(stub.close)
  })

  test('headers are sent, a stopped call is cancelled, and closing ends the session', async () => {
    const pool = poolOf({ x: { url: `${stub.url}/?key=a`, headers: { authorization: 'Bearer b' } } })
    // The SDK would print a message to stdout, because this server has no tools.
    const printed = vi.spyOn(console, 'debug')
    expect(await pool.tools('x')).toEqual([])
    expect(printed).not.toHaveBeenCalled()
    expect(await pool.call('x', 'empty', {})).toBe('')
    expect(stub.headers).toMatchObject({ authorization: 'Bearer b', 'mcp-session-id': '1' })

    const stop = new AbortController()
    const call = pool.call('x', 'hold', {}, { signal: stop.signal })
    await eventually(() => expect(stub.held).toHaveLength(1))
    stop.abort()
    await expect(call).rejects.toMatchObject({ code: 'aborted' })
    await eventually(() => expect(stub.told).toContain('notifications/cancelled'))
    await pool.close()
    expect(stub.told.at(-1)).toBe('DELETE')
  })

  test.each([404, 400])(
    'a server that has forgotten the session (%i) is called again in a new one, once',
    async (status) => {
      const pool = poolOf({ x: { url: stub.url } })
      expect(await pool.call('x', 'empty', {})).toBe('')
      stub.forget(status)
      stub.told.length = 0
      const calls = [1, 2, 3].map(() => pool.call('x', 'empty', {}))
      expect(await Promise.all(calls)).toEqual(['', '', ''])
      expect(stub.told.filter((method) => method === 'initialize')).toHaveLength(1)
    },
  )

  test('a server that never takes a call is asked once', async () => {
    const pool = poolOf({ x: { url: stub.url } })
    expect(await pool.tools('x')).toEqual([])
    stub.forget(400)
    await expect(pool.call('x', 'empty', {})).rejects.toMatchObject({
      code: 'mcp-lost',
      message: `The MCP server "x" rejected empty: it answered HTTP 400.`,
    })
    expect(stub.told.filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  test.each([
    ['breaks', (stub: HttpStub) => stub.held[0]!.destroy()],
    ['ends', (stub: HttpStub) => stub.held[0]!.end()],
  ])('an answer that %s before it was given fails its call, and only that', async (_, cut) => {
    const pool = poolOf({ x: { url: stub.url } })
    const call = pool.call('x', 'hold', {})
    await eventually(() => expect(stub.held).toHaveLength(1))
    const other = pool.call('x', 'hold', {})
    await eventually(() => expect(stub.held).toHaveLength(2))
    cut(stub)
    await expect(call).rejects.toMatchObject({
      code: 'mcp-lost',
      message: expect.stringContaining('disconnected during hold: the response stream ended early.'),
    })
    expect(await pool.call('x', 'empty', {})).toBe('')
    await pool.close()
    await expect(other).rejects.toMatchObject({ code: 'mcp-closed' })
  })

  test.each([
    ['/gone', 10_000, 'it answered HTTP 404; check its url in the config'],
    ['/locked', 10_000, 'it answered HTTP 401; check its headers in the config'],
    ['/mute', 300, 'it was not ready within 300 ms; raise connectTimeout if it needs longer'],
  ])('a wrong url says why in one line, without its secrets: %s', async (path, connectTimeout, why) => {
    const pool = poolOf({ x: { url: `${stub.url}${path}?key=secret`, connectTimeout } })
    const message = `The MCP server "x" cannot be reached: ${why}.`
    await expect(pool.call('x', 'echo', {})).rejects.toMatchObject({ code: 'mcp-unreachable', message })
  })
})
