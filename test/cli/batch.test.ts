/** `millrace run <agent> --input cases.jsonl`: one run per line. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder, millrace, ran, serving } from '../support/cli.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

const agent = 'workflow:\n  - { id: answer, type: llm, config: { model: "up:m", stream: true, retries: 0 } }\n'
const echo =
  'workflow:\n  - { id: out, type: output-generator, config: { template: { said: "$input.word" } } }\ninput: { word: string }\n'

interface Result {
  line: number
  run?: string
  outcome: string
  text: string
  output?: unknown
  usage?: { totalTokens?: number }
  cost?: number
  duration: number
  error?: { code: string; message: string }
}

const resultsIn = (out: string) =>
  out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result)

/** Answers each call of the model, for the last message that it has. */
async function upstream(answer: (reply: UpstreamReply, message: string) => unknown) {
  const server = await startUpstream((reply) => {
    return answer(reply, String(reply.body.messages.at(-1)!.content))
  })
  onTestFinished(() => server.close())
  return ['--endpoint', `up=${server.baseURL}`]
}

describe('millrace batch', () => {
  test('each line is a run; results come as they finish, with all that they came to', async () => {
    const second = Promise.withResolvers<void>()
    const flags = await upstream(async (reply, message) => {
      // The first line ends only after the second: both run at the same time.
      if (message === 'one') await second.promise
      reply.say(`You said ${message}.`)
      reply.finish()
    })
    const cwd = folder({
      'agents/a.yaml': agent,
      'in.jsonl': '"one"\n\n{"messages": [{"role": "user", "content": "two"}]}\r\n',
    })
    const command = millrace(['run', 'a', '--input', 'in.jsonl', '--concurrency', '2', ...flags], { cwd })
    await command.until('"line":3')
    second.resolve()
    expect(await command.exit).toBe(0)
    expect(resultsIn(command.out)).toEqual([
      {
        line: 3,
        hash: expect.stringMatching(/^[0-9a-f]{16}$/u),
        run: expect.stringMatching(/^run_/u),
        outcome: 'completed',
        text: 'You said two.',
        usage: expect.objectContaining({ totalTokens: expect.any(Number) as number }),
        duration: expect.any(Number),
      },
      expect.objectContaining({ line: 1, outcome: 'completed', text: 'You said one.' }),
    ])
    expect(command.err).toMatch(/^1\/2, \d+~ tokens, ETA .*\n2 completed, \d+~ tokens, \d/u)
  })

  test('a value is the output; a failure is a result, the others go on, and the command exits 1', async () => {
    const cwd = folder({ 'agents/a.yaml': echo, 'in.ndjson': '{"word": "a"}\n{"wrd": "b"}\n{"word": "c"}\n' })
    const args = ['run', 'a', '--input', 'in.ndjson', '--concurrency', '1']
    const { code, out, err } = await ran(args, { cwd })
    expect(code).toBe(1)
    expect(resultsIn(out).map(({ line, outcome, output, error }) => [line, outcome, output, error?.code])).toEqual([
      [1, 'completed', { said: 'a' }, undefined],
      [2, 'failed', undefined, 'bad-input'],
      [3, 'completed', { said: 'c' }, undefined],
    ])
    expect(err).toContain('line 2: failed: ')
    expect(err).toMatch(/2 completed, 1 failed, \d/u)
    const bailed = await ran([...args, '--bail'], { cwd })
    expect(bailed.code).toBe(1)
    expect(resultsIn(bailed.out)).toHaveLength(2)
    expect(bailed.err).toMatch(/1 completed, 1 failed, 1 not run, \d/u)
  })

  test('--resume leaves out the lines that have completed, and nothing else', async () => {
    const cwd = folder({ 'agents/a.yaml': echo, 'in.jsonl': '{"word": "a"}\n{"wrd": "b"}\n{"word": "c"}\n' })
    const args = ['run', 'a', '--input', 'in.jsonl', '--output', 'out.jsonl']
    const first = await ran(args, { cwd })
    expect([first.code, first.out]).toEqual([1, ''])
    const file = join(cwd, 'out.jsonl')
    const read = () => resultsIn(readFileSync(file, 'utf8')).toSorted((a, b) => a.line - b.line)
    const before = read()
    expect(before).toHaveLength(3)
    expect(await ran(args, { cwd })).toMatchObject({
      code: 2,
      err: expect.stringContaining('out.jsonl exists. Continue it with --resume'),
    })
    // The second line is mended, the third is another one now, and a crash has cut off the last result.
    writeFileSync(join(cwd, 'in.jsonl'), '{"word": "a"}\n{"word": "b"}\n{"word": "d"}\n')
    appendFileSync(file, '{"line": 9, "ha')
    const again = await ran([...args, '--resume'], { cwd })
    expect(again.code).toBe(0)
    expect(again.err).toMatch(/2 completed, 1 done before, \d/u)
    const after = read()
    expect(after.map(({ line, output }) => [line, output])).toEqual([
      [1, { said: 'a' }],
      [2, { said: 'b' }],
      [3, { said: 'd' }],
    ])
    expect(after[0]!.run).toBe(before[0]!.run)
    const done = await ran([...args, '--resume'], { cwd })
    expect([done.code, done.err]).toEqual([0, expect.stringMatching(/^0 completed, 3 done before, /u)])
  })

  test('bad lines are told with their places, and nothing is started', async () => {
    const cwd = folder({ 'agents/a.yaml': echo, 'in.jsonl': '{"word": "a"}\n{"word"\n\n[1]\n' })
    const { code, out, err } = await ran(['run', 'a', '--input', 'in.jsonl', '--output', 'o.jsonl'], { cwd })
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(
      /^millrace: --input in\.jsonl has errors:\nin\.jsonl:2 .+\nin\.jsonl:4 must be a JSON object \(the input\) or a JSON string \(the message\)\n$/u,
    )
    expect([existsSync(join(cwd, '.millrace')), existsSync(join(cwd, 'o.jsonl'))]).toEqual([false, false])
  })

  test('approvals are denied without --yes; what else a run waits for is a failure that says so', async () => {
    const tools = 'tools: [{ name: calculator, approval: true }]'
    const client = 'tools: [{ name: where, client: true, description: d, parameters: {} }]'
    const cwd = folder({
      'agents/a.yaml': agent.replace('up:m', 'demo:assistant').replace('retries: 0', tools),
      'agents/b.yaml': agent.replace('retries: 0', client),
      'in.jsonl': '"What is 2+3?"\n',
    })
    const flags = await upstream((reply) => {
      reply.call('c1', 'where', '{}')
      reply.finish()
    })
    const denied = await ran(['run', 'a', '--input', 'in.jsonl'], { cwd })
    expect(denied.code).toBe(0)
    const [result] = resultsIn(denied.out)
    expect((await ran(['logs', result!.run!], { cwd })).out).toContain('nobody is asked in a batch')
    const approved = await ran(['run', 'a', '--input', 'in.jsonl', '--yes'], { cwd })
    expect(resultsIn(approved.out)[0]!.text).toContain('= 5')
    const waiting = await ran(['run', 'b', '--input', 'in.jsonl', ...flags], { cwd })
    expect(waiting.code).toBe(1)
    expect(resultsIn(waiting.out)[0]).toMatchObject({
      outcome: 'suspended',
      error: { code: 'suspended', message: 'It waits for where, and nobody is asked in a batch.' },
    })
  })

  test('a batch runs on the live server', async () => {
    const cwd = folder({ 'agents/a.yaml': echo, 'in.jsonl': '{"word": "a"}\n{"word": "b"}\n' })
    await serving([], { cwd })
    const { code, out } = await ran(['run', 'a', '--input', 'in.jsonl'], { cwd })
    expect(code).toBe(0)
    const [first] = resultsIn(out)
    expect((await ran(['show', first!.run!, '--json'], { cwd })).out).toContain('"protocol": "api"')
  })

  test('a server that takes no more runs for a while is asked again when it says', async () => {
    const config = 'export default { server: { rateLimit: { runsPerMinute: 60 } } }'
    const lines = Array.from({ length: 61 }, (_, i) => `{"word": "${i}"}\n`).join('')
    const cwd = folder({ 'agents/a.yaml': echo, 'agents/millrace.config.mjs': config, 'in.jsonl': lines })
    await serving([], { cwd })
    const { code, out, err } = await ran(['run', 'a', '--input', 'in.jsonl'], { cwd })
    expect([
      code,
      resultsIn(out)
        .map(({ line }) => line)
        .toSorted((x, y) => x - y),
    ]).toEqual([0, Array.from({ length: 61 }, (_, i) => i + 1)])
    expect(err).toContain('61 completed')
  })

  test('Ctrl-C stops the runs and exits 130; what was stopped is run again by --resume', async () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const flags = await upstream(async (reply, message) => {
      if (message === 'two') {
        reply.say('half')
        reached.resolve()
        await gate.promise
      }
      reply.say('whole')
      reply.finish()
    })
    const cwd = folder({ 'agents/a.yaml': agent, 'in.jsonl': '"one"\n"two"\n"three"\n' })
    const args = ['run', 'a', '--input', 'in.jsonl', '--output', 'o.jsonl', '--concurrency', '1', ...flags]
    const command = millrace(args, { cwd })
    await reached.promise
    command.kill('SIGINT')
    expect(await command.exit).toBe(130)
    expect(resultsIn(readFileSync(join(cwd, 'o.jsonl'), 'utf8')).map(({ line }) => line)).toEqual([1])
    expect((await ran(['ps', '--json'], { cwd })).out).toContain('"aborted"')
    gate.resolve()
    writeFileSync(join(cwd, 'in.jsonl'), '"one"\n"2"\n"three"\n')
    expect((await ran([...args, '--resume'], { cwd })).code).toBe(0)
    expect(resultsIn(readFileSync(join(cwd, 'o.jsonl'), 'utf8')).map(({ line, text }) => [line, text])).toEqual([
      [1, 'whole'],
      [2, 'whole'],
      [3, 'whole'],
    ])
  })

  test.each([
    ['--input in.jsonl -m hi', /-m cannot be combined with a batch: each line is an input\./u],
    ['--input in.jsonl --format ui', /--format cannot be combined with a batch/u],
    ['--input in.jsonl --concurrency 0', /--concurrency must be a number from 1 to 1000, not "0"\./u],
    ['--input in.jsonl --resume', /--resume needs the file with the results so far: add --output\./u],
    ['--input no.jsonl', /--input: there is no file no\.jsonl\./u],
    ['--input empty.jsonl', /--input empty\.jsonl is empty: write one input per line\./u],
    ['--input lines.json', /--input lines\.json: .*If it has one input per line, name it \.jsonl/u],
    ['-m hi --bail', /--bail is for batches: pass --input with a \.jsonl file, one input per line\./u],
    ['--input in.jsonl --dir nowhere', /There is no folder of agents at nowhere/u],
  ])('millrace run a %s', async (flags, message) => {
    const cwd = folder({
      'agents/a.yaml': echo,
      'in.jsonl': '{}\n',
      'empty.jsonl': '\n',
      'lines.json': '{"word": 1}\n{"word": 2}\n',
    })
    const { code, out, err } = await ran(['run', 'a', ...flags.split(' ')], { cwd })
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(message)
  })
})
