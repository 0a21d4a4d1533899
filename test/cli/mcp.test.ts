/** `millrace mcp`: agents over stdin and stdout, on a live server and without one, in both eras. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { folder, millrace, ran, serving, type CommandOptions } from '../support/cli.ts'
import { modernBody } from '../support/mcp.ts'
import { startUpstream } from '../support/upstream.ts'

const echo = `metadata: { description: Answers }
workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, messages: "$input.messages" } }
`
/** Its tool waits for an approval, so it never ends by itself. */
const gate = `metadata: { hidden: true }
workflow:
  - id: answer
    type: llm
    config: { model: "demo:assistant", stream: true, messages: "$input.messages", tools: [{ name: calculator, approval: true }] }
`

interface Line {
  id?: unknown
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown> & { tools?: { name: string }[]; content?: { text: string }[] }
  error?: { code: number; message: string }
}

/** Starts the command and reads its lines: each must be a message. */
function mcp(cwd: string, args: string[] = [], options: CommandOptions = {}) {
  const command = millrace(['mcp', ...args], { cwd, open: true, ...options })
  const lines = () =>
    command.out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
  return {
    command,
    lines,
    send: (message: object) => command.send(`${JSON.stringify(message)}\n`),
    answer: (id: unknown) =>
      vi.waitFor(() => lines().find((line) => line.id === id) ?? Promise.reject(new Error(command.err))),
    async end() {
      command.finish()
      return command.exit
    },
  }
}

const legacy = (id: number, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params })
const begin = legacy(0, 'initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'old', version: '1' },
})
const call = (name: string, message: string) => ({ name, arguments: { message } })
const rowsOf = async (cwd: string, ...more: string[]) =>
  JSON.parse((await ran(['ps', '--json', ...more], { cwd })).out) as RunRow[]

describe.each([true, false])('with a live server: %s', (hasServer) => {
  async function open(args: string[] = []) {
    const cwd = folder({ 'agents/echo.yaml': echo, 'agents/gate.yaml': gate })
    if (hasServer) await serving([], { cwd })
    return { cwd, ...mcp(cwd, args) }
  }

  test('a modern client lists and calls agents', async () => {
    const { cwd, send, answer, end, lines } = await open()
    send(modernBody('server/discover', {}, { id: 'd' }))
    expect((await answer('d')).result).toMatchObject({ supportedVersions: expect.arrayContaining(['2026-07-28']) })
    send(modernBody('tools/list', {}, { id: 1 }))
    expect((await answer(1)).result?.tools?.map(({ name }) => name)).toEqual(['echo'])
    send(modernBody('tools/call', call('echo', 'What is 2+3?'), { id: 2, meta: { progressToken: 'p' } }))
    const { result } = await answer(2)
    expect(result).toMatchObject({ resultType: 'complete', content: [{ type: 'text' }] })
    expect(
      lines().some(({ method, params }) => method === 'notifications/progress' && params?.['progressToken'] === 'p'),
    ).toBe(true)
    expect(await end()).toBe(0)
    expect(await rowsOf(cwd)).toMatchObject([{ agent: 'echo', protocol: 'mcp', status: 'completed' }])
  })

  test('a legacy client does, too', async () => {
    const { send, answer, end } = await open()
    send(begin)
    send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    send(legacy(1, 'tools/list'))
    send(legacy(2, 'tools/call', call('echo', 'Hi')))
    expect((await answer(0)).result).toMatchObject({ protocolVersion: '2025-06-18' })
    expect((await answer(1)).result?.tools).toHaveLength(1)
    expect((await answer(2)).result?.content?.[0]?.text).not.toBe('')
    expect(await end()).toBe(0)
  })

  test.each(['modern', 'legacy'])('a call that a %s client cancels is stopped', async (era) => {
    const { cwd, send, answer, end, lines } = await open(['--agent', 'gate'])
    const params = { ...call('gate', 'What is 2+3?') }
    if (era === 'legacy') send(begin)
    if (era === 'legacy') await answer(0)
    send(era === 'legacy' ? legacy(1, 'tools/call', params) : modernBody('tools/call', params, { id: 1 }))
    const status = async () => (await rowsOf(cwd))[0]?.status
    // A run without a server can be seen only by its own process: so it is asked over the same pipe.
    const shown = async () => {
      send(era === 'legacy' ? legacy(50, 'resources/list') : modernBody('resources/list', {}, { id: 50 }))
      return JSON.stringify(lines().findLast(({ id }) => id === 50)?.result ?? {})
    }
    if (era === 'modern') await vi.waitFor(async () => expect(await shown()).toMatch(/suspended|running/u))
    else await vi.waitFor(async () => expect(await status()).toMatch(/suspended|running/u))
    send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await vi.waitFor(async () => expect(await status()).toBe('aborted'))
    expect(await end()).toBe(0)
    expect(lines().filter(({ id }) => id === 1)).toEqual([])
  })

  test('one agent is offered alone, also if it is hidden', async () => {
    const { send, answer, end } = await open(['--agent', 'gate'])
    send(modernBody('tools/list', {}, { id: 1 }))
    expect((await answer(1)).result?.tools?.map(({ name }) => name)).toEqual(['gate'])
    expect(await end()).toBe(0)
  })

  test('an agent that is not there is a mistake of the command line', async () => {
    const { command } = await open(['--agent', 'ecko'])
    expect(await command.exit).toBe(2)
    expect(command.err).toContain('did you mean "echo"?')
    expect(command.out).toBe('')
  })
})

test('when stdin ends, runs of a server go on', async () => {
  const gate = Promise.withResolvers<void>()
  const upstream = await startUpstream(async (reply) => {
    reply.accept()
    await Promise.race([gate.promise, reply.left])
    reply.say('At last.')
    reply.finish()
  })
  onTestFinished(() => upstream.close())
  const cwd = folder({ 'agents/echo.yaml': echo.replace('demo:assistant', 'up:m') })
  const flags = ['--endpoint', `up=${upstream.baseURL}`]
  const { url } = await serving(flags, { cwd })
  const { send, end } = mcp(cwd, flags)
  send(modernBody('tools/call', call('echo', 'Hi'), { id: 1 }))
  await vi.waitFor(() => expect(upstream.requests).toHaveLength(1))
  expect(await end()).toBe(0)
  // Whoever has left has been noticed by the time that another request is answered.
  await fetch(`${url}/api/runs`)
  gate.resolve()
  await vi.waitFor(async () => expect((await rowsOf(cwd))[0]?.status).toBe('completed'))
})

test('a server elsewhere is used with the key', async () => {
  const cwd = folder({ 'agents/echo.yaml': echo })
  const { url } = await serving([], { cwd, env: { MILLRACE_API_KEY: 'k'.repeat(20) } })
  const away = folder()
  const { send, answer, end } = mcp(away, ['--server', url], { env: { MILLRACE_API_KEY: 'k'.repeat(20) } })
  send(modernBody('tools/list', {}, { id: 1 }))
  expect((await answer(1)).result?.tools).toHaveLength(1)
  expect(await end()).toBe(0)
  const without = mcp(away, ['--server', url])
  without.send(modernBody('tools/list', {}, { id: 1 }))
  expect((await without.answer(1)).error?.message).toMatch(/key|credential|Authorization/iu)
  expect(await without.end()).toBe(0)
})
