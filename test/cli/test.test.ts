/** `millrace test`: what it prints, writes and exits with. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder, millrace, ran } from '../support/cli.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

const demo = `workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, tools: [calculator] } }
`
const cases = `agent: a
cases:
  - name: adds
    message: "What is 2+3?"
    expect: { text: "5", tools: [{ name: calculator }] }
  - name: greets
    message: Hello
`
const project = () => folder({ 'agents/a.yaml': demo, 'tests/a.yaml': cases })

async function upstream(answer: (reply: UpstreamReply, n: number) => unknown) {
  const server = await startUpstream(answer)
  onTestFinished(() => server.close())
  return ['--endpoint', `up=${server.baseURL}`]
}

describe('millrace test', () => {
  test('the cases of this repository pass, from the recordings beside them', async () => {
    const { code, out, err } = await ran(['test', '--data', 'none'], { cwd: resolve('.') })
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/^tests\/assistant\.yaml\n {2}✓ multiplies with the calculator {2}\d+ tokens \(recorded\), \d/u)
    expect(out).toMatch(/\n3 passed, 0 tokens spent, \d\.\d\ds\n$/u)
  })

  test('without recordings the cases fail with the cure; --record makes them, and JUnit and JSON say the same', async () => {
    const cwd = project()
    const before = await ran(['test'], { cwd })
    expect(before.code).toBe(1)
    expect(before.out).toContain('  ✗ adds  0.0')
    expect(before.out).toContain(
      'recording: there is no recording tests/recordings/a/adds.ndjson; make it with --record',
    )
    const recorded = await ran(['test', '--record', '--junit', 'out/junit.xml'], { cwd })
    expect(recorded).toMatchObject({ code: 0, err: '' })
    expect(recorded.out).toMatch(/2 passed, \d{2,} tokens spent/u)
    expect(readFileSync(join(cwd, 'out/junit.xml'), 'utf8')).toMatch(
      /<testsuite name="tests\/a\.yaml" tests="2" failures="0"/u,
    )
    // They are whole logs.
    expect(await ran(['verify', 'tests/recordings/a/adds.ndjson'], { cwd })).toMatchObject({ code: 0 })

    writeFileSync(join(cwd, 'tests/a.yaml'), cases.replace('"5"', '"6"'))
    const wrong = await ran(['test', '-t', 'ADDS'], { cwd })
    expect(wrong.code).toBe(1)
    expect(wrong.out).toContain('      text: the answer does not contain "6"\n        - 6\n        + ')
    expect(wrong.out).toMatch(/0 passed, 1 failed, 0 tokens spent/u)
    const json = await ran(['test', '--json'], { cwd })
    expect(json.code).toBe(1)
    const told = JSON.parse(json.out) as { results: { name: string; status: string }[] }
    expect(told).toMatchObject({ passed: 1, failed: 1, skipped: 0, spent: { tokens: 0 } })
    expect(told.results.map(({ name, status }) => [name, status])).toEqual([
      ['adds', 'failed'],
      ['greets', 'passed'],
    ])
  })

  test('--model runs the cases with each model, and a table compares them', async () => {
    const cwd = folder({ 'agents/a.yaml': demo, 'tests/a.yaml': cases })
    const flags = await upstream((reply) => {
      reply.say('It is 5.')
      reply.finish()
    })
    const { code, out } = await ran(['test', '--record', '--model', 'demo:assistant, up:m', ...flags], { cwd })
    expect(code).toBe(1)
    expect(out).toContain('✓ adds (demo:assistant)')
    expect(out).toContain('✗ adds (up:m)')
    expect(out).toContain('tools: calculator was not called')
    expect(out).toMatch(
      /\nCASE +demo:assistant +up:m\nadds +✓ .*tokens.* +✗ .*\ngreets +✓ .* +✓ .*\n3 passed, 1 failed/u,
    )
    // The server is not asked again.
    expect(
      (await ran(['test', '--model', 'up:m', '-t', 'greets', '--endpoint', 'up=http://127.0.0.1:9/v1'], { cwd })).code,
    ).toBe(0)
  })

  test('a recorded run becomes a test case that passes at once, without the model', async () => {
    const cwd = folder({ 'agents/a.yaml': demo.replace('demo:assistant', 'up:m') })
    let asked = 0
    const flags = await upstream((reply) => {
      asked++
      reply.say(`Number ${asked}, "quoted": yes`)
      reply.finish()
    })
    const run = async (...more: string[]) =>
      /^run (run_\w+)$/mu.exec((await ran(['run', 'a', '-m', 'What: is it?', ...more, ...flags], { cwd })).err)![1]!
    const first = await run()
    const added = await ran(['test', '--add', first, ...flags], { cwd })
    expect(added).toMatchObject({ code: 0, err: 'added to tests/a.yaml:5: What: is it?\n' })
    expect(added.out).toMatch(/✓ What: is it\? {2}\d+~ tokens \(recorded\).*\n1 passed, 0 tokens spent/u)
    expect(asked).toBe(1)
    // A second one goes to the end of the same file, under a name of its own.
    const second = await run()
    expect((await ran(['test', '--add', second.slice(0, 20), ...flags], { cwd })).code).toBe(0)
    const named = await ran(['test', '--add', second, '--name', 'the same', ...flags], { cwd })
    expect(named.err).toMatch(/^added to tests\/a\.yaml:\d+: the same\n$/u)
    const text = readFileSync(join(cwd, 'tests/a.yaml'), 'utf8')
    expect(text).toContain(
      `  - name: 'What: is it? 2'\n    message: 'What: is it?'\n    expect:\n      text:\n        equals: 'Number 2, "quoted": yes'\n`,
    )
    const all = await ran(['test', ...flags], { cwd })
    expect([all.code, asked]).toEqual([0, 2])
    expect(all.out).toMatch(/3 passed, 0 tokens spent/u)
  })

  test('a conversation becomes a case with its turns', async () => {
    const cwd = folder({ 'agents/a.yaml': `history: server\n${demo}` })
    const ask = (message: string) => ran(['run', 'a', '-m', message, '--thread', 't1'], { cwd })
    await ask('What is 2+3?')
    const { err } = await ask('What is 4+5?')
    const added = await ran(['test', '--add', /run_\w+/u.exec(err)![0]], { cwd })
    expect(added.out).toMatch(/✓ What is 4\+5\?/u)
    expect(added.code).toBe(0)
    expect(readFileSync(join(cwd, 'tests/a.yaml'), 'utf8').match(/message: What is/gu)).toHaveLength(2)
    expect(existsSync(join(cwd, 'tests/recordings/a/what-is-4-5.2.ndjson'))).toBe(true)
  })

  test.each([
    [
      ['test'],
      2,
      /^millrace: There are no test cases in tests\. Write one, or make one of a run with: millrace test --add <run>$/mu,
    ],
    [['test', 'tests/b.yaml'], 2, /There is no file or folder tests\/b\.yaml/u],
    [['test', '--concurrency', '0'], 2, /--concurrency must be a number from 1 to 1000, not "0"\.|no test cases/u],
    [['test', '--name', 'x'], 2, /--name is the name of an added case: use it with --add\./u],
    [['test', '--add', 'run_1', '--record'], 2, /--add cannot be combined with --record/u],
    [['test', '--watch', '--json'], 2, /--watch cannot be combined with --json\./u],
    [['test', '--add', 'run_1'], 2, /No runs found in \.millrace/u],
    [['test', '--dir', 'nowhere'], 2, /There is no folder of agents at nowhere/u],
  ])('%j exits %i', async (args, code, message) => {
    const told = await ran(args, { cwd: folder({ 'agents/a.yaml': demo }) })
    expect(told).toMatchObject({ code, out: '' })
    expect(told.err).toMatch(message)
  })

  test('mistakes in cases are told with their places, those of all files at once', async () => {
    const cwd = folder({
      'agents/a.yaml': demo,
      'tests/a.yaml': 'agent: a\ncases: [{ name: x, mesage: m }]\n',
      'tests/deep/b.yml': 'agent: a\n',
      'tests/other.yaml': 'services: {}\n',
    })
    const { code, err } = await ran(['test'], { cwd })
    expect(code).toBe(2)
    expect(err.split('\n').slice(0, -1)).toEqual([
      'millrace: The test cases have errors:',
      expect.stringMatching(/^tests\/a\.yaml:2:20 unknown key "mesage" \(did you mean "message"\?\)/u),
      'tests/deep/b.yml:1:1 missing key "cases"; add it',
    ])
    writeFileSync(join(cwd, 'tests/a.yaml'), 'agent: b\ncases: [{ name: x, message: m }]\n')
    rmSync(join(cwd, 'tests/deep'), { recursive: true })
    const unknown = await ran(['test'], { cwd })
    expect(unknown).toMatchObject({
      code: 2,
      err: 'millrace: tests/a.yaml: there is no agent "b" in agents. Known: a.\n',
    })
    writeFileSync(join(cwd, 'agents/b.yaml'), 'workflow: []\n')
    expect((await ran(['test'], { cwd })).err).toContain('The agent of tests/a.yaml has errors:\nagents/b.yaml:1:11 ')
  })

  test('a run that was stopped cannot become a case', async () => {
    const cwd = folder({ 'agents/a.yaml': demo.replace('demo:assistant', 'up:m') })
    const reached = Promise.withResolvers<void>()
    const flags = await upstream(async (reply) => {
      reply.say('a')
      reached.resolve()
      await new Promise(() => undefined)
    })
    const command = millrace(['run', 'a', '-m', 'x', ...flags], { cwd })
    await reached.promise
    await command.until('run run_')
    command.kill('SIGINT')
    await command.exit
    const { code, err } = await ran(['test', '--add', /run_\w+/u.exec(command.err)![0], ...flags], { cwd })
    expect(code).toBe(2)
    expect(err).toMatch(/The run run_\w+ was stopped\. A case needs a run that has ended by itself/u)
    expect(existsSync(join(cwd, 'tests'))).toBe(false)
  })

  test('Ctrl-C stops the cases that run, and exits 130', async () => {
    const cwd = folder({ 'agents/a.yaml': demo.replace('demo:assistant', 'up:m'), 'tests/a.yaml': cases })
    const reached = Promise.withResolvers<void>()
    const flags = await upstream(async (reply) => {
      reply.say('a')
      reached.resolve()
      await new Promise(() => undefined)
    })
    const command = millrace(['test', '--record', '--concurrency', '1', ...flags], { cwd })
    await reached.promise
    command.kill('SIGINT')
    expect(await command.exit).toBe(130)
    expect(command.out).toMatch(/ {2}- adds .*\n+0 passed, 1 stopped, 1 not run/u)
    expect(existsSync(join(cwd, 'tests/recordings'))).toBe(false)
  })

  test('--watch runs again when a case or an agent changes', async () => {
    const cwd = project()
    await ran(['test', '--record'], { cwd })
    const command = millrace(['test', '--watch'], { cwd })
    const runs = async (count: number, text: RegExp) => {
      await expect.poll(() => command.err.split('waiting for changes').length - 1).toBe(count)
      expect(command.out.split('spent, ').at(-2)!).toMatch(text)
    }
    await runs(1, /2 passed/u)
    writeFileSync(join(cwd, 'tests/a.yaml'), cases.replace('"5"', '"6"'))
    await runs(2, /1 passed, 1 failed/u)
    writeFileSync(join(cwd, 'tests/a.yaml'), cases)
    await runs(3, /2 passed/u)
    writeFileSync(join(cwd, 'agents/a.yaml'), demo.replace('stream: true', 'stream: true, system: "Be new."'))
    await runs(4, /warning: the prompt of answer is not the recorded one/u)
    writeFileSync(join(cwd, 'tests/a.yaml'), 'agent: a\n')
    await runs(5, /2 passed/u)
    expect(command.err).toContain('tests/a.yaml:1:1 missing key "cases"')
    command.kill('SIGINT')
    expect(await command.exit).toBe(130)
  })
})
