/** Errors that nobody awaits, thrown by code of an application: the process goes on, the run that they belong to fails. */
import { describe, expect, test } from 'vitest'
import { folder } from '../support/cli.ts'
import { ran, serving } from '../support/cli-process.ts'

const secret = 'tok-0123456789-abcdef'
const config = `
import { EventEmitter } from 'node:events'
const boom = () => new Error('the token is ' + process.env.SOME_TOKEN)
const never = () => new Promise(() => undefined)
const kinds = {
  timer: () => { setTimeout(() => { throw boom() }, 1); return never() },
  rejection: () => { Promise.reject(boom()); return never() },
  async: () => { void (async () => { await null; throw boom() })(); return never() },
  emitter: () => { setImmediate(() => new EventEmitter().emit('error', boom())); return never() },
  primitive: () => { setTimeout(() => { throw 'the token is ' + process.env.SOME_TOKEN }, 1); return never() },
  proxy: () => { setTimeout(() => { throw new Proxy({}, { get() { throw boom() }, has() { throw boom() }, getPrototypeOf() { throw boom() } }) }, 1); return never() },
  getter: () => { Promise.reject(Object.defineProperty(new Error('x'), 'message', { get() { throw boom() } })); return never() },
  revoked: () => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); setTimeout(() => { throw proxy }, 1); return never() },
  generator: async function* () { setTimeout(() => { throw boom() }, 1); await never() },
}
let open
const gate = new Promise((resolve) => (open = resolve))
export default {
  steps: {
    ...kinds,
    wait: async function () { await gate; return 'waited' },
    open: () => { open(); return 'opened' },
    held: () => { setTimeout(() => { throw boom() }, 1); return never() },
    later: () => { setTimeout(() => { throw boom() }, 500); return 'done' },
    fatal: () => { setTimeout(() => { throw Object.assign(boom(), { code: 'ENOMEM' }) }, 1); return never() },
  },
  tools: { stray: { description: 'x', parameters: { type: 'object', properties: {} }, execute: kinds.timer } },
  callbacks: { stray: kinds.timer },
}
`
const step = (type: string) => `workflow: [{ id: it, type: ${type} }]`
const demo = (line: string) => `workflow:
  - { id: it, type: llm, config: { model: "demo:assistant", stream: true, ${line} } }`
const kinds = ['timer', 'rejection', 'async', 'emitter', 'primitive', 'generator', 'proxy', 'getter', 'revoked']
const files = Object.fromEntries([
  ['agents/millrace.config.ts', config],
  ...[...kinds, 'wait', 'open', 'later', 'fatal'].map((kind) => [`agents/${kind}.yaml`, step(kind)]),
  ['agents/tool.yaml', demo('tools: [stray], toolChoice: required')],
  ['agents/callback.yaml', demo('onStepFinish: stray').replace('stream: true', 'stream: false')],
  ['agents/after.yaml', `${demo('')}\nafter: [{ id: more, type: held }]`],
  ['agents/nested.yaml', 'workflow: [{ id: call, type: call-agent, config: { agent: timer } }]'],
])
const serveFiles = () => serving([], { cwd: folder(files), env: { SOME_TOKEN: secret } })

async function start(url: string, agentId: string) {
  const body = JSON.stringify({ agentId, input: { messages: [{ role: 'user', content: 'stray' }] } })
  const response = await fetch(`${url}/api/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  return ((await response.json()) as { id: string }).id
}
const ended = async (url: string, run: string) => {
  await (await fetch(`${url}/api/runs/${run}/events?follow=1`)).text()
  return (await (await fetch(`${url}/api/runs/${run}`)).json()) as Record<string, unknown>
}
const health = async (url: string) => (await (await fetch(`${url}/health`)).json()) as Record<string, unknown>

describe('serve', () => {
  test('the run fails and names its step, the others go on, what belongs to none is counted, no secret is printed', async () => {
    const server = await serveFiles()
    const waiting = await start(server.url, 'wait')
    for (const agent of [...kinds, 'tool', 'callback', 'nested']) {
      const name = agent === 'nested' ? /^Step "call\/it" \(timer\) failed/u : /^Step "it" \(\w+\) failed/u
      expect([agent, await ended(server.url, await start(server.url, agent))]).toMatchObject([
        agent,
        { status: 'failed', error: { code: 'uncaught-error', message: expect.stringMatching(name) } },
      ])
    }
    await ended(server.url, await start(server.url, 'open'))
    expect(await ended(server.url, waiting)).toMatchObject({ status: 'completed' })
    expect(server.err).toContain('The run fails.')
    // Behind its answer a run stays completed.
    const answered = await start(server.url, 'after')
    expect(await ended(server.url, answered)).toMatchObject({ status: 'completed' })
    await server.until(`Step "more" (held) of run ${answered}. The run stays completed, because its answer had ended`)
    expect(await health(server.url)).toMatchObject({ status: 'ok', uncaughtErrors: 0 })
    // What belongs to no run that is under way is printed and counted.
    const over = await start(server.url, 'later')
    expect(await ended(server.url, over)).toMatchObject({ status: 'completed' })
    await server.until(`of run ${over}. The run was no longer active.`)
    expect(await health(server.url)).toMatchObject({ status: 'ok', uncaughtErrors: 1 })
    expect(server.err).toContain('the token is [redacted]')
    expect(server.out + server.err).not.toContain(secret)
  })

  test('an error that makes the process unsafe ends it, without the secret', async () => {
    const server = await serveFiles()
    await start(server.url, 'fatal')
    expect(await server.exit).toBe(1)
    expect(server.err).toContain('the token is [redacted]')
    expect(server.out + server.err).not.toContain(secret)
  })
})

test('run: the run fails and names its step, the exit code is 1, and no secret is printed', async () => {
  const { code, out, err } = await ran(['run', 'timer', '-m', 'Hi'], {
    cwd: folder(files),
    env: { SOME_TOKEN: secret },
  })
  expect(code).toBe(1)
  expect(err).toMatch(/failed: Step "it" \(timer\) failed: the token is \[redacted\]/u)
  expect(out + err).not.toContain(secret)
})
