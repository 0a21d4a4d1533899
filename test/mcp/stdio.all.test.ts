/** `millrace mcp` as a program that the official client starts: in each mode, with code that prints, and with a server that is killed in mid-call. */
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { resolve } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { environment, folder } from '../support/cli.ts'
import { millrace, ran, serving, type CommandProcess } from '../support/cli-process.ts'
import { modes, type Mode } from '../support/mcp.ts'
import { startUpstream } from '../support/upstream.ts'

const hello = `metadata: { description: Says hello }
workflow:
  - { id: answer, type: say, config: { text: "Hello from the desk." } }
`
/** It prints whatever code may print, and its model waits. */
const config = `console.log('the config is loaded')
export default {
  steps: {
    say: ({ text }) => {
      console.log('a line that is no message')
      console.error('and one more')
      process.stdout.write('a third\\n')
      return new Response(text)
    },
  },
}
`
const slow = `metadata: { description: Waits for its model }
recover: true
workflow:
  - { id: answer, type: llm, config: { model: "up:m", stream: true, messages: "$input.messages" } }
`

function files() {
  return folder({ 'agents/hello.yaml': hello, 'agents/slow.yaml': slow, 'agents/millrace.config.ts': config })
}

async function connect(cwd: string, mode: Mode, args: string[] = []) {
  const client = new Client(
    { name: 'tester', version: '1' },
    { versionNegotiation: { mode: mode === 'pin' ? { pin: '2026-07-28' } : mode } },
  )
  const errors: Error[] = []
  client.onerror = (error) => void errors.push(error)
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [resolve('bin/millrace.js'), 'mcp', ...args],
    cwd,
    env: environment(),
    stderr: 'pipe',
  })
  await client.connect(transport)
  onTestFinished(() => client.close())
  return { client, errors }
}

const rowsOf = async (cwd: string) => JSON.parse((await ran(['ps', '--json'], { cwd })).out) as RunRow[]

describe.each([true, false])('with a live server: %s', (hasServer) => {
  test.each(modes)(
    'the official client in the mode %s gets an answer, and no line of ours but messages',
    async (mode) => {
      const cwd = files()
      if (hasServer) await serving([], { cwd })
      const { client, errors } = await connect(cwd, mode)
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['hello'])
      const { content } = await client.callTool({ name: 'hello', arguments: { message: 'Go' } })
      expect(content).toEqual([{ type: 'text', text: 'Hello from the desk.' }])
      expect(errors).toEqual([])
      await client.close()
      expect(await rowsOf(cwd)).toMatchObject([{ agent: 'hello', protocol: 'mcp', status: 'completed' }])
    },
  )
})

test('each line of stdout is a message, whatever code of the project writes there', async () => {
  const { out, send, until, finish, exit, line } = started(files())
  send(0, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'old', version: '1' } })
  send(1, 'tools/call', { name: 'hello', arguments: { message: 'Go' } })
  await until('Hello from the desk.')
  finish()
  expect(await exit).toBe(0)
  expect(out().trim().split('\n').map(line)).toEqual([0, 1])
})

/** The command itself, without a client. */
function started(cwd: string, flags: string[] = []) {
  const command = millrace(['mcp', ...flags], { cwd, open: true })
  return {
    ...command,
    out: () => command.out,
    send: (id: number, method: string, params: object) =>
      command.send(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`),
    line: (text: string) => (JSON.parse(text) as { id: number }).id,
  }
}

/** A model that answers when it is told to. */
async function waiting() {
  const gate = Promise.withResolvers<void>()
  const upstream = await startUpstream(async (reply) => {
    reply.accept()
    await Promise.race([gate.promise, reply.left])
    reply.say('At last.')
    reply.finish()
  })
  onTestFinished(async () => {
    gate.resolve()
    await upstream.close()
  })
  return { flags: ['--endpoint', `up=${upstream.baseURL}`], answer: gate.resolve, upstream }
}

test('a call goes on when the server is killed and started again at another port', async () => {
  const { flags, answer, upstream } = await waiting()
  const cwd = files()
  const server: CommandProcess = await serving(flags, { cwd })
  const { client } = await connect(cwd, 'pin', flags)
  const called = client.callTool({ name: 'slow', arguments: { message: 'Go' } })
  await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { timeout: 20_000 })
  server.kill('SIGKILL')
  await server.exit
  await serving(flags, { cwd })
  answer()
  expect((await called).content).toEqual([{ type: 'text', text: 'At last.' }])
  expect(await rowsOf(cwd)).toMatchObject([{ agent: 'slow', status: 'completed' }])
})

test('a run of its own that goes on when stdin ends is finished by the next process', async () => {
  const { flags, answer, upstream } = await waiting()
  const cwd = files()
  const first = started(cwd, flags)
  first.send(0, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'old', version: '1' },
  })
  first.send(1, 'tools/call', { name: 'slow', arguments: { message: 'Go' } })
  await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { timeout: 20_000 })
  first.finish()
  expect(await first.exit).toBe(0)
  expect(await rowsOf(cwd)).toMatchObject([{ agent: 'slow', status: 'running' }])
  answer()
  const { client } = await connect(cwd, 'pin', flags)
  await vi.waitFor(async () => expect(await rowsOf(cwd)).toMatchObject([{ agent: 'slow', status: 'completed' }]), {
    timeout: 20_000,
  })
  await client.close()
})
