/** `secrets.keys`: what stands under a named key in inputs and outputs of tools is nowhere; tools that run at once get it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]
const secrets = { keys: ['password', 'api_key'] }
const input = { user: 'ann', password: 'canary-in-4711', pin: { Password: 98765432109 } }
const canary = /canary|98765432109/u

/** The input as a provider streams it, cut everywhere. */
function calls(toolName: string, id: string): ScriptStep[] {
  const whole = JSON.stringify(input)
  return [
    { type: 'tool-input-start', id, toolName },
    ...[...whole].map((delta) => ({ type: 'tool-input-delta' as const, id, delta })),
    { type: 'tool-input-end', id },
    { type: 'tool-call', toolCallId: id, toolName, input: whole },
    finish('tool-calls'),
  ]
}

async function start(tool: object, { keys = secrets.keys, twice = false } = {}) {
  const seen: unknown[] = []
  const execute = (given: unknown) => {
    seen.push(given)
    return { api_key: 'canary-out-4711', ok: true, text: '{"api-key":"canary-text-4711"}' }
  }
  const rounds = Array.from({ length: twice ? 2 : 1 }, () => [calls('login', 'c'), [text('Done.'), finish()]]).flat()
  const model = createScriptedModel(rounds)
  const server = await startServer({
    agents: { a: agent('tools: [login]') },
    scripts: { m: model },
    tools: { login: { parameters: z.looseObject({ password: z.string() }), execute, ...tool } },
    secrets: { keys },
  })
  onTestFinished(() => server.close())
  /** Every byte of the database, its journal included. */
  const kept = () =>
    readdirSync(server.dir)
      .map((name) => readFileSync(join(server.dir, name), 'latin1'))
      .join('\n')
  const read = async (path: string) => (await fetch(server.url + path)).text()
  return { server, seen, model, kept, read }
}

describe('secret keys in logs', () => {
  test('an input and an output are in no entry, database, event stream or wire; the tool got the real input', async () => {
    const { server, seen, model, kept, read } = await start({}, { twice: true })
    const wire = await (
      await server.post('/api/chat', {
        agent: 'a',
        agentId: 'a',
        messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
      })
    ).text()
    const run = await server.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    const entries = await entriesOf(server.store, run.id)
    const told = [
      wire,
      JSON.stringify(entries),
      kept(),
      await read(`/api/runs/${run.id}`),
      await read(`/api/runs/${run.id}/events`),
    ]
    for (const each of told) {
      expect(each).toContain('[redacted]')
      expect(each).not.toMatch(canary)
    }
    const joined = only(entries, 'tool-input-delta').map(({ delta }) => delta)
    expect(joined.join('')).toBe(only(entries, 'tool-call')[0]!.input)
    expect(JSON.parse(joined.join(''))).toEqual({
      user: 'ann',
      password: '[redacted]',
      pin: { Password: '[redacted]' },
    })
    expect(seen).toEqual([input, input])
    // A model is sent what the log has, so that a recovered run sends the same.
    expect(JSON.stringify(model.calls.map(({ options }) => options.prompt))).not.toMatch(canary)
    expect(JSON.stringify(model.calls[1]!.options.prompt)).toContain('[redacted]')
  })

  test('a client tool: its call and its answer, which may be sent again', async () => {
    const { server, kept } = await start({ execute: undefined })
    const run = await server.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    const { requestId, input: asked } = only(await entriesOf(server.store, run.id), 'request')[0]!
    expect(asked).toMatchObject({ user: 'ann', password: '[redacted]' })
    for (const duplicate of [false, true]) {
      const output = { api_key: 'canary-answer', n: 1 }
      const response = await server.post(`/api/runs/${run.id}/requests/${requestId}`, { output })
      const answer = { kind: 'tool', output: { api_key: '[redacted]', n: 1 } }
      expect([response.status, await response.json()]).toEqual([200, { requestId, duplicate, answer }])
    }
    expect(await (await server.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(kept()).not.toMatch(canary)
  })

  test('a tool that was approved after the run was suspended gets what the log has', async () => {
    const { server, seen, kept } = await start({ approval: true })
    const run = await server.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    const { requestId } = only(await entriesOf(server.store, run.id), 'request')[0]!
    await run.answer(requestId, { kind: 'approval', approved: true })
    expect(await (await server.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed' })
    expect(seen).toEqual([{ user: 'ann', password: '[redacted]', pin: { Password: '[redacted]' } }])
    expect(kept()).not.toMatch(canary)
  })

  test('without keys nothing is hidden', async () => {
    const { server, seen, kept } = await start({}, { keys: [] })
    const run = await server.runtime.start('a', { messages })
    await run.result
    expect(JSON.parse(only(await entriesOf(server.store, run.id), 'tool-call')[0]!.input)).toEqual(input)
    expect(seen).toEqual([input])
    expect(kept()).toContain('canary-out-4711')
  })
})
