/** Servers of both eras, made with the official SDK, over stdio and over HTTP. */
import { rmSync } from 'node:fs'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sdkOverStdio, startSdk, type ServedEra } from './testing/sdk.ts'
import type { MillraceError } from '../../part/error.ts'
import type { McpStdioServer } from './server.ts'
import { journal, journalEachTest, poolOf, script } from './testing/pools.ts'

journalEachTest()

const eras: [era: ServedEra, over: 'stdio' | 'http'][] = (['both', 'modern', 'legacy'] as const).flatMap((era) => [
  [era, 'stdio'],
  [era, 'http'],
])

async function serve(era: ServedEra, over: 'stdio' | 'http') {
  if (over === 'stdio') return poolOf({ s: sdkOverStdio(journal, era) })
  const { url, kill } = await startSdk(journal, era)
  onTestFinished(kill)
  return poolOf({ s: { url } })
}

const methods = () => journal.lines().flatMap((line) => (line.startsWith('method ') ? [line.slice(7)] : []))

describe.for(eras)('a server that speaks %s, over %s', ([era, over]) => {
  test('is asked for its version first, and spoken to in it', async () => {
    const pool = await serve(era, over)
    expect(await pool.call('s', 'echo', { text: 'hi' })).toBe('You said hi')
    expect(methods()[0]).toBe('server/discover')
    expect(methods().includes('initialize')).toBe(era === 'legacy')
  })

  test('lists its tools, and runs them: text, structured content, errors', async () => {
    const pool = await serve(era, over)
    expect((await pool.tools('s')).map(({ name }) => name)).toContain('add')
    expect(await pool.call('s', 'add', { a: 1, b: 2 })).toEqual({ sum: 3 })
    await expect(pool.call('s', 'fail', {})).rejects.toMatchObject({ code: 'tool-failed', message: 'It is closed.' })
    await expect(pool.call('s', 'add', { a: 'one' })).rejects.toMatchObject({ code: 'tool-failed' })
    await expect(pool.call('s', 'none', {})).rejects.toMatchObject({ code: 'tool-failed' })
    const sums = Array.from({ length: 20 }, (_, b) => pool.call('s', 'add', { a: 100, b }))
    expect(await Promise.all(sums)).toEqual(sums.map((_, b) => ({ sum: 100 + b })))
  })

  test('is told of a call that is stopped or takes too long', async () => {
    const pool = await serve(era, over)
    const stop = new AbortController()
    const call = pool.call('s', 'hold', {}, { signal: stop.signal })
    await vi.waitFor(() => expect(journal.lines()).toContain('hold'))
    stop.abort()
    await expect(call).rejects.toMatchObject({ code: 'aborted' })
    await vi.waitFor(() => expect(journal.lines()).toContain('hold stopped'))
    await expect(pool.call('s', 'hold', {}, { timeout: 50 })).rejects.toMatchObject({ code: 'timed-out' })
    expect(await pool.call('s', 'echo', { text: 'still' })).toBe('You said still')
  })

  test.runIf(era !== 'legacy' || over === 'stdio')('says when its tools change', async () => {
    const pool = await serve(era, over)
    const names = async () => (await pool.tools('s')).map(({ name }) => name)
    expect(await names()).not.toContain('grown')
    const lists = () => methods().filter((method) => method === 'tools/list').length
    if (era !== 'legacy') {
      await vi.waitFor(() => expect(methods()).toContain('subscriptions/listen'))
      // The list is read again if the acknowledgement comes late; after that, not at each use.
      await names()
    }
    const before = lists()
    await names()
    expect(lists() - before).toBe(0)
    expect(await pool.call('s', 'grow', {})).toBe('grown')
    await vi.waitFor(async () => expect(await names()).toContain('grown'))
  })

  test('asks nobody, if nobody can be asked', async () => {
    const pool = await serve(era, over)
    await expect(pool.call('s', 'ask', {})).rejects.toMatchObject({ code: 'tool-failed' })
    // The SDK does not run a tool whose question cannot be asked to its end.
    expect(journal.lines().some((line) => line.includes('accept'))).toBe(false)
  })
})

