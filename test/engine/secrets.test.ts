/** Where a secret could get past the log's own search for it: the inbox, an agent's text, and what is cut short. */
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { APICallError } from '@ai-sdk/provider'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { continueOrStart, type Turn } from '../../src/runtime/continue.ts'
import { createScriptedModel, finish, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { serve } from '../../src/server/serve.ts'
import { folder, ran } from '../support/cli.ts'
import { agent, createEngine, entriesOf, only, until, type Engine } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

let engine: Engine | undefined
afterEach(async () => {
  await engine?.close()
  engine = undefined
})

const secret = 'sk-canary-abcdefghijklmnop'
const environment = { SHOP_API_KEY: secret }
const messages = [{ role: 'user' as const, content: 'Hi' }]

/** Asks its client, who answers with a secret. */
function asking() {
  const model = createScriptedModel([
    [toolCall('c', 'ask', {}), finish('tool-calls')],
    [text('Done.'), finish()],
  ])
  return {
    agents: { a: agent('tools: [ask]') },
    environment,
    scripts: { m: model },
    tools: { ask: { parameters: z.looseObject({}) } },
  }
}

/** Every byte that the store keeps. */
function kept({ dir }: Engine): string {
  const db = new DatabaseSync(join(dir, 'millrace.db'), { readOnly: true })
  const tables = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).all() as { name: string }[]
  const rows = tables.flatMap(({ name }) => db.prepare(`SELECT * FROM "${name}"`).all())
  db.close()
  return rows
    .map((row) =>
      Object.values(row).map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString() : String(value))),
    )
    .join('\n')
}

const answer = { kind: 'tool' as const, output: { key: secret, shop: 7 } }
const clean = { kind: 'tool', output: { key: '[redacted]', shop: 7 } }

