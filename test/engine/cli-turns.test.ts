/**
 * What a CLI agent's step makes of programs that go on after their result, that run a tool beside the next model call, that say why they
 * fail on stderr, and that resume a session. The program is a list of outputs.
 */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parsePipeline } from '../../src/pipeline/parse.ts'
import type { ProcessExit, Processes, ProcessOptions } from '../../src/processes/processes.ts'
import { agentSource } from '../../src/project/create-runtime.ts'
import { createRegistry } from '../../src/project/registry.ts'
import { createRuntime } from '../../src/runtime/create-runtime.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { assistant, init, result } from '../../src/ingest/testing/claude-lines.ts'
import { lines } from '../../src/ingest/testing/play.ts'
import { entriesOf, only } from '../support/engine.ts'
import type { Store } from '../../src/part/log.ts'

describe('turns of CLI agents', () => {
  test('a result is the end only if no other turn begins', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const started = Promise.withResolvers<ProcessOptions['onOutput']>()
    const exit = Promise.withResolvers<ProcessExit>()
    const processes: Processes = {
      async start({ onOutput }) {
        started.resolve(onOutput)
        return { exit: exit.promise, stop: () => exit.resolve({ code: null, signal: 'SIGTERM' }) }
      },
      close: async () => undefined,
    }
    const pipeline = parsePipeline('workflow: [{ id: a, type: cli-agent, config: { cli: claude, prompt: Hi } }]')
    const runtime = createRuntime({
      agents: agentSource([{ id: 'a', pipeline }]),
      registry: { ...createRegistry({}, {}), processes },
      store: memoryStore(),
    })
    try {
      const run = await runtime.start('a', {})
      const write = (await started.promise).bind(undefined, 'stdout')
      const utf8 = new TextEncoder()
      await write(utf8.encode(lines(init, assistant('m1', [{ type: 'text', text: 'One.' }]), result)))
      await write(utf8.encode(lines(init)))
      vi.advanceTimersByTime(60_000)
      await new Promise(setImmediate)
      await write(utf8.encode(lines(assistant('m2', [{ type: 'text', text: 'Two.' }]), { ...result, result: 'Two.' })))
      exit.resolve({ code: 0, signal: null })
      const { outcome } = await run.result
      let text = ''
      for await (const entry of run.parts) if (entry.type === 'text-delta') text += entry.delta
      expect([outcome, text]).toEqual(['completed', 'One.Two.'])
    } finally {
      vi.useRealTimers()
      await runtime.close(0)
    }
  })

  interface Program {
    cli: string
    config?: string
    stdout?: object[]
    stderr?: string
    exit?: ProcessExit
    store?: Store
    /** Does not exit by itself. */
    hangs?: boolean
  }

  const utf8 = new TextEncoder()

  /** Runs an agent whose program prints this. */
  async function ran({
    cli,
    config = '',
    stdout = [],
    stderr = '',
    exit = { code: 0, signal: null },
    store = memoryStore(),
    hangs,
  }: Program) {
    const printed = Promise.withResolvers<void>()
    const processes: Processes = {
      async start({ onOutput }) {
        const stopped = Promise.withResolvers<ProcessExit>()
        async function print(): Promise<ProcessExit> {
          if (stderr !== '') await onOutput('stderr', utf8.encode(stderr))
          for (const line of stdout) await onOutput('stdout', utf8.encode(lines(line)))
          printed.resolve()
          return hangs ? stopped.promise : exit
        }
        return { exit: print(), stop: () => stopped.resolve({ code: null, signal: 'SIGTERM' }) }
      },
      close: async () => undefined,
    }
    const pipeline = parsePipeline(
      `workflow: [{ id: a, type: cli-agent, config: { cli: ${cli}, prompt: Hi, onProgress: said${config} } }]`,
    )
    let progress = ''
    const said = (delta: string) => void (progress += delta)
    const runtime = createRuntime({
      agents: agentSource([{ id: 'a', pipeline }]),
      registry: { ...createRegistry({ callbacks: { said } }, {}), processes },
      store,
    })
    onTestFinished(() => runtime.close(0))
    const run = await runtime.start('a', {})
    await printed.promise
    if (hangs) vi.advanceTimersByTime(60_000)
    const { outcome, error, usage } = await run.result
    return { outcome, error, usage, progress, entries: await entriesOf(store, run.id), store }
  }

  test('what is cut off because the program does not exit is said', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { outcome, entries } = await ran({ cli: 'claude', stdout: [init, result], hangs: true })
    expect(outcome).toBe('completed')
    expect(only(entries, 'warning')).toMatchObject([
      { code: 'cli-cut', message: expect.stringContaining('did not exit within 5 s of its result') },
    ])
  })

  test('zeros that the program reports are the usage of the run', async () => {
    const none = { input_tokens: 0, output_tokens: 0 }
    const failed = { ...result, is_error: true, result: 'No key', total_cost_usd: 0, usage: none }
    const { usage, entries } = await ran({
      cli: 'claude',
      stdout: [init, assistant('m', [{ type: 'text', text: 'No key' }]), failed],
    })
    expect(usage).toMatchObject({ source: 'reported', inputTokens: 0, outputTokens: 0 })
    expect(only(entries, 'run-end')[0]).toMatchObject({ outcome: 'failed', cost: 0 })
  })

  const thread = { type: 'thread.started', thread_id: 't1' }
  const item = (stage: string, body: object) => ({ type: `item.${stage}`, item: body })
  const command = (id: string) => ({ id, type: 'command_execution', command: id, status: 'in_progress' })
  const done = (id: string) =>
    item('completed', { ...command(id), aggregated_output: `${id}\n`, exit_code: 0, status: 'completed' })
  const says = (id: string, text: string) => item('completed', { id, type: 'agent_message', text })
  const thinks = (id: string) => item('completed', { id, type: 'reasoning', text: 'Hm.' })
  const tokens = (input: number, output: number) => ({
    type: 'turn.completed',
    usage: { input_tokens: input, cached_input_tokens: 0, output_tokens: output, reasoning_output_tokens: 0 },
  })

  test('a command that outlives its model call does not join it with the next', async () => {
    const { outcome, entries, progress } = await ran({
      cli: 'codex',
      stdout: [
        thread,
        { type: 'turn.started' },
        says('1', 'I build.'),
        item('started', command('build')),
        item('started', command('list')),
        done('list'),
        // Its next model call thinks and speaks while the build goes on.
        thinks('2'),
        says('3', 'It takes long.'),
        done('build'),
        thinks('4'),
        says('5', 'Built.'),
        tokens(10, 2),
      ],
    })
    expect(outcome).toBe('completed')
    const texts = only(entries, 'text-delta').map(({ step, delta }) => [step, delta])
    expect(texts).toEqual([
      ['main/a/1', 'I build.'],
      ['main/a/2', 'It takes long.'],
      ['main/a/3', 'Built.'],
    ])
    expect(progress).toBe('I build.\n\nIt takes long.\n\nBuilt.')
    expect(only(entries, 'reasoning-delta').map(({ step }) => step)).toEqual(['main/a/2', 'main/a/3'])
    expect(only(entries, 'tool-result').map(({ toolCallId, isError }) => [toolCallId, isError])).toEqual([
      ['list', false],
      ['build', false],
    ])
  })

  test('thoughts and words around the end of an older command are one model call', async () => {
    const { entries } = await ran({
      cli: 'codex',
      stdout: [
        thread,
        item('started', command('build')),
        thinks('1'),
        done('build'),
        says('2', 'Built.'),
        tokens(10, 2),
      ],
    })
    expect(only(entries, 'reasoning-delta')[0]!.step).toBe('main/a/2')
    expect(only(entries, 'text-delta')[0]!.step).toBe('main/a/2')
  })

  test('why a program fails is in its error when it says so on stderr only, without the places of this machine', async () => {
    const failed = (stderr: string, code = 1) => ran({ cli: 'codex', stderr, exit: { code, signal: null } })
    const { error } = await failed(
      'Reading prompt from stdin...\nNot inside a trusted directory: /home/ann/work/mill\n',
    )
    expect(error).toMatchObject({
      code: 'cli-exit',
      message: expect.stringContaining(
        'exited with code 1 without a result. It said: Not inside a trusted directory: …/mill',
      ),
      detail: expect.stringContaining('/home/ann/work/mill'),
    })
    const stack = 'TypeError: x is no function\n    at main (/usr/lib/cli/main.js:3:5)\n\nNode.js v24.1.0\n'
    expect((await failed(stack)).error?.message).toMatch(/It said: TypeError: x is no function$/u)
    expect((await failed('')).error?.message).toMatch(/: Codex exited with code 1 without a result\.$/u)
    // Silent success is none.
    expect((await failed('No credits.\n', 0)).error).toMatchObject({
      code: 'interrupted',
      message: expect.stringContaining('It said: No credits.'),
    })
  })

  test('a session that is resumed counts the tokens of this run only', async () => {
    const config = ', args: [resume, --last]'
    const turn = (input: number, output: number) => [
      thread,
      { type: 'turn.started' },
      says('m', 'Hi!'),
      tokens(input, output),
    ]
    const first = await ran({ cli: 'codex', stdout: turn(320, 42) })
    const { store } = first
    const second = await ran({ cli: 'codex', config, stdout: turn(480, 54), store })
    const third = await ran({ cli: 'codex', config, stdout: turn(500, 60), store })
    expect([first, second, third].map(({ usage }) => [usage.inputTokens, usage.outputTokens])).toEqual([
      [320, 42],
      [160, 12],
      [20, 6],
    ])
    const unknown = await ran({
      cli: 'codex',
      config,
      stdout: [{ ...thread, thread_id: 'other' }, ...turn(70, 7).slice(1)],
      store,
    })
    expect(unknown.usage).toMatchObject({ inputTokens: 70 })
  })
})
