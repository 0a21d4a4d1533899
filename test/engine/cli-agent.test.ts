/** CLI agents as steps of a run: what the log, the value and the callbacks say. Fakes on a PATH, real processes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { createRunFold } from '../../src/fold/run-fold.ts'
import { createEngine, entriesOf, only, type EngineOptions } from '../support/engine.ts'
import { installFakes } from '../support/cli/fakes.ts'
import { sessions } from '../support/cli/sessions.ts'

const input = { messages: [{ role: 'user' as const, content: 'Look at it.' }] }

async function ran(options: EngineOptions, given: Record<string, unknown> = input) {
  const engine = createEngine(options)
  onTestFinished(() => engine.close())
  const run = await engine.runtime.start('a', given)
  const result = await run.result
  return { ...result, entries: await entriesOf(engine.store, run.id), engine, id: run.id }
}

const textAt = (entries: readonly Entry[], step: string) =>
  only(entries, 'text-delta')
    .filter((entry) => entry.step === step)
    .map(({ delta }) => delta)
    .join('')

describe('cli-agent steps', () => {
  test.each([
    ['claude', 'Read', { file_path: 'src/main.ts' }, 380],
    ['codex', 'command_execution', { command: 'cat a' }, 250],
    ['gemini', 'read_file', { path: 'a' }, 250],
    ['qwen', 'read_file', { path: 'a' }, 250],
  ] as const)(
    '%s: its model calls are steps, its tools are tools that the server runs',
    async (cli, tool, args, tokens) => {
      const { agent, environment, reports } = installFakes()
      const { entries, outcome, output, usage } = await ran({
        agents: { a: agent({ cli, top: 'return: "$done"', config: 'stream: true' }) },
        environment,
      })
      expect(outcome).toBe('completed')
      expect(textAt(entries, 'main/code/1')).toBe('I will read it.')
      expect(textAt(entries, 'main/code/2')).toBe('It is fine: ü🌊.')
      const [call] = only(entries, 'tool-call')
      expect(call).toMatchObject({ step: 'main/code/1', toolName: tool, providerExecuted: true })
      expect(JSON.parse(call!.input)).toEqual(args)
      expect(only(entries, 'tool-result')).toMatchObject([
        { toolCallId: call!.toolCallId, toolName: tool, isError: false },
      ])
      expect(only(entries, 'finish')).toHaveLength(1)
      expect(usage).toMatchObject({ inputTokens: tokens, outputTokens: 30 })
      expect(only(entries, 'run-end')[0]!.cost).toBe(cli === 'claude' ? 0.0125 : undefined)
      const sessionId = only(entries, 'session-info')[0]!.sessionId
      expect(output).toMatchObject({
        text: 'It is fine: ü🌊.',
        sessionId,
        exitCode: 0,
        finishReason: 'stop',
        usage: { inputTokens: tokens, outputTokens: 30 },
        toolCalls: [{ toolName: tool, input: args }],
        toolResults: [{ toolName: tool, isError: false }],
        steps: [{ text: 'I will read it.' }, { text: 'It is fine: ü🌊.' }],
      })
      expect(reports()[0]!.stdin).toBe('Look at it.')
    },
  )

  test('what a sub-agent says is inside the tool call that started it, and not in the answer', async () => {
    const { agent, environment } = installFakes()
    const said: string[] = []
    const { entries, output } = await ran({
      agents: { a: agent({ session: 'claudeWithSubAgent', config: 'onProgress: progress', top: 'return: "$done"' }) },
      callbacks: { progress: (delta: string) => said.push(delta) },
      environment,
    })
    const [start] = only(entries, 'step-start').filter(({ stepType }) => stepType === 'sub-agent')
    expect(start).toMatchObject({ step: 'main/code/2', toolCallId: 'toolu_9', toolName: 'Task', kind: 'tool-call' })
    expect(textAt(entries, 'main/code/2/1')).toBe('Sub: looking.')
    expect(textAt(entries, 'main/code/2/2')).toBe('Sub: done.')
    expect(only(entries, 'tool-call').map(({ step }) => step)).toEqual(['main/code/1', 'main/code/2/1'])
    const end = entries.findIndex((each) => each.type === 'step-finish' && each.step === 'main/code/2')
    const next = entries.findIndex((each) => each.type === 'step-start' && each.step === 'main/code/3')
    expect(end).toBeGreaterThan(0)
    expect(next).toBeGreaterThan(end)
    const fold = createRunFold()
    for (const entry of entries) fold.apply(entry)
    const messages = JSON.stringify(fold.view().messages)
    expect(messages).toContain('All good.')
    expect(messages).not.toContain('Sub: looking.')
    expect(output).toMatchObject({ text: 'All good.' })
    expect(said.join('')).toBe('I ask.\n\nAll good.')
  })

  test('onStreamPart gets every part, onProgress the text, onToolCall each call once; one that throws breaks nothing', async () => {
    const { agent, environment } = installFakes()
    const parts: { type: string }[] = []
    const calls: unknown[] = []
    let text = ''
    const config = 'onStreamPart: part\nonProgress: progress\nonToolCall: call'
    const { outcome, entries } = await ran({
      agents: { a: agent({ config }) },
      callbacks: {
        part: (part: { type: string }) => parts.push(part),
        progress(delta: string) {
          text += delta
          throw new Error('broken')
        },
        call: (call: unknown) => calls.push(call),
      },
      environment,
    })
    expect(outcome).toBe('completed')
    // A blank line between two model calls, as plain text has it.
    expect(text).toBe('I will read it.\n\nIt is fine: ü🌊.')
    expect(calls).toEqual([{ toolCallId: 'toolu_1', toolName: 'Read', input: { file_path: 'src/main.ts' } }])
    const types = parts.map(({ type }) => type)
    expect(types[0]).toBe('session-info')
    expect(types.at(-1)).toBe('finish')
    expect(types.filter((type) => type === 'text-delta')).toHaveLength(5)
    const warnings = only(entries, 'warning')
    expect(warnings).toHaveLength(5)
    expect(warnings[0]).toMatchObject({ code: 'callback-failed', message: 'Callback progress threw: broken' })
  })

  test('a later step reads the value; a step that does not stream is not the answer', async () => {
    const { agent, environment } = installFakes()
    const after = '  - { id: out, type: output-generator, config: { template: "$done.text / $done.exitCode" } }'
    const { output, entries } = await ran({ agents: { a: agent({ after }) }, environment })
    expect(output).toBe('It is fine: ü🌊. / 0')
    expect(only(entries, 'step-start').filter(({ answer }) => answer)).toEqual([])
  })

  test('earlier messages come before the last one, as a transcript', async () => {
    const { agent, environment, reports } = installFakes()
    const messages = [
      { role: 'user', content: 'Which file?' },
      { role: 'assistant', content: 'main.ts' },
      { role: 'user', content: [{ type: 'text', text: '--help\nis $HOME `id`' }] },
    ]
    const { entries } = await ran({ agents: { a: agent() }, environment }, { messages })
    const [{ stdin } = { stdin: '' }] = reports()
    expect(only(entries, 'prompt')).toMatchObject([
      { step: 'main/code', model: 'claude', messages: [{ content: stdin }] },
    ])
    expect(stdin).toContain('user: Which file?\n\nassistant: main.ts')
    expect(stdin.endsWith('\n\n--help\nis $HOME `id`')).toBe(true)
  })

  test('a prompt with newlines, quotes and a leading dash arrives as it is; arguments are a list', async () => {
    const { agent, environment, reports } = installFakes()
    const prompt = '-p --dangerously-skip-permissions\n"; rm -rf / #\n$(id) \u00e4'
    const config =
      'prompt: "$input.ask"\nmodel: "$input.model"\npermissionMode: plan\nallowedTools: ["Read", "Bash(git log:*)"]'
    await ran({ agents: { a: agent({ config }) }, environment }, { ask: prompt, model: 'opus; id' })
    const { stdin, argv } = reports()[0]!
    expect(stdin).toBe(prompt)
    expect(argv.slice(0, -2)).toEqual([
      '-p',
      '--allowedTools',
      'Read',
      'Bash(git log:*)',
      '--output-format',
      'stream-json',
      '--verbose',
      '--include-partial-messages',
      '--model',
      'opus; id',
      '--permission-mode',
      'plan',
    ])
  })

  test('files cannot be asked for: a warning says that they were left out, and nothing to ask is an error', async () => {
    const { agent, environment, reports } = installFakes()
    const file = { type: 'file', mediaType: 'image/png', data: 'aGk=' }
    const withText = { messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, file] }] }
    const { entries } = await ran({ agents: { a: agent() }, environment }, withText)
    expect(only(entries, 'warning')).toMatchObject([{ code: 'files-left-out' }])
    expect(reports().map(({ stdin }) => stdin)).toEqual(['What is this?'])
    const { error } = await ran(
      { agents: { a: agent() }, environment },
      { messages: [{ role: 'user', content: [file] }] },
    )
    expect(error).toMatchObject({ code: 'bad-input' })
    expect(reports()).toHaveLength(1)
  })

  test('a request cannot turn the model into an option', async () => {
    const { agent, environment, reports } = installFakes()
    const config = 'model: "$input.model"'
    const { error } = await ran({ agents: { a: agent({ config }) }, environment }, { ...input, model: '--settings=x' })
    expect(error).toMatchObject({ code: 'bad-input', status: 400 })
    expect(reports()).toEqual([])
  })

  test('rawLog keeps stdout byte for byte', async () => {
    const { agent, environment } = installFakes()
    const { engine, id } = await ran({ agents: { a: agent({ mode: 'bytes', config: 'rawLog: true' }) }, environment })
    const raw = readFileSync(join(engine.dir, 'runs', `${id}.main%2Fcode.raw`), 'utf8')
    expect(raw).toBe(sessions.claude.map((line) => `${JSON.stringify(line)}\n`).join(''))
  })

  test('characters that are cut between two reads arrive whole', async () => {
    const { agent, environment } = installFakes()
    const { outcome, output } = await ran({
      agents: { a: agent({ mode: 'bytes', top: 'return: "$done"' }) },
      environment,
    })
    expect(outcome).toBe('completed')
    expect(output).toMatchObject({ text: 'It is fine: ü🌊.' })
  })
})
