/** `millrace answer`: through the live server and without one, listed, given on the command line, asked on a terminal. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { EntryOf } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import { folder, millrace, ran, serving } from '../support/cli.ts'
import { onTerminal } from '../support/terminal.ts'
import { startUpstream } from '../support/upstream.ts'

const agent = (model: string) => `workflow:
  - id: answer
    type: llm
    config:
      model: "${model}"
      stream: true
      tools:
        - { name: calculator, approval: true }
        - { name: askUser, client: true, parameters: { question: string } }
`
const ask = 'Use the tool askUser with question "Which town?"'
const rowsOf = async (cwd: string) => JSON.parse((await ran(['ps', '--json'], { cwd })).out) as RunRow[]

/** A run that waits for a tool of the client. */
async function suspended(cwd: string, ...flags: string[]): Promise<string> {
  const { err } = await ran(['run', 'a', '-m', ask, ...flags], { cwd })
  return /millrace answer (run_\w+)/u.exec(err)![1]!
}

const two = `workflow:
  - id: both
    type: parallel
    config:
      branches:
        sum: [{ id: a, type: llm, config: { model: "demo:assistant", messages: "$input.sum", tools: [{ name: calculator, approval: true }] } }]
        town: [{ id: b, type: llm, config: { model: "demo:assistant", messages: "$input.town", tools: [{ name: askUser, client: true, parameters: { question: string } }] } }]
    result: both
return: { sum: "$both.sum.text", town: "$both.town.text" }
`
const said = (content: string) => [{ role: 'user', content }]

test.each([true, false])(
  'JSON is what the tool returned; the run goes on and is shown (server: %s)',
  async (hasServer) => {
    const cwd = folder({ 'agents/a.yaml': agent('demo:assistant') })
    if (hasServer) await serving([], { cwd })
    const id = await suspended(cwd)
    const listed = await ran(['answer', id], { cwd })
    expect([listed.code, listed.out]).toEqual([
      0,
      expect.stringMatching(/^REQUEST .*\n1\.\d+ +result +askUser +2.*Which town/),
    ])
    expect(listed.err).toBe(`\nAnswer with:\n  millrace answer ${id} '<JSON or text>'\n`)
    const [request] = JSON.parse((await ran(['answer', id, '--json'], { cwd })).out) as [EntryOf<'request'>]
    expect(request).toMatchObject({ kind: 'tool', toolName: 'askUser', input: { question: 'Which town?' } })
    const answered = await ran(['answer', id.slice(0, 12), '{"town": "Ghent"}'], { cwd })
    expect([answered.code, answered.out]).toEqual([0, 'askUser gave {"town":"Ghent"}.\n'])
    const here = `no server is running on .millrace: ${id} continues in this process\n`
    expect(answered.err.startsWith(here)).toBe(!hasServer)
    expect(await rowsOf(cwd)).toMatchObject([{ id, status: 'completed' }])
    const again = await ran(['answer', id, 'Bruges'], { cwd })
    expect([again.code, again.err]).toEqual([2, `millrace: ${id} has no open requests (completed).\n`])
  },
)

