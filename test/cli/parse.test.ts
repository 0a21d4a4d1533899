/** `millrace parse`: a CLI agent's output in, parts out, while it is written. */
import { describe, expect, test } from 'vitest'
import type { RecordedPart } from '../../src/part/entry.ts'
import {
  assistant,
  blockDelta,
  blockStart,
  blockStop,
  init,
  messageStart,
  result,
} from '../../src/ingest/testing/claude-lines.ts'
import { lines } from '../../src/ingest/testing/play.ts'
import { folder, millrace, ran } from '../support/cli.ts'

const claude = [init, assistant('m1', [{ type: 'text', text: 'Hi!' }]), result]
const codex = [
  { type: 'thread.started', thread_id: 't' },
  { type: 'item.completed', item: { id: 'm', type: 'agent_message', text: 'Hi!' } },
  { type: 'turn.completed', usage: { input_tokens: 1, output_tokens: 1 } },
]
const gemini = [
  { type: 'init', session_id: 's', model: 'm' },
  { type: 'message', role: 'assistant', content: 'Hi!', delta: true },
  { type: 'result', status: 'success', stats: {} },
]

function partsOf(out: string): RecordedPart[] {
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedPart)
}

describe('millrace parse', () => {
  test.each([
    ['claude', claude],
    ['codex', codex],
    ['gemini', gemini],
  ])('the output of %s, from a file and on stdin, named and guessed, behind a banner', async (cli, events) => {
    const text = lines('Loaded 1 plugin', ...events)
    const cwd = folder({ 'out.jsonl': text.trimEnd() })
    const named = await ran(['parse', '--from', cli, 'out.jsonl'], { cwd })
    expect([named.code, named.err]).toEqual([0, ''])
    const types = partsOf(named.out).map(({ type }) => type)
    expect(types.slice(0, 3)).toEqual(['session-info', 'stream-start', 'cli-output'])
    expect(types.at(-1)).toBe('finish')
    expect(named.out).toContain('"delta":"Hi!"')
    for (const args of [['out.jsonl'], ['-'], [], ['--from', cli]]) {
      expect(await ran(['parse', ...args], { cwd, input: text }), args.join(' ')).toEqual(named)
    }
  })

  test('the parts of a line are there before the next line is written', async () => {
    const command = millrace(['parse'], { open: true })
    const steps: [object, string][] = [
      [init, '"stream-start"'],
      [messageStart('m1'), '"response-metadata"'],
      [blockStart(0, { type: 'text', text: '' }), '"text-start"'],
      [blockDelta(0, { type: 'text_delta', text: 'first' }), '"delta":"first"'],
      [blockDelta(0, { type: 'text_delta', text: 'second' }), '"delta":"second"'],
      [blockStop(0), '"text-end"'],
    ]
    for (const [event, expected] of steps) {
      expect(command.out).not.toContain(expected)
      command.send(lines(event))
      await command.until(expected)
    }
    command.send(lines(result))
    command.finish()
    expect(await command.exit).toBe(0)
    expect(partsOf(command.out).at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'stop' } })
  })

  test('what breaks off has an error and an end; that is no failure of parse', async () => {
    const { code, out } = await ran(['parse'], { input: lines(...claude.slice(0, 2)) })
    expect(code).toBe(0)
    expect(partsOf(out).slice(-2)).toEqual([
      { type: 'error', error: { code: 'interrupted', message: 'The output of Claude Code ended without a result.' } },
      expect.objectContaining({ type: 'finish' }),
    ])
  })

  test('Ctrl-C ends what is open: exit 130', async () => {
    const command = millrace(['parse'], { open: true })
    command.send(lines(init, messageStart('m1'), blockStart(0, { type: 'text', text: '' })))
    await command.until('text-start')
    command.kill('SIGINT')
    expect(await command.exit).toBe(130)
    expect(
      partsOf(command.out)
        .slice(-3)
        .map(({ type }) => type),
    ).toEqual(['text-end', 'error', 'finish'])
    expect(command.out).toContain('Claude Code was ended by SIGINT.')
  })

  test('a session file looks alike: one line says so, exit 1', async () => {
    const entry = { parentUuid: null, isSidechain: false, sessionId: 's', type: 'user', message: { content: 'Hi' } }
    for (const args of [['parse'], ['parse', '--from', 'claude']]) {
      const { code, out, err } = await ran(args, {
        input: lines({ type: 'summary', summary: 'x', leafUuid: 'y' }, entry),
      })
      expect([code, out]).toEqual([1, ''])
      expect(err).toMatch(
        /^millrace: This is a session file of Claude Code \(~\/\.claude\/projects\/…\), not its output: .*\n$/u,
      )
    }
    const rollout = await ran(['parse'], { input: lines({ timestamp: 'x', type: 'session_meta', payload: {} }) })
    expect([rollout.code, rollout.err]).toEqual([1, expect.stringContaining('~/.codex/sessions')])
  })

  const qwenInit = { type: 'system', subtype: 'init', session_id: 's', model: 'm', qwen_code_version: '0.24.4' }

  test.each([
    [['parse', '--from', 'cluade'], '', 2, 'Did you mean claude? Known: claude, codex, gemini, qwen.'],
    [['parse', 'missing.jsonl'], '', 2, 'There is no file missing.jsonl.'],
    [['parse', '.'], '', 2, '. is a folder. Pass a file.'],
    [['parse'], '', 1, 'stdin is empty.'],
    [['parse'], 'hello\n', 1, 'Name the CLI that wrote it with --from claude, codex, gemini or qwen.'],
    [
      ['parse'],
      lines({ type: 'step_start', sessionID: 's', part: {} }),
      1,
      'stdin is the output of OpenCode, which Millrace does not read. It reads that of claude (Claude Code), ',
    ],
    [
      ['parse', '--from', 'gemini'],
      lines(qwenInit),
      1,
      'This is the output of Qwen Code, not of Gemini CLI. Name it: qwen instead of gemini.',
    ],
    [['parse'], lines({ seq: 1, timestamp: 1, step: '', type: 'run-start' }), 1, 'This is a log of Millrace'],
  ])('%j with %j on stdin is exit %i', async (args, input, code, message) => {
    const done = await ran(args, { input, cwd: folder() })
    expect([done.code, done.out]).toEqual([code, ''])
    expect(done.err).toContain(message)
  })

  test('with --from, output that holds no event is output', async () => {
    const { code, out } = await ran(['parse', '--from', 'gemini'], { input: 'Please sign in.\n' })
    expect(code).toBe(0)
    expect(partsOf(out).map(({ type }) => type)).toEqual(['stream-start', 'cli-output', 'error', 'finish'])
  })
})
