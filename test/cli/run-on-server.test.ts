/** `millrace run` while a server is live: it runs there when the server has the agent, and says so when it cannot. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { builtinWires } from '../../src/wire/builtin-wires.ts'
import { folder, millrace, ran, serving } from '../support/cli.ts'
import { askingAgent as tools, onTerminal } from '../support/terminal.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

const onUpstream = `workflow:
  - { id: answer, type: llm, config: { model: "up:m", stream: true } }
`
const demo = onUpstream.replace('up:m', 'demo:assistant')
const askUser = 'Use the tool askUser with question "Which town?"'
async function upstream(answer: (reply: UpstreamReply, n: number) => unknown) {
  const server = await startUpstream(answer)
  onTestFinished(() => server.close())
  return ['--endpoint', `up=${server.baseURL}`]
}

/** A model that says `Half` and waits. */
async function heldModel() {
  const gate = Promise.withResolvers<void>()
  const flags = await upstream(async (reply) => {
    reply.say('Half')
    await gate.promise
    reply.say(' and whole')
    reply.finish()
  })
  return { gate, flags }
}

async function rowsOf(cwd: string, ...flags: string[]): Promise<RunRow[]> {
  return JSON.parse((await ran(['ps', '--json', ...flags], { cwd })).out) as RunRow[]
}

const titles = (rows: RunRow[]) => rows.map(({ title }) => title)

test('it runs on the server, where others see it; every format is printed while the model speaks', async () => {
  const { gate, flags } = await heldModel()
  const cwd = folder({ 'agents/a.yaml': onUpstream })
  const server = await serving(flags, { cwd })
  const formats = [...builtinWires.keys()]
  const commands = formats.map((format) => millrace(['run', 'a', '-m', format, '--format', format], { cwd }))
  for (const command of commands) await command.until('Half')
  const rows = await rowsOf(cwd)
  expect(new Set(titles(rows))).toEqual(new Set(formats))
  expect(rows.map(({ status }) => status)).toEqual(formats.map(() => 'running'))
  expect((await ran(['show', rows[0]!.id], { cwd })).out).toMatch(/ {2}running\n[^]*Half/)
  gate.resolve()
  for (const [i, command] of commands.entries()) {
    expect([formats[i], await command.exit]).toEqual([formats[i], 0])
    expect(command.out).toContain('and whole')
    expect(command.err).toMatch(new RegExp(`^run run_\\w+ on ${server.url}\ncompleted; \\d+ tokens in`, 'u'))
  }
  const text = commands[formats.indexOf('text')]!
  expect(text.out).toBe('Half and whole\n')
  expect((await rowsOf(cwd)).map(({ status }) => status)).toEqual(formats.map(() => 'completed'))
})

test('without a server every format is printed while the model speaks as well', async () => {
  const { gate, flags } = await heldModel()
  const cwd = folder({ 'agents/a.yaml': onUpstream })
  const commands = [...builtinWires.keys()].map((format) =>
    millrace(['run', 'a', '-m', 'Hi', '--format', format, '--data', 'none', ...flags], { cwd }),
  )
  for (const command of commands) await command.until('Half')
  gate.resolve()
  for (const command of commands)
    expect([await command.exit, command.out]).toEqual([0, expect.stringContaining('whole')])
})

test('Ctrl-C stops the run on the server, which keeps the reason', async () => {
  const { flags } = await heldModel()
  const cwd = folder({ 'agents/a.yaml': onUpstream })
  await serving(flags, { cwd })
  const command = millrace(['run', 'a', '-m', 'Hi'], { cwd })
  await command.until('Half')
  command.kill('SIGINT')
  expect([await command.exit, command.err]).toEqual([130, expect.stringContaining('aborted: Stopped with Ctrl-C;')])
  expect(await rowsOf(cwd)).toMatchObject([{ status: 'aborted', error: { message: 'Stopped with Ctrl-C.' } }])
})

test('approvals are refused without a terminal and given with --yes; a client tool waits, exit 1, with its cure', async () => {
  const cwd = folder({ 'agents/a.yaml': tools })
  for (const hasServer of [false, true]) {
    if (hasServer) await serving([], { cwd })
    const refused = await ran(['run', 'a', '-m', 'What is 12*7?'], { cwd })
    expect([refused.code, refused.out]).toEqual([0, expect.stringContaining('not allowed')])
    const approved = await ran(['run', 'a', '--yes', '-m', 'What is 12*7?'], { cwd })
    expect([approved.code, approved.out]).toEqual([0, expect.stringContaining('12*7 = 84.')])
    const waiting = await ran(['run', 'a', '--yes', '-m', askUser], { cwd })
    expect([waiting.code, waiting.err]).toEqual([
      1,
      expect.stringMatching(/^suspended: (run_\w+) waits .*\n {2}millrace answer \1 '<JSON or text>'\n$/m),
    ])
    expect((await rowsOf(cwd))[0]).toMatchObject({ status: 'suspended' })
  }
  // Without a log nothing can wait.
  const nowhere = await ran(['run', 'a', '--data', 'none', '-m', askUser], { cwd })
  expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringMatching(/^askUser: runs in the client.*--data none/m)])
})

