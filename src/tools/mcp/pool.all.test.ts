import { describe, expect, test, vi, onTestFinished } from 'vitest'
import { createMcpPool } from './pool.ts'
import type { McpServer } from './server.ts'
import { StdioTransport } from './stdio-transport.ts'
import { everything, exitWithoutClosing, isAlive, lines, underShell } from './testing/everything.ts'
import { journal, journalEachTest, poolOf, eventually, node, script, mute } from './testing/pools.ts'

journalEachTest()

const long = { duration: 60, steps: 1 }
const slow = 'trigger-long-running-operation'

describe('MCP pool', () => {
  test('a call that takes too long is given up, and the server is told', async () => {
    const pool = poolOf({ own: { ...lines(journal), timeout: 300 } })
    await expect(pool.call('own', 'hold', {})).rejects.toMatchObject({
      code: 'timed-out',
      message: expect.stringContaining('did not answer hold within 300 ms'),
    })
    await eventually(() => expect(journal.lines()).toContain('notifications/cancelled'))
    await expect(pool.call('own', 'hold', {}, { timeout: 50 })).rejects.toMatchObject({
      message: expect.stringContaining('within 50 ms'),
    })
    expect(await pool.call('own', 'empty', {}, { timeout: 60_000 })).toBe('')
    expect(journal.pids()).toHaveLength(1)
  })

  test('a call that is stopped rejects at once, and the server is told', async () => {
    const pool = poolOf({ own: lines(journal) })
    const stop = new AbortController()
    const call = pool.call('own', 'hold', {}, { signal: stop.signal })
    await eventually(() => expect(journal.lines()).toContain('hold'))
    stop.abort()
    await expect(call).rejects.toMatchObject({ code: 'aborted' })
    await eventually(() => expect(journal.lines()).toContain('notifications/cancelled'))
    await expect(pool.call('own', 'empty', {}, { signal: stop.signal })).rejects.toMatchObject({ code: 'aborted' })
    await expect(pool.tools('own', stop.signal)).rejects.toMatchObject({ code: 'aborted' })
  })

  test('one who stops while the server starts leaves it to the others', async () => {
    const pool = poolOf({ all: everything(journal) })
    const stop = new AbortController()
    const stopped = pool.call('all', 'echo', { message: 'a' }, { signal: stop.signal })
    const other = pool.call('all', 'echo', { message: 'b' })
    stop.abort()
    await expect(stopped).rejects.toMatchObject({ code: 'aborted' })
    expect(await other).toBe('Echo: b')
    expect(journal.pids()).toHaveLength(1)
  })

  test('nobody has to wait for a server that does not get ready', async () => {
    const pool = poolOf({ mute })
    const stop = new AbortController()
    const call = pool.call('mute', 'x', {}, { signal: stop.signal })
    stop.abort()
    await expect(call).rejects.toMatchObject({ code: 'aborted' })
  })

  test('what is closed while it is being started ends', async () => {
    const transport = new StdioTransport(lines(journal), { who: 'the server' })
    const started = transport.start()
    await transport.close()
    await started
    await expect(transport.send({ jsonrpc: '2.0', method: 'x' })).rejects.toThrow()
  })

  test('a server that has shut its stdin is ended', async () => {
    const ready = `console.log('{"jsonrpc":"2.0","method":"notifications/ready"}')`
    const transport = new StdioTransport(script(`require('fs').closeSync(0); ${ready}; setInterval(() => {}, 1000)`), {
      who: 'the server',
    })
    const heard = new Promise<unknown>((resolve) => (transport.onmessage = resolve))
    const closed = new Promise<void>((resolve) => (transport.onclose = resolve))
    await transport.start()
    await heard
    await expect(transport.send({ jsonrpc: '2.0', method: 'x' })).rejects.toThrow('EPIPE')
    await closed
    expect(transport.failure).toBe('it has closed its stdin')
  })

  test('a server killed in mid-call fails that call at once and is started again by the next', async () => {
    const pool = poolOf({ all: everything(journal), other: everything(journal) })
    expect(await pool.call('all', 'echo', { message: 'a' })).toBe('Echo: a')
    const [pid] = journal.pids()
    expect(await pool.call('other', 'echo', { message: 'b' })).toBe('Echo: b')

    const calls = [pool.call('all', slow, long), pool.call('all', slow, long)].map((call) =>
      expect(call).rejects.toMatchObject({
        code: 'mcp-lost',
        message: expect.stringMatching(/"all" disconnected during trigger-long\S+: it was killed by SIGKILL\.$/),
        detail: expect.stringMatching(/^its stderr: Start/),
      }),
    )
    const other = pool.call('other', slow, { duration: 0.5, steps: 1 })
    process.kill(pid!, 'SIGKILL')
    await Promise.all(calls)
    expect(await pool.call('all', 'echo', { message: 'c' })).toBe('Echo: c')
    expect(await other).toContain('completed')
    expect(journal.pids()).toHaveLength(3)
  })

  test('a command that starts the server as its child leaves none of the two behind', async () => {
    const pool = poolOf({ all: underShell(journal) })
    expect(await pool.call('all', 'echo', { message: 'a' })).toBe('Echo: a')
    const [shell, node] = journal.pids()
    const call = expect(pool.call('all', slow, long)).rejects.toMatchObject({ code: 'mcp-lost' })
    process.kill(shell!, 'SIGKILL')
    await call
    await eventually(() => expect(isAlive(node!)).toBe(false))

    expect(await pool.call('all', 'echo', { message: 'b' })).toBe('Echo: b')
    expect(journal.pids().filter(isAlive)).toHaveLength(2)
  })

  test('closing ends calls and servers, also one that does not listen to SIGTERM and one that is just starting', async () => {
    const deaf = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)`
    const pool = poolOf({ deaf: everything(journal, deaf), late: everything(journal) })
    expect(await pool.call('deaf', 'echo', { message: 'a' })).toBe('Echo: a')
    const calls = [pool.call('deaf', slow, long), pool.tools('late')].map((call) =>
      expect(call).rejects.toMatchObject({ code: 'mcp-closed' }),
    )
    await pool.close()
    expect(journal.pids().filter(isAlive)).toEqual([])
    await Promise.all(calls)
    await expect(pool.call('deaf', 'echo', { message: 'b' })).rejects.toMatchObject({ code: 'mcp-closed' })
    await pool.close()
  })

  test('a process that ends without closing takes its servers along', async () => {
    expect(await exitWithoutClosing(journal)).toBe(7)
    const [server] = journal.pids()
    await eventually(() => expect(isAlive(server!)).toBe(false))
  })

  test.each<[string, McpServer, string, string | undefined]>([
    [
      'no command',
      { command: 'no-such-command', args: ['--key', 'in-an-argument'] },
      'its command was not found',
      'ENOENT',
    ],
    ['no folder', { command: node, cwd: '/no/such/folder' }, 'its command or its cwd was not found', 'ENOENT'],
    [
      'an exit',
      script('console.error("\\u001b[31mIt wants\\u001b[0m\\na key."); process.exit(3)'),
      'it exited with code 3',
      'its stderr: It wants | a key.',
    ],
    [
      'no answer',
      { ...mute, connectTimeout: 300 },
      'it was not ready within 300 ms; raise connectTimeout if it needs longer',
      undefined,
    ],
    [
      'no variable',
      { ...mute, env: ['MILLRACE_NOT_SET'] },
      'environment variables named in its config are not set',
      `not set: MILLRACE_NOT_SET`,
    ],
  ])(
    'a server that does not start: the name and the reason for clients, the rest for the log: %s',
    async (...given) => {
      const [, server, why, detail] = given
      const pool = poolOf({ x: server })
      await expect(pool.tools('x')).rejects.toMatchObject({
        name: 'MillraceError',
        code: 'mcp-unreachable',
        message: `The MCP server "x" cannot be reached: ${why}.`,
        detail,
      })
      await expect(pool.call('x', 'echo', {})).rejects.toMatchObject({ code: 'mcp-unreachable' })
    },
  )

  test('a secret that a server prints is taken out before its last words are cut, wherever the cut falls', async () => {
    const secret = 'sk-abcdefghijklmnopqrstuvwxyz-0123456789'
    // The secret straddles the start of the 1000 characters kept and of the 500 characters reported.
    for (const behind of [980, 480]) {
      const pieces = `for (const each of ['${secret.slice(0, 9)}', '${secret.slice(9)}']) process.stderr.write(each);`
      const text = `process.stderr.write('before '); ${pieces} process.stderr.write('y'.repeat(${behind})); process.exitCode = 1`
      const pool = createMcpPool({ x: script(text) }, { secrets: [secret] })
      onTestFinished(() => pool.close())
      const error = (await pool.tools('x').catch((thrown: unknown) => thrown)) as { detail: string }
      expect(error.detail).toContain('yyyy')
      for (let at = 0; at + 6 <= secret.length; at++) expect(error.detail).not.toContain(secret.slice(at, at + 6))
    }
  })

  test('a server sees of the environment what it was given', async () => {
    vi.stubEnv('MILLRACE_TEST_SHOWN', 'yes')
    vi.stubEnv('MILLRACE_TEST_SECRET', 'no')
    vi.stubEnv('JOURNAL', journal.file)
    const names = { ...everything(journal), env: ['JOURNAL', 'MILLRACE_TEST_SHOWN'] }
    const pool = poolOf({ values: everything(journal), names })
    const seen = async (server: string) => JSON.parse((await pool.call(server, 'get-env', {})) as string)
    const [values, shown] = await Promise.all([seen('values'), seen('names')])
    vi.unstubAllEnvs()
    expect(values).toMatchObject({ JOURNAL: journal.file, PATH: process.env.PATH })
    expect(shown).toMatchObject({ MILLRACE_TEST_SHOWN: 'yes' })
    expect(Object.keys({ ...values, ...shown })).not.toContain('MILLRACE_TEST_SECRET')
  })

  test.each<[string, McpServer, string]>([
    ['a b', { command: 'x' }, 'a name may contain'],
    ['x', {} as McpServer, 'either a command'],
    ['x', { command: 'x', url: 'http://x' } as McpServer, 'either a command'],
    ['x', { url: 'localhost:3000' }, 'http:// or https://'],
    ['x', { url: 'nowhere' }, 'http:// or https://'],
    ['x', { url: 'http://me:secret@localhost' }, 'headers.authorization'],
    [
      'x',
      { url: 'http://x', headers: { authorization: 'Bearer a\nb' } },
      'the header authorization contains a line break',
    ],
    ['x', { url: 'http://x', headers: { 'x y': 'z' } }, '"x y" is not a valid header name'],
    ['x', { command: 'x', timeout: 0 }, 'timeout'],
    ['x', { command: 'x', taskTimeout: '2 hours' }, 'such as 30m or 2h'],
    ['x', { command: 'x', taskTimeout: '30d' }, 'such as 30m or 2h'],
    ['x', { command: 'x', elicitation: 'yes' as never }, 'elicitation must be true or false'],
    ['x', { command: 'x', search: 1 as never }, 'search must be true or false'],
    ['x', { command: 'x', connectTimeout: 1e12 }, 'connectTimeout'],
  ])('a config that cannot be meant is refused: %s %j', (name, server, why) => {
    expect(() => createMcpPool({ [name]: server })).toThrow(
      expect.objectContaining({ code: 'bad-config', message: expect.stringContaining(why) }),
    )
  })
})