test('an HTTP server that is legacy after a restart, and modern again, is called as before', async () => {
  const first = await startSdk(journal, 'modern')
  onTestFinished(first.kill)
  const pool = poolOf({ s: { url: first.url } })
  expect(await pool.call('s', 'echo', { text: '1' })).toBe('You said 1')
  await first.kill()
  const second = await startSdk(journal, 'legacy', first.port)
  onTestFinished(second.kill)
  expect(await pool.call('s', 'echo', { text: '2' })).toBe('You said 2')
  expect(await pool.call('s', 'echo', { text: '3' })).toBe('You said 3')
  await second.kill()
  const third = await startSdk(journal, 'modern', first.port)
  onTestFinished(third.kill)
  expect(await pool.call('s', 'echo', { text: '4' })).toBe('You said 4')
  expect(journal.lines().filter((line) => line.startsWith('echo'))).toEqual(['echo 1', 'echo 2', 'echo 3', 'echo 4'])
})

/** Ends at every request before `initialize`, as programs of older SDKs do. */
const strict = `
const note = (line) => require('fs').appendFileSync(process.env.JOURNAL, line + '\\n')
note('pid ' + process.pid)
let isReady = false
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  note('method ' + method)
  if (method === 'initialize') isReady = true
  if (!isReady) process.exit(1)
  const results = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
    'tools/call': { content: [{ type: 'text', text: 'strict' }] },
  }
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }))
})`

test('a program that ends at server/discover is started again for initialize, once, and not asked again', async () => {
  const pool = poolOf({ s: { ...script(strict), env: { JOURNAL: journal.file } } })
  expect(await pool.call('s', 'x', {})).toBe('strict')
  expect(methods()).toEqual(['server/discover', 'initialize', 'notifications/initialized', 'tools/call'])
  expect(journal.pids()).toHaveLength(2)
  process.kill(journal.pids()[1]!, 'SIGKILL')
  await vi.waitFor(async () => expect(await pool.call('s', 'x', {}).catch(() => 'lost')).toBe('strict'))
  expect(methods().filter((method) => method === 'server/discover')).toHaveLength(1)
  expect(journal.pids()).toHaveLength(3)
})

test('a program that is taken for a legacy one, and refuses the handshake, is asked for its version once more', async () => {
  const { command, args = [], env } = sdkOverStdio(journal, 'modern') as McpStdioServer
  const code = `
    const { existsSync, writeFileSync } = require('fs')
    const mark = process.env.JOURNAL + '.started'
    if (existsSync(mark)) import(${JSON.stringify(args[0])})
    else { ${strict.replace('isReady = true', "isReady = true, writeFileSync(mark, '')")} }`
  onTestFinished(() => rmSync(`${journal.file}.started`, { force: true }))
  const pool = poolOf({ s: { command, args: ['--no-warnings', '-e', code], env: env! } })
  expect(await pool.call('s', 'x', {})).toBe('strict')
  process.kill(journal.pids().at(-1)!, 'SIGKILL')
  const said = new Set<unknown>()
  await vi.waitFor(async () => {
    said.add(await pool.call('s', 'echo', { text: 'new' }).catch((error: MillraceError) => error.code))
    expect([...said]).toContain('You said new')
  })
  said.delete('mcp-lost')
  expect([...said]).toEqual(['You said new'])
})

test('a program that ends at both is not started a third time', async () => {
  const ends = `require('fs').appendFileSync(process.env.JOURNAL, 'pid ' + process.pid + '\\n'); process.stdin.once('data', () => process.exit(3))`
  const pool = poolOf({ s: { ...script(ends), env: { JOURNAL: journal.file } } })
  await expect(pool.call('s', 'x', {})).rejects.toMatchObject({
    code: 'mcp-unreachable',
    message: 'The MCP server "s" cannot be reached: it exited with code 3.',
  })
  expect(journal.pids()).toHaveLength(2)
})