test('what the server cannot run happens beside it, in a log of its own, and says so', async () => {
  const flags = await upstream((reply) => {
    reply.say('Hello')
    reply.finish()
  })
  const cwd = folder({ 'agents/a.yaml': demo, 'other/b.yaml': tools, 'agents/up.yaml': demo })
  const server = await serving([], { cwd })
  const own = join('.millrace', 'local')
  const file = await ran(['run', 'other/b.yaml', '--yes', '-m', 'What is 12*7?'], { cwd })
  expect([file.code, file.out]).toEqual([0, expect.stringContaining('84')])
  expect(file.err).toContain(`The server at ${server.url} serves `)
  expect(file.err).toMatch(
    /not other\. Running in this process instead; see the run with: millrace ps --data \S+local\n/,
  )
  const named = await ran(['run', 'b', '--dir', 'other', '-m', 'Hi'], { cwd })
  expect([named.code, named.err]).toEqual([0, expect.stringContaining(', not other. ')])

  writeFileSync(join(cwd, 'agents/up.yaml'), onUpstream)
  const lacking = await ran(['run', 'up', '-m', 'Hey', ...flags], { cwd })
  expect([lacking.code, lacking.out]).toEqual([0, 'Hello\n'])
  expect(lacking.err).toContain(
    `The server at ${server.url} was started without --endpoint up=…. Running in this process instead`,
  )
  expect(titles(await rowsOf(cwd, '--data', own))).toEqual(['Hey', 'Hi', 'What is 12*7?'])
  expect(await rowsOf(cwd)).toEqual([])
  const memory = await ran(['run', 'a', '-m', 'Hi', '--data', 'none'], { cwd })
  expect([memory.code, memory.err]).toEqual([0, expect.not.stringContaining(server.url)])
})

test('a file of the server’s folder runs there, as it was saved last; one that is broken says where', async () => {
  const says = (words: string) =>
    `workflow:\n  - { id: out, type: output-generator, config: { template: "${words}" } }\n`
  const cwd = folder({ 'agents/a.yaml': says('one') })
  await serving([], { cwd })
  for (const words of ['two', 'three']) {
    writeFileSync(join(cwd, 'agents/a.yaml'), says(words))
    expect(await ran(['run', 'agents/a.yaml', '-m', 'Hi'], { cwd })).toMatchObject({ code: 0, out: `${words}\n` })
  }
  writeFileSync(join(cwd, 'agents/new.yaml'), says('new'))
  expect(await ran(['run', 'new', '-m', 'Hi'], { cwd })).toMatchObject({ code: 0, out: 'new\n' })
  expect(await rowsOf(cwd)).toHaveLength(3)
  writeFileSync(join(cwd, 'agents/a.yaml'), 'workflow:\n  - {}\n')
  const broken = await ran(['run', 'a', '-m', 'Hi'], { cwd })
  expect([broken.code, broken.out, broken.err]).toEqual([2, '', expect.stringMatching(/a\.yaml:2:\d+ /)])
  const unknown = await ran(['run', 'nw', '-m', 'Hi'], { cwd })
  expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining('(did you mean "new"?)')])
})

test('a server of another folder is enough where there is no folder of agents here; --url names any server', async () => {
  const key = 'a-key-of-this-test'
  const cwd = folder({ 'elsewhere/a.yaml': demo })
  const server = await serving(['elsewhere'], { cwd, env: { MILLRACE_API_KEY: key } })
  const keyless = await ran(['run', 'a', '-m', 'Hi'], { cwd })
  expect([keyless.code, keyless.err]).toEqual([
    1,
    expect.stringContaining('requires a key: set MILLRACE_API_KEY, or run: millrace login --server '),
  ])
  const env = { MILLRACE_API_KEY: key }
  expect(await ran(['run', 'a', '-m', 'Hi'], { cwd, env })).toMatchObject({
    code: 0,
    err: expect.stringContaining(' on http'),
  })
  const far = await ran(['run', 'a', '-m', 'Hi', '--url', server.url], { cwd: folder(), env })
  expect(far).toMatchObject({ code: 0, err: expect.stringContaining(` on ${server.url}\n`) })
  for (const args of [['elsewhere/a.yaml'], ['a', '--endpoint', 'up=http://127.0.0.1:9/v1']]) {
    const both = await ran(['run', ...args, '-m', 'Hi', '--url', server.url], { cwd, env })
    expect([both.code, both.err]).toEqual([2, expect.stringContaining('cannot be combined with --url')])
  }
})

describe('on a terminal', () => {
  test('the server’s questions are asked on the terminal', async () => {
    const cwd = folder({ 'agents/a.yaml': tools })
    await serving([], { cwd })
    const approval = onTerminal(['run', 'a', '-m', 'What is 12*7?'], { cwd })
    await approval.until('Allow calculator {"expression":"12*7"}? [y/N]')
    expect(await rowsOf(cwd)).toMatchObject([{ status: 'suspended' }])
    approval.type('y\n')
    expect([await approval.exit, approval.shown]).toEqual([0, expect.stringContaining('12*7 = 84.')])
    const tool = onTerminal(['run', 'a', '-m', askUser], { cwd })
    await tool.until('runs in the client.')
    tool.type('{"town": "Ghent"}\n')
    expect([await tool.exit, tool.shown]).toEqual([0, expect.stringContaining('askUser gave {"town":"Ghent"}.')])
  })
})
