/** `show`: what one run came to, from the live server and from the database alike. */
import { expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { folder, ran, serving } from '../support/cli.ts'
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
  const cwd = folder(files('up:m'))
  const server = await serving(['--endpoint', `up=${upstream.baseURL}`], { cwd })
  const start = async () => {
    const body = JSON.stringify({ agentId: 'a', input: { messages: [{ role: 'user', content: 'Hi' }] } })
    const headers = { 'content-type': 'application/json' }
    return ((await (await fetch(`${server.url}/api/runs`, { method: 'POST', headers, body })).json()) as { id: string })
      .id
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
