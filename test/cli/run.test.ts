/** `millrace run`: one run, its answer on stdout, how it went in the exit code. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { builtinWires } from '../../src/wire/builtin-wires.ts'
import type { AgUiEvent } from '../../src/wire/ag-ui/ag-ui-event.ts'
import { agUiRuns } from '../ag-ui-judge.ts'
import { parseSse } from '../sse.ts'
import { grammarFaults } from '../support/engine.ts'
import { folder, millrace, ran, serving } from '../support/cli.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

const demo = `workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, tools: [calculator] } }
`
const onUpstream = demo.replace('demo:assistant', 'up:m')
const echo = `workflow:
  - { id: out, type: output-generator, config: { template: { said: "$input.word" } } }
`

async function upstream(answer: (reply: UpstreamReply, n: number) => unknown) {
  const server = await startUpstream(answer)
  onTestFinished(() => server.close())
  return ['--endpoint', `up=${server.baseURL}`]
}

describe('millrace run', () => {
  test('the answer to -m is on stdout, everything else on stderr', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    const { code, out, err } = await ran(['run', 'a', '-m', 'What is 12*7?'], { cwd })
    expect(code).toBe(0)
    expect(out).toMatch(/84[^]*\n$/)
    expect(err).toMatch(/^run run_\w+\ncompleted; \d+ tokens in, \d+ out \(\w+\)\n$/)
  })

  test('stdin is the message; a file by its path is an agent', async () => {
    const cwd = folder({ 'elsewhere/b.yml': demo })
    const { code, out } = await ran(['run', 'elsewhere/b.yml'], { cwd, input: 'What is 6*7?\n' })
    expect([code, out]).toEqual([0, expect.stringContaining('42')])
  })

  test('--input is $input; without an answering step the value is printed', async () => {
    const cwd = folder({ 'agents/a.yaml': echo, 'in.json': '{"word": "hé"}' })
    const { code, out, err } = await ran(['run', 'a', '--input', 'in.json'], { cwd })
    expect([code, JSON.parse(out)]).toEqual([0, { said: 'hé' }])
    // No model was asked: there are no tokens to tell of.
    expect(err).toMatch(/^run run_\w+\ncompleted\n$/)
  })

  test('--debug says who reads the streams of a model, on the command line and on the server', async () => {
    const flags = await upstream((reply) => {
      reply.say('Hi')
      reply.finish()
    })
    flags.push('--debug')
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const line = (reader: string) => `debug: the streams of up:m (protocol openai-chat) are read by ${reader}\n`
    expect((await ran(['run', 'a', '-m', 'Hi', ...flags], { cwd })).err).toContain(line('Millrace'))
    const env = { MILLRACE_DECODER: 'package' }
    expect((await ran(['run', 'a', '-m', 'Hi', ...flags], { cwd, env })).err).toContain(line('the AI SDK package'))
    expect((await ran(['run', 'a', '-m', 'Hi', ...flags.slice(0, 2)], { cwd })).err).not.toContain('debug')
    const server = await serving(flags, { cwd })
    expect((await ran(['run', 'a', '-m', 'Hi'], { cwd })).code).toBe(0)
    expect(server.err).toContain(line('Millrace'))
  })

  test('text comes as it is said', async () => {
    const gate = Promise.withResolvers<void>()
    const flags = await upstream(async (reply) => {
      reply.say('Hel')
      await gate.promise
      reply.say('lo')
      reply.finish()
    })
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const command = millrace(['run', 'a', '-m', 'Hi', ...flags], { cwd })
    await command.until('Hel')
    expect(command.out).toBe('Hel')
    gate.resolve()
    expect([await command.exit, command.out]).toEqual([0, 'Hello\n'])
  })

  test('--format parts is the log, --format ui the AI SDK stream', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    const parts = await ran(['run', 'a', '-m', 'What is 12*7?', '--format', 'parts'], { cwd })
    const entries = parts.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry)
    expect(grammarFaults(entries)).toEqual([])
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
    const ui = await ran(['run', 'a', '-m', 'What is 12*7?', '--format', 'ui'], { cwd })
    expect(ui.out).toMatch(/^data: \{"type":"start"[^]*data: \[DONE\]\n\n$/)
  })

  test('a failed run is exit 1 and says why', async () => {
    const flags = await upstream((reply) => reply.refuse(400, { error: { message: 'No such model' } }))
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const { code, out, err } = await ran(['run', 'a', '-m', 'Hi', ...flags], { cwd })
    // No line was begun: none is ended.
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/failed: .*No such model/)
  })

  test.each([
    ['an unknown agent', ['run', 'b', '-m', 'x'], /no agent "b" \(did you mean "a"\?\)\. Known agents: a\./],
    ['a missing file', ['run', 'b.yaml', '-m', 'x'], /no agent file b\.yaml/],
    [
      'a misspelt file',
      ['run', 'agents/brokn.yaml', '-m', 'x'],
      /no agent file agents\/brokn\.yaml \(did you mean "agents\/broken\.yaml"\?\)/,
    ],
    [
      'a missing folder',
      ['run', 'a', '--dir', 'nowhere', '-m', 'x'],
      /no folder of agents at nowhere.*millrace init.*--dir/,
    ],
    ['a yes that nobody can record', ['run', 'a', '--yes', '--data', 'none', '-m', 'x'], /--yes needs a log/],
    ['a broken agent', ['run', 'broken', '-m', 'x'], /agents\/broken\.yaml:2:\d+ /],
    ['an empty message', ['run', 'a', '-m', ''], /message is empty/],
    ['a missing input file', ['run', 'a', '--input', 'none.json'], /--input: there is no file none\.json\./],
    ['an input that is no object', ['run', 'a', '--input', 'list.json'], /must hold a JSON object/],
    ['no agent', ['run'], /missing required argument 'agent'/],
  ])('%s is exit 2 and one clear message', async (_, args, message) => {
    const cwd = folder({ 'agents/a.yaml': demo, 'agents/broken.yaml': 'workflow:\n  - {}\n', 'list.json': '[]' })
    const { code, out, err } = await ran(args, { cwd })
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(message)
    expect(err).not.toMatch(/\n\s+at /)
  })

  test('Ctrl-C stops the run: it is recorded as aborted, exit 130', async () => {
    const flags = await upstream((reply) => reply.say('Half'))
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const command = millrace(['run', 'a', '-m', 'Hi', ...flags], { cwd })
    await command.until('Half')
    command.kill('SIGINT')
    expect(await command.exit).toBe(130)
    const { out } = await ran(['ps', '--json'], { cwd })
    expect(JSON.parse(out)).toMatchObject([{ status: 'aborted' }])
    expect((await ran(['verify', 'all'], { cwd })).code).toBe(0)
  })

  test.each([
    ['SIGTERM', 143, 'Stopped with SIGTERM.'],
    ['SIGHUP', 129, 'The terminal was closed.'],
  ] as const)('%s stops the run as Ctrl-C does, and it is recorded as aborted', async (signal, code, reason) => {
    const flags = await upstream((reply) => reply.say('Half'))
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const command = millrace(['run', 'a', '-m', 'Hi', ...flags], { cwd })
    await command.until('Half')
    command.kill(signal)
    expect(await command.exit).toBe(code)
    const { out, err } = await ran(['ps', '--json'], { cwd })
    expect([err, JSON.parse(out)]).toEqual(['', [expect.objectContaining({ status: 'aborted' })]])
    expect(JSON.parse(out)).toMatchObject([{ error: { message: reason } }])
  })

  test('every wire there is can be printed', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    for (const format of builtinWires.keys()) {
      const { code, out } = await ran(['run', 'a', '-m', 'Hi', '--format', format, '--data', 'none'], { cwd })
      expect([format, code, out.includes('Millrace') && out.includes('demo')]).toEqual([format, 0, true])
    }
    const { code, out, err } = await ran(['run', 'a', '-m', 'x', '--format', 'prats'], { cwd })
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(`'prats' is invalid. Did you mean parts? Known: ${[...builtinWires.keys()].join(', ')}.`)
  })

  test('--format ag-ui: a whole stream of that protocol', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    const { code, out } = await ran(['run', 'a', '-m', 'Hi', '--format', 'ag-ui', '--data', 'none'], { cwd })
    const events = parseSse(new TextEncoder().encode(out)).map(({ data }) => JSON.parse(data) as AgUiEvent)
    expect(code).toBe(0)
    expect(agUiRuns(events, { isWhole: true })).toHaveLength(1)
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  })

  test('while it runs no server takes the folder', async () => {
    const gate = Promise.withResolvers<void>()
    const flags = await upstream(async (reply) => {
      reply.say('Half')
      await gate.promise
      reply.finish()
    })
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const command = millrace(['run', 'a', '-m', 'Hi', ...flags], { cwd })
    await command.until('Half')
    const refused = await ran(['serve', '--port', '0'], { cwd })
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('is used by a run')])
    gate.resolve()
    expect(await command.exit).toBe(0)
  })
})
