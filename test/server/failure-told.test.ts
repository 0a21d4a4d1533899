/** What code of an application throws may hold internals: clients are told that a step failed, the log what it said. */
import { afterEach, describe, expect, test } from 'vitest'
import { MillraceError } from '../../src/part/error.ts'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { createChat } from '../support/chat.ts'
import { folder, ran } from '../support/cli.ts'
import { until } from '../support/engine.ts'
import { framesOf, startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const secret = 'tok-0123456789'
const internals = `relation "users" of 10.0.0.7 refuses ${secret}`
const whole = 'Step "look" (internal) failed: relation "users" of 10.0.0.7 refuses [redacted]'
const messages = [{ role: 'user', content: 'Hi' }]
const started = `
workflow:
  - { id: talk, type: parallel, config: { branches: {
      says: [{ id: say, type: llm, config: { model: "script:m", stream: true } }],
      looks: [{ id: look, type: internal, config: { late: true } }] } } }`

function start(steps = {}) {
  return startServer({
    agents: { a: started, silent: 'workflow: [{ id: look, type: internal }]' },
    environment: { DB_TOKEN: secret },
    scripts: { m: createScriptedModel(Array(9).fill([text('Once '), finish()])) },
    steps: {
      internal: async (config: { late?: true } | undefined, { runId }: { runId: string }) => {
        // Once the answer has begun what comes is told in-band.
        if (config?.late) await until(server!.store, runId, ({ type }) => type === 'text-end')
        throw new Error(internals)
      },
      ...steps,
    },
  })
}

describe('reported failures', () => {
  test('UI stream: the step and its type; the official client shows no more', async () => {
    server = await start()
    const response = await server.post('/api/chat', { agentId: 'a', messages })
    const body = await response.text()
    expect(framesOf(body).at(-2)).toEqual({ type: 'error', errorText: 'Step "look" (internal) failed.' })
    expect(body).not.toMatch(/relation|10\.0|detail/u)
    const { chat, errors } = createChat(server.url)
    await chat.sendMessage({ text: 'Hi' })
    expect(errors.map(({ message }) => message)).toEqual(['Step "look" (internal) failed.'])
  })

  test('plain text: a broken transfer behind what was said, and no word of the error', async () => {
    server = await start()
    const response = await server.post('/api/beddel/chat', { agentId: 'a', messages })
    await expect(response.text()).rejects.toThrow('terminated')
  })

  test.each(['/api/chat', '/api/beddel/chat'])('%s, where nothing streams: JSON with the code', async (route) => {
    server = await start()
    const response = await server.post(route, { agentId: 'silent', messages })
    expect(response.status).toBe(500)
    const error = { code: 'step-failed', message: 'Step "look" (internal) failed.', type: 'server_error' }
    expect(await response.json()).toEqual({ error })
  })

  test('what a step throws for its clients is told to them, with its status where it has one', async () => {
    const ours = () => Promise.reject(new MillraceError('rate-limited', 'Come back later.', { retryAfter: 3 }))
    server = await start({ internal: ours })
    const response = await server.post('/api/chat', { agentId: 'silent', messages })
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '3'])
    expect(await response.json()).toMatchObject({ error: { message: 'Step "look" (internal): Come back later.' } })
  })

  test('the log says all of it, without secrets: as events, as a run, in the list', async () => {
    server = await start()
    const response = await server.post('/api/chat', { agentId: 'silent', messages })
    const run = response.headers.get('x-millrace-run-id')!
    const events = await (await fetch(`${server.url}/api/runs/${run}/events`)).text()
    const end = JSON.parse(events.trim().split('\n').at(-1)!) as { error: object }
    const error = {
      code: 'step-failed',
      message: 'Step "look" (internal) failed.',
      step: 'main/look',
      detail: 'relation "users" of 10.0.0.7 refuses [redacted]',
    }
    expect(end).toMatchObject({ type: 'run-end', error })
    const sse = await fetch(`${server.url}/api/runs/${run}/events?types=run-end`, {
      headers: { accept: 'text/event-stream' },
    })
    expect(await sse.text()).toContain('of 10.0.0.7 refuses [redacted]')
    expect(await (await fetch(`${server.url}/api/runs/${run}`)).json()).toMatchObject({ error })
    const list = await (await fetch(`${server.url}/api/runs`)).text()
    expect(list).toContain('10.0.0.7')
    expect(events + list).not.toContain(secret)
  })

  test('`run`, `show` and `logs` say all of it; `run --format ui` is a client', async () => {
    const config = `export default { steps: { internal: () => { throw new Error(${JSON.stringify(internals)}) } } }\n`
    const cwd = folder({
      'agents/a.yaml': 'workflow: [{ id: look, type: internal }]\n',
      'agents/millrace.config.mjs': config,
    })
    const env = { DB_TOKEN: secret }
    const run = await ran(['run', 'a', '-m', 'Hi'], { cwd, env })
    expect([run.code, run.out.trim()]).toEqual([1, ''])
    expect(run.err).toContain(`failed: ${whole}\n`)
    const id = /run (run_\w+)/u.exec(run.err)![1]!
    const shown = await ran(['show', id], { cwd })
    expect(shown.out).toContain(`step-failed: ${whole}\n`)
    const logs = await ran(['logs', id, '--json', '--type', 'run-end'], { cwd })
    expect(logs.out).toContain('10.0.0.7 refuses [redacted]')
    const ui = await ran(['run', 'a', '-m', 'Hi', '--format', 'ui'], { cwd, env })
    expect(framesOf(ui.out).at(-2)).toEqual({ type: 'error', errorText: 'Step "look" (internal) failed.' })
    expect(ui.out).not.toContain('10.0.0.7')
    expect([run, shown, logs, ui].map(({ out, err }) => out + err).join('')).not.toContain(secret)
  })
})