test('several requests: one is chosen by its tool or its id; deny takes a reason, a tool may have failed', async () => {
  const input = { sum: said('What is 12*7?'), town: said(ask) }
  const cwd = folder({ 'agents/a.yaml': two })
  const server = await serving([], { cwd })
  const body = JSON.stringify({ agentId: 'a', input })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${server.url}/api/runs`, { method: 'POST', headers, body })
  const { id } = (await response.json()) as { id: string }
  const answer = (...args: string[]) => ran(['answer', id, ...args], { cwd })
  await expect.poll(async () => (await rowsOf(cwd))[0]?.status).toBe('suspended')

  expect(await answer('approve')).toMatchObject({
    code: 2,
    err: expect.stringContaining('Choose one with --request: '),
  })
  expect(await answer('approve', '--request', 'calculatr')).toMatchObject({
    code: 2,
    err: expect.stringContaining('no open request calculatr (did you mean "calculator"?)'),
  })
  expect(await answer('aprove', '--request', 'calculator')).toMatchObject({
    code: 2,
    err: expect.stringContaining('answer approve or deny, not "aprove" (did you mean "approve"?)'),
  })
  expect(await answer('x', '--request', 'askUser', '--reason', 'y')).toMatchObject({ code: 2 })
  expect(await answer('deny', '--request', 'calculator', '--error')).toMatchObject({ code: 2 })

  const denied = await answer('deny', '--request', 'calculator', '--reason', 'too expensive')
  // What is left is said with the line that answers it.
  expect([denied.code, denied.err]).toEqual([1, expect.stringContaining(`  millrace answer ${id} '<JSON or text>'\n`)])
  const [left] = JSON.parse((await answer('--json')).out) as [EntryOf<'request'>]
  const empty = await answer('-', '--request', left.requestId.slice(id.length + 1))
  expect([empty.code, empty.err]).toEqual([2, 'millrace: The answer is empty.\n'])
  const piped = millrace(['answer', id, '-', '--error'], { cwd, input: 'no such town\n' })
  expect(await piped.exit).toBe(0)
  expect(JSON.parse(piped.out)).toEqual({
    sum: expect.stringContaining('too expensive'),
    town: expect.stringContaining('no such town'),
  })
})

test('a run that another command runs is left to it', async () => {
  const upstream = await startUpstream((reply) => reply.say('Half'))
  onTestFinished(() => upstream.close())
  const cwd = folder({ 'agents/a.yaml': agent('demo:assistant'), 'agents/up.yaml': agent('up:m') })
  const flags = ['--endpoint', `up=${upstream.baseURL}`]
  const id = await suspended(cwd, ...flags)
  const other = millrace(['run', 'up', '-m', 'Hi', ...flags], { cwd })
  await other.until('Half')
  const refused = await ran(['answer', id, 'Ghent', ...flags], { cwd })
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('another millrace command')])
})

test('a run of a server that is gone, answered here, is alive to others for as long as it goes on', async () => {
  const gate = Promise.withResolvers<void>()
  const upstream = await startUpstream(async (reply, n) => {
    if (n === 1) {
      reply.call('call_1', 'askUser', { question: 'Which town?' })
      return reply.finish('tool_calls')
    }
    reply.say('Half')
    await gate.promise
    reply.finish()
  })
  onTestFinished(() => upstream.close())
  const flags = ['--endpoint', `up=${upstream.baseURL}`]
  const cwd = folder({ 'agents/a.yaml': agent('up:m') })
  const server = await serving(flags, { cwd })
  const id = await suspended(cwd)
  server.kill('SIGTERM')
  await server.exit
  const answering = millrace(['answer', id, 'Ghent', ...flags], { cwd })
  await answering.until('Half')
  const [row] = await rowsOf(cwd)
  expect(row).toMatchObject({ id, status: 'running', protocol: 'api' })
  expect(row).not.toHaveProperty('orphaned')
  gate.resolve()
  expect([await answering.exit, answering.out]).toEqual([0, 'Half\n'])
})

describe('on a terminal', () => {
  test('what is open is asked', async () => {
    const cwd = folder({ 'agents/a.yaml': agent('demo:assistant') })
    const id = await suspended(cwd)
    const command = onTerminal(['answer', id], { cwd })
    await command.until('askUser {"question":"Which town?"} runs in the client.')
    command.type('Ghent\n')
    expect([await command.exit, command.shown]).toEqual([0, expect.stringContaining('askUser gave Ghent.')])
  })
})

test('an approval asked of an OpenAI client: the command that it was told answers it, and the client gets the rest', async () => {
  const cwd = folder({ 'agents/a.yaml': agent('demo:assistant') })
  const { url } = await serving([], { cwd })
  const complete = async (messages: object[]) => {
    const body = JSON.stringify({ model: 'a', messages })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
    return choices[0]!.message
  }
  const question = { role: 'user', content: 'What is 12*7?' }
  const first = await complete([question])
  const [, command] = /^Or run: millrace (.+)$/mu.exec(first.content)!
  expect((await ran([...command!.split(' '), 'approve'], { cwd })).code).toBe(0)
  expect((await complete([question, first])).content).toContain('12*7 = 84.')
})