describe('what is left for a run is kept without secrets', () => {
  test('an answer by a program; the same again is a duplicate', async () => {
    engine = createEngine(asking())
    const run = await engine.runtime.start('a', { messages })
    await run.result
    const { requestId } = only(await entriesOf(engine.store, run.id), 'request')[0]!
    expect(await run.answer(requestId, answer)).toEqual({
      duplicate: false,
      isSame: true,
      answer: expect.objectContaining({ answer: clean }),
    })
    expect(await run.answer(requestId, answer)).toMatchObject({ duplicate: true, answer: { answer: clean } })
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    expect(await (await engine.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(kept(engine)).toContain('[redacted]')
    expect(kept(engine)).not.toContain('canary')
  })

  test('an answer over HTTP: told without it, and given again no contradiction', async () => {
    const server = await startServer(asking())
    engine = server
    const run = await server.runtime.start('a', { messages })
    await run.result
    const { requestId } = only(await entriesOf(server.store, run.id), 'request')[0]!
    const post = () => server.post(`/api/runs/${run.id}/requests/${requestId}`, { output: answer.output })
    for (const duplicate of [false, true]) {
      const response = await post()
      expect([response.status, await response.json()]).toEqual([200, { requestId, duplicate, answer: clean }])
    }
    await (await server.runtime.open(run.id))!.result
    expect(kept(server)).not.toContain('canary')
  })

  test('an answer within a conversation, and what comes with it; sent again it joins', async () => {
    engine = createEngine(asking())
    const turn: Turn = {
      agentId: 'a',
      threadId: 't',
      messages,
      answers: [],
      input: {},
      protocol: 'ui',
      onBusy: 'interrupt',
      history: 'client',
    }
    const { run } = await continueOrStart(engine.runtime, turn)
    await run.result
    const again: Turn = { ...turn, answers: [{ toolCallId: 'c', answer }], input: { note: `use ${secret}` } }
    const resumed = await continueOrStart(engine.runtime, again)
    expect(resumed.how).toBe('resumed')
    await resumed.run.result
    expect(only(await entriesOf(engine.store, run.id), 'resume')).toMatchObject([{ input: { note: 'use [redacted]' } }])
    expect(kept(engine)).not.toContain('canary')
  })

  test('the reason of a stop', async () => {
    engine = createEngine(asking())
    const run = await engine.runtime.start('a', { messages })
    await run.result
    await run.stop(`because of ${secret}`)
    await until(engine.store, run.id, ({ type }) => type === 'run-end')
    expect(kept(engine)).not.toContain('canary')
  })
})

describe('a secret in an agent’s text is refused where it stands', () => {
  const agentWith = (value: string) => `workflow:
  - id: answer
    type: llm
    config:
      model: demo:assistant
      headers: { authorization: "${value}" }
`
  const refused = (value: string, config = {}) => {
    try {
      engine = createEngine({ agents: { a: agentWith(value) }, environment, ...config })
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }

  test('with its place, whose it is and what to write, and never the value', () => {
    const message = refused(`Bearer ${secret}`)
    expect(message).toBe(
      `a:6:41 this is a secret, the value of the environment variable SHOP_API_KEY, and an agent's text is recorded and shown; write $env.SHOP_API_KEY, with "SHOP_API_KEY" under "env" in the config`,
    )
  })

  test('also as base64, and when other faults would quote it', () => {
    expect(refused(btoa(secret))).toMatch(
      /^a:6:34 this is a secret, the value of the environment variable SHOP_API_KEY/u,
    )
    const message = refused('x', {
      agents: { a: agentWith('x').replace('demo:assistant', `demo:assistant\n      temperature: ${secret}`) },
    })
    expect(message).toMatch(/^a:6:20 this is a secret/u)
    expect(message).not.toContain('canary')
  })

  test('a secret of the config is one too', () => {
    const mcpServers = { shop: { url: 'http://127.0.0.1:1', headers: { authorization: `Bearer ${secret}` } } }
    const message = refused(`Bearer ${secret}`, { mcpServers, environment: {} })
    expect(message).toMatch(/^a:6:34 this is a secret, the value of mcpServers\.shop in the config[^\n]*$/u)
  })

  test.each([['sk-1'], ['other']])('%s: what is too short, or another text, is none', (value) => {
    expect(refused(value, { environment: { SHOP_API_KEY: 'sk-1' } })).toBeUndefined()
  })

  test('a word is no secret, whatever the name of its variable: the agent loads and may say it', async () => {
    const model = createScriptedModel([[text('A strict password.'), finish()]])
    engine = createEngine({
      agents: { a: agent('system: Be strict. Ask for the password.') },
      environment: { COOKIE_POLICY: 'strict', SESSION_COOKIE: 'strict', DB_PASSWORD: 'password' },
      scripts: { m: model },
    })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'A strict password.' })
  })

  test('a secret that the config names is refused in a text, and taken out of an answer', async () => {
    const secrets = { names: ['HOOK'], values: ['from-the-vault'] }
    const given = { environment: { HOOK: 'hooks.example/T0/B1' }, secrets }
    expect(refused('from-the-vault', given)).toMatch(/^a:6:34 this is a secret, the value of secrets\.values/u)
    expect(refused('hooks.example/T0/B1', given)).toMatch(/^a:6:34 this is a secret.*variable HOOK/u)
    const hex = Buffer.from('from-the-vault').toString('hex')
    const model = createScriptedModel([
      [text('I post to hooks.example', '/T0/B1 with ', hex.slice(0, 9), hex.slice(9)), finish()],
    ])
    engine = createEngine({ agents: { a: agent() }, scripts: { m: model }, ...given })
    const run = await engine.runtime.start('a', { messages })
    await run.result
    expect(kept(engine)).not.toContain('T0/B1')
    expect(kept(engine)).not.toContain(hex)
  })

  test('by reference it works', async () => {
    const seen: unknown[] = []
    engine = createEngine({
      agents: { a: 'workflow: [{ id: x, type: look, config: { key: $env.SHOP_API_KEY } }]' },
      env: ['SHOP_API_KEY'],
      environment,
      steps: { look: (config) => void seen.push(config) },
    })
    expect(await (await engine.runtime.start('a', {})).result).toMatchObject({ outcome: 'completed' })
    expect(seen).toEqual([{ key: secret }])
  })

  test('`check`, `serve` and `run` say it as file:line:col', async () => {
    const cwd = folder({ 'agents/a.yaml': agentWith(secret) })
    const check = await ran(['check'], { cwd, env: environment })
    expect([check.code, check.out + check.err]).toEqual([1, expect.stringMatching(/a\.yaml:6:34 this is a secret/u)])
    const run = await ran(['run', 'a', '-m', 'Hi'], { cwd, env: environment })
    expect([run.code, run.err]).toEqual([2, expect.stringMatching(/a\.yaml:6:34 this is a secret/u)])
    expect([check, run].map(({ out, err }) => out + err).join('')).not.toContain('canary')
    expect((await ran(['check'], { cwd })).code).toBe(0)
  })
})

test.each([2000, 8000])('what a provider said is searched for secrets before it is cut at %i', async (length) => {
  // The cut falls into the secret, wherever the words begin.
  for (const before of [length - 60, length - 45, length - 30]) {
    const message = `${'x'.repeat(before)}${secret}${'y'.repeat(9000)}`
    const error = new APICallError({ message, url: 'http://x', requestBodyValues: {}, statusCode: 400 })
    const thrown = length === 2000 ? error : new Error(message)
    engine = createEngine({
      agents: { a: agent('retries: 0') },
      environment,
      scripts: { m: createScriptedModel([[throws(thrown)]]) },
    })
    const run = await engine.runtime.start('a', { messages })
    const told = JSON.stringify([await run.result, await entriesOf(engine.store, run.id)])
    expect(told).toContain('…')
    expect(told).not.toContain('sk-can')
    await engine.close()
  }
})

test('no message quotes a piece of a value', async () => {
  const long = `${secret}-${'0123456789'.repeat(5)}`
  engine = createEngine({
    agents: {
      child: 'input: { n: integer }\nworkflow: [{ id: x, type: output-generator, config: { template: 1 } }]',
      a: 'workflow: [{ id: call, type: call-agent, config: { agent: child, input: { n: $env.SHOP_API_KEY } } }]',
      b: `workflow: [{ id: read, type: output-generator, config: { json: "$env.SHOP_API_KEY ${'x'.repeat(200)}" } }]`,
    },
    env: ['SHOP_API_KEY'],
    environment: { SHOP_API_KEY: long },
  })
  for (const id of ['a', 'b']) {
    const run = await engine.runtime.start(id, {})
    expect(await run.result).toMatchObject({ outcome: 'failed' })
    expect(JSON.stringify(await entriesOf(engine.store, run.id))).not.toContain(secret.slice(0, 6))
  }
})

test('what the server prints of its own failures holds no secret, stacks included', async () => {
  const lines: string[] = []
  const data = folder()
  // A value that is found in the stack of what will fail.
  const env = { SHOP_API_KEY: 'store-error' }
  const dir = folder({ 'a.yaml': agent().replace('script:m', 'demo:assistant') })
  const server = await serve({ dir, data, port: 0, env, log: (line) => void lines.push(line) })
  onTestFinished(() => server.close())
  const db = new DatabaseSync(join(data, 'millrace.db'))
  db.exec('ALTER TABLE runs RENAME TO gone')
  db.close()
  expect((await fetch(`${server.url}/api/runs`)).status).toBe(503)
  expect(lines.join('\n')).toMatch(/^error: .*\n +at /u)
  expect(lines.join('\n')).toContain('[redacted]')
  expect(lines.join('\n')).not.toContain('store-error')
})

test('what a command dies of is printed without secrets', async () => {
  const cwd = folder({
    'agents/a.yaml': agent().replace('script:m', 'demo:assistant'),
    'agents/millrace.config.mjs': `throw new Error('no shop takes ${environment.SHOP_API_KEY}')\n`,
  })
  const { code, err } = await ran(['run', 'a', '-m', 'Hi'], { cwd, env: environment })
  expect([code, err]).toEqual([2, expect.stringContaining('no shop takes [redacted]')])
})
