/** `show`: what one run came to, from the live server and from the database alike. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { folder, ran, serving } from '../support/cli.ts'
import { startTaskServer } from '../../src/tools/mcp/testing/task-server.ts'
import { startUpstream } from '../support/upstream.ts'

const agent = `workflow:
  - id: look
    type: loop
    config:
      over: [1, 2]
      steps: [{ id: twice, type: output-generator, config: { template: "$item" } }]
    result: looked
  - id: answer
    type: llm
    config: { model: "MODEL", stream: true, tools: [calculator] }
`
const files = (model: string) => ({ 'agents/a.yaml': agent.replace('MODEL', model) })

describe('millrace show', () => {
  test('status, an aligned tree of steps with durations, messages, tokens, cost', async () => {
    const cwd = folder({
      ...files('demo:assistant'),
      'agents/millrace.config.mjs': `export default { pricing: { 'demo:assistant': { input: 10, output: 20 } } }`,
    })
    await ran(['run', 'a', '-m', 'What is 12*7?'], { cwd })
    const [{ id }] = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as [RunRow]
    const { code, out, err } = await ran(['show', id], { cwd })
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(new RegExp(`^${id} {2}a {2}completed\n`, 'u'))
    expect(out).toMatch(/^tokens {6}\d+ in, \d+ out \(reported\)$/m)
    expect(out).toMatch(/^cost {8}\$0\.\d+$/m)
    const tree = out.split('Steps\n')[1]!.split('\n\n')[0]!.split('\n')
    expect(
      tree.map((line) =>
        line
          .replaceAll(/\d+\.\d\ds/gu, 'TIME')
          .replaceAll(/(?<=TIME +)\d+/gu, 'N')
          .replaceAll(/ +/gu, ' '),
      ),
    ).toEqual([
      'STEP TYPE TOOK TOKENS END',
      'look loop TIME',
      '├─ 0 round TIME',
      '│ └─ twice output-generator TIME',
      '└─ 1 round TIME',
      ' └─ twice output-generator TIME',
      'answer llm TIME N stop, answer',
      '├─ 1 model-call TIME N tool-calls',
      '├─ 2 tool-call calculator TIME',
      '└─ 3 model-call TIME N stop',
    ])
    expect(out).toMatch(/^Models\nMODEL .*COST\ndemo:assistant +2 .*\$0\.\d+$/m)
    // Columns line up.
    const at = tree[0]!.indexOf('TOOK')
    for (const line of tree.slice(1)) expect(line.slice(at - 2)).toMatch(/^ {2}\d/)
    expect(out).toMatch(/Messages\nuser +What is 12\*7\?\n[^]*calculator +\{"result":84\}\nassistant +12\*7 = 84\.\n$/)

    const server = await serving([], { cwd })
    expect((await ran(['show', id], { cwd })).out).toBe(out)
    const json = await ran(['show', id, '--json'], { cwd })
    const view = (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as object
    expect(JSON.parse(json.out)).toEqual(view)
    expect(view).toMatchObject({ id, status: 'completed', cost: expect.any(Number) })
  })

  test('what failed is said at its step and at the end; a run that goes on is shown as far as it is', async () => {
    const gate = Promise.withResolvers<void>()
    const upstream = await startUpstream(async (reply, n) => {
      if (n === 1) return reply.refuse(400, { error: { message: 'No such model' } })
      reply.say('Half')
      await gate.promise
      reply.finish()
    })
    onTestFinished(() => upstream.close())
    const tasks = await startTaskServer({ statusMessage: 'Copies 40 of 100 rows' })
    onTestFinished(() => tasks.close())
    const cwd = folder({
      ...files('up:m'),
      'agents/slow.yaml': 'workflow: [{ id: copy, type: mcp-tool, config: { server: s, tool: slow } }]',
      'agents/millrace.config.mjs': `export default { mcpServers: { s: { url: '${tasks.url}' } } }`,
    })
    const server = await serving(['--endpoint', `up=${upstream.baseURL}`], { cwd })
    const start = async (agentId = 'a') => {
      const body = JSON.stringify({ agentId, input: { messages: [{ role: 'user', content: 'Hi' }] } })
      const headers = { 'content-type': 'application/json' }
      return (
        (await (await fetch(`${server.url}/api/runs`, { method: 'POST', headers, body })).json()) as { id: string }
      ).id
    }
    const show = async (id: string) => (await ran(['show', id], { cwd })).out
    const failed = await start()
    await expect
      .poll(() => show(failed))
      .toMatch(/ {2}failed\n[^]*answer +llm .*No such model[^]*\nError\n.*No such model\n$/)
    const live = await start()
    await expect
      .poll(() => show(live))
      .toMatch(
        / {2}running\n[^]*\ncost +known when the model call ends\n[^]*answer +llm +running\n[^]*assistant +Half\n$/,
      )
    gate.resolve()
    await expect.poll(() => show(live)).toMatch(/ {2}completed\n/)
    const slow = await start('slow')
    await expect.poll(() => show(slow)).toMatch(/copy +mcp-tool +running: Copies 40 of 100 rows\n/)
    tasks.set({ status: 'completed', result: { content: [] } })
    await expect.poll(() => show(slow)).toMatch(/ {2}completed\n/)
    expect(await show(slow)).not.toContain('Copies')
  })

  test('what steps came to that no client is shown: shortened, in full with --full', async () => {
    const long = 'word '.repeat(200).trim()
    const cwd = folder({
      'agents/a.yaml': `workflow:
  - id: facts
    type: llm
    config: { model: "demo:assistant", tools: [calculator] }
    result: facts
  - { id: shape, type: output-generator, config: { template: { said: "$facts.text", long: "${long}" } }, result: shaped }
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, messages: [{ role: user, content: "Hello" }] } }
`,
    })
    await ran(['run', 'a', '-m', 'What is 12*7?'], { cwd })
    const [{ id }] = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as [RunRow]
    const section = async (...flags: string[]) =>
      (await ran(['show', id, ...flags], { cwd })).out.split('Step outputs\n')[1]!.split('\n\n')[0]!
    const short = await section()
    expect(short).toMatch(
      /^facts\n(?: {2}assistant .*\n)? {2}calls +calculator \{"expression":"12\*7"\}\n {2}calculator +\{"result":84\}\n {2}assistant +12\*7 = 84\.\nshape\n {2}result +\{"said":"[^\n]*… \(\d+ characters\)$/,
    )
    const full = await section('--full')
    expect(full).toContain(`"long":"${long}"}`)
    const { outputs } = JSON.parse((await ran(['show', id, '--json', '--full'], { cwd })).out) as { outputs: object[] }
    expect(outputs).toMatchObject([
      { step: 'main/facts', messages: [{ role: 'assistant' }, { role: 'tool' }, { role: 'assistant' }] },
      { step: 'main/shape', result: { long } },
    ])
  })

  const row = {
    id: 'run_1a',
    agent: 'a',
    threadId: 't',
    protocol: 'api',
    status: 'completed',
    startedAt: 1,
    updatedAt: 2,
    lastSeq: 3,
  }
  const list = { runs: [row] }
  const usage = { source: 'reported' }
  const view = { ...row, input: {}, messages: [], steps: [], usage, requests: [], summary: { toolCalls: 0, errors: 0 } }
  const refusal = (code: string, message: string) => ({ error: { code, message } })

  test.each([
    ['lacks a field', [200, list], [200, view], 'its answer to GET /api/runs/run_1a has no usageByModel. Restart that'],
    ['answers a list otherwise', [200, [row]], [200, view], 'its answer to GET /api/runs has no runs. Restart that'],
    [
      'lacks the route',
      [200, list],
      [404, refusal('not-found', 'There is nothing at /api/runs/x.')],
      'it refuses GET /api/runs/run_1a: There is nothing at /api/runs/x. Restart that',
    ],
    [
      'lacks a parameter',
      [400, refusal('bad-input', 'Unknown parameter "idPrefix".')],
      [200, view],
      'it refuses GET /api/runs: Unknown parameter "idPrefix". Restart that',
    ],
  ] as [string, [number, object], [number, object], string][])(
    'beside an older server that %s, it says that the server is older',
    async (_, listed, shown, message) => {
      const server = createServer(({ url }, response) => {
        const [status, body] = url!.startsWith('/api/runs?') ? listed : shown
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void server.close())
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const { code, out, err } = await ran(['show', 'run_1a', '--url', url], { cwd: folder({}) })
      expect([code, out]).not.toContain(0)
      expect(err).toContain(`The server at ${url} is of another version: ${message}`)
    },
  )
})
