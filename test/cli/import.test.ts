/** `millrace import`: a transcript becomes the run that it was. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { assistant, init, messageStart, result, stream, toolResult } from '../../src/ingest/testing/claude-lines.ts'
import { lines } from '../../src/ingest/testing/play.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { folder, ran, serving } from '../support/cli.ts'

const at = (second: number, line: object) => ({ ...line, timestamp: `2026-01-02T03:04:0${second}.000Z` })
const text = (content: string) => ({ type: 'text', text: content })
const call = (id: string, name: string) => ({ type: 'tool_use', id, name, input: { x: 1 } })
const claude = lines(
  'A banner',
  init,
  at(1, assistant('m1', [text('Let me see.'), call('a', 'Bash'), call('b', 'Agent')])),
  at(2, toolResult('a', 'a.txt')),
  at(3, assistant('s1', [text('I am a sub-agent.'), call('c', 'Read')], { parent: 'b' })),
  at(4, toolResult('c', 'text', { parent: 'b' })),
  at(5, toolResult('b', 'done')),
  messageStart('m2'),
  stream({ type: 'content_block_start', index: 0, content_block: text('') }),
  stream({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi!' } }),
  at(7, assistant('m2', [text('Hi!')])),
  stream({ type: 'content_block_stop', index: 0 }),
  result,
)

const entriesOf = async (cwd: string, run: string, data = '.millrace') => {
  const { out } = await ran(['logs', run, '--json', '--data', data], { cwd })
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)
}

describe('millrace import', () => {
  test('it has the times of the transcript, is legal, and is found by all commands', async () => {
    const cwd = folder({ 'out.jsonl': claude })
    const { code, out, err } = await ran(['import', 'out.jsonl', '-m', 'Which files?'], { cwd })
    expect([code, out]).toEqual([0, expect.stringMatching(/^run_[\da-f]{32}\n$/u)])
    const run = out.trim()
    const entries = await entriesOf(cwd, run)
    expect(err).toBe(`imported: claude, ${entries.length} entries, completed\n`)
    const second = (timestamp: number) => (timestamp - Date.parse('2026-01-02T03:04:00.000Z')) / 1000
    expect(second(entries[0]!.timestamp)).toBe(1)
    expect(second(entries.find((entry) => entry.type === 'tool-result' && entry.toolCallId === 'c')!.timestamp)).toBe(4)
    expect(second(entries.at(-1)!.timestamp)).toBe(7)
    expect(entries[0]).toMatchObject({
      agent: 'claude',
      protocol: 'import',
      input: { messages: [{ content: 'Which files?' }] },
    })
    expect(entries.at(-1)).toMatchObject({
      type: 'run-end',
      outcome: 'completed',
      cost: 0.5,
      usage: { inputTokens: 15 },
    })
    expect(await ran(['verify', run], { cwd })).toMatchObject({ code: 0 })
    const shown = JSON.parse((await ran(['show', run, '--json'], { cwd })).out) as { messages: unknown; cost: number }
    expect(JSON.stringify(shown.messages)).toContain('Hi!')
    expect(JSON.stringify(shown.messages)).not.toContain('sub-agent')
    expect((await ran(['ps'], { cwd })).out).toContain('Which files?')
  })

  test('the log is that of the live run', async () => {
    const play = `process.stdin.resume().on('end', () => process.stdout.write(require('fs').readFileSync('out.jsonl')))`
    const agent = `
workflow:
  - id: claude
    type: cli-agent
    config: { cli: claude, command: [${JSON.stringify(process.execPath)}, play.cjs] }`
    const cwd = folder({ 'out.jsonl': claude, 'play.cjs': play, 'agents/claude.yaml': agent })
    const live = await ran(['run', 'claude', '-m', 'Hello', '--format', 'parts'], { cwd })
    expect(live.code).toBe(0)
    const imported = await ran(['import', 'out.jsonl', '-m', 'Hello'], { cwd })
    // What a run is called, when it was and how long it took.
    const own = new Set(['runId', 'threadId', 'foreign', 'pipeline', 'protocol', 'timestamp', 'duration'])
    const bare = (entries: Entry[]) => entries.map((entry) => Object.entries(entry).filter(([key]) => !own.has(key)))
    const ids = (entries: object) => JSON.stringify(entries).replaceAll(/"(?:b|t|r)?[\w-]*-\d+"|run_\w+/gu, '"id"')
    const liveEntries = live.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry)
    expect(ids(bare(await entriesOf(cwd, imported.out.trim())))).toEqual(ids(bare(liveEntries)))
  })

  test('the same output is the same run: again, it changes nothing', async () => {
    const cwd = folder({ 'out.jsonl': claude, 'longer.jsonl': `${claude}more\n` })
    const first = await ran(['import', 'out.jsonl'], { cwd })
    const again = await ran(['import', '-'], { cwd, input: claude })
    expect([again.code, again.out]).toEqual([0, first.out])
    expect(again.err).toBe(first.err.replace('imported', 'imported before'))
    const longer = await ran(['import', 'longer.jsonl'], { cwd })
    expect(longer.out).not.toBe(first.out)
    expect(JSON.parse((await ran(['ps', '--json'], { cwd })).out)).toHaveLength(2)
  })

  const codex = (input: number, text: string) =>
    lines(
      { type: 'thread.started', thread_id: 't1' },
      { type: 'turn.started' },
      { type: 'item.completed', item: { id: 'm', type: 'agent_message', text } },
      { type: 'turn.completed', usage: { input_tokens: input, output_tokens: 2 } },
    )
  const qwen = lines(
    { type: 'system', subtype: 'init', session_id: 's', model: 'm', qwen_code_version: '1' },
    { type: 'assistant', message: { id: 'a', content: [text('Hi')] }, session_id: 's' },
    { type: 'result', subtype: 'success', is_error: false, result: 'Hi', session_id: 's' },
  )
  const gemini = lines(
    { type: 'init', session_id: 's', model: 'm' },
    { type: 'message', role: 'assistant', content: 'Hi' },
    { type: 'result', status: 'success', stats: {} },
  )

  test('without times in its lines, it is the same run all the same', async () => {
    for (const input of [codex(5, 'Hi'), gemini, qwen, lines(init, assistant('m', [text('Hi')]), result)]) {
      const cwd = folder()
      const first = await ran(['import', '-'], { cwd, input })
      // The clock goes on: what has no times must not get others.
      vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 5000)
      const again = await ran(['import', '-'], { cwd, input })
      vi.restoreAllMocks()
      expect([again.code, again.out, again.err]).toEqual([
        0,
        first.out,
        first.err.replace('imported', 'imported before'),
      ])
      // Nor does it need the prompt, which few outputs repeat.
      expect(first.err).toContain('completed')
    }
  })

  test('a run that resumes a session of Codex counts what the runs before it have not', async () => {
    const cwd = folder()
    for (const input of [codex(320, 'One'), codex(480, 'Two')]) await ran(['import', '-'], { cwd, input })
    const rows = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as { usage: { inputTokens: number } }[]
    expect(new Set(rows.map(({ usage }) => usage.inputTokens))).toEqual(new Set([160, 320]))
  })

  test('the prompt that Gemini CLI repeats, and that of no other, is the run’s; a broken-off output is interrupted', async () => {
    const gemini = lines(
      { type: 'init', session_id: 's', model: 'm' },
      { type: 'message', role: 'user', content: 'From the output' },
      { type: 'message', role: 'assistant', content: 'Hi', delta: true },
    )
    const cwd = folder({ 'out.jsonl': gemini })
    const { code, out, err } = await ran(['import', 'out.jsonl', '--from', 'gemini', '-m', 'From the flag'], { cwd })
    expect([code, err]).toEqual([0, expect.stringMatching(/^imported: gemini, \d+ entries, interrupted\n$/u)])
    const [first] = await entriesOf(cwd, out.trim())
    expect(first).toMatchObject({ input: { messages: [{ role: 'user', content: 'From the output' }] } })
  })

  test('a log goes into another folder as it is, with its id', async () => {
    const cwd = folder({
      'agents/a.yaml': 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]',
    })
    const { out: log } = await ran(['run', 'a', '-m', 'Hello', '--format', 'parts'], { cwd })
    const imported = await ran(['import', '-', '--data', 'archive'], { cwd, input: log })
    expect(imported.code).toBe(0)
    const run = imported.out.trim()
    const { out: copy } = await ran(['export', run, '--data', 'archive'], { cwd })
    expect(copy).toBe(log)
    // What the store has says, besides, that it comes from elsewhere.
    const kept = await entriesOf(cwd, run, 'archive')
    expect(kept[0]).toMatchObject({ type: 'run-start', foreign: kept.length })
    expect((await ran(['show', run, '--data', 'archive'], { cwd })).out).toContain(
      `foreign     its first ${kept.length} entries were recorded elsewhere`,
    )
    expect(await ran(['verify', 'all', '--data', 'archive'], { cwd })).toMatchObject({ code: 0 })
    const view = async (data: string) => (await ran(['show', run, '--json', '--full', '--data', data], { cwd })).out
    expect(await view('archive')).toBe(await view('.millrace'))
    // Where it comes from, it is already.
    expect(await ran(['import', '-'], { cwd, input: log })).toMatchObject({ code: 0, out: `${run}\n` })
    // The same run, but not the same log.
    const cut = log.split('\n').slice(0, 3).join('\n')
    const other = await ran(['import', '-', '--from', 'ndjson'], { cwd, input: cut })
    expect([other.code, other.err]).toEqual([1, expect.stringContaining('There is another run')])
  })

  test('a log that a crash has cut off gets its end; a damaged one is refused, and nothing is kept', async () => {
    const start = {
      type: 'run-start',
      runId: 'run_1',
      agent: 'a',
      pipeline: '',
      threadId: 't',
      protocol: 'api',
      input: {},
    }
    const log = lines(
      { seq: 1, timestamp: 5, step: '', ...start },
      { seq: 2, timestamp: 6, step: 'main/a', type: 'step-start', stepType: 'llm', attempt: 1, answer: true },
      { seq: 3, timestamp: 7, step: 'main/a', type: 'text-start', id: 'x' },
    )
    const cwd = folder()
    const { code, err } = await ran(['import', '-'], { cwd, input: `${log}{"seq":4,"ti` })
    expect([code, err]).toEqual([0, 'imported: a, 6 entries, interrupted\n'])
    expect(await ran(['verify', 'run_1'], { cwd })).toMatchObject({ code: 0 })
    for (const [input, fault] of [
      [log.replace('"seq":2', '"seq":3'), 'entry 3 (step-start): seq is 3, expected 2'],
      [log.replace('{"seq":2', 'oh no {"seq":2'), 'line 2: '],
    ] as const) {
      const elsewhere = folder()
      const refused = await ran(['import', '-', '--from', 'ndjson'], { cwd: elsewhere, input })
      expect([refused.code, refused.out, refused.err]).toEqual([1, '', expect.stringContaining(fault)])
      expect((await ran(['ps'], { cwd: elsewhere })).err).toContain('No runs found')
    }
  })

  test('while a server uses the folder, the server imports it, and has the run at once', async () => {
    const cwd = folder({
      'out.jsonl': claude,
      'agents/a.yaml': 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant" } }]',
    })
    const server = await serving([], { cwd })
    const { code, err, out } = await ran(['import', 'out.jsonl', '-m', 'Hello'], { cwd })
    expect([code, err]).toEqual([0, expect.stringMatching(/^imported: claude, \d+ entries, completed\n$/u)])
    const run = out.trim()
    expect(await (await fetch(`${server.url}/api/runs/${run}`)).json()).toMatchObject({ id: run, status: 'completed' })
    expect(await ran(['import', 'out.jsonl', '-m', 'Hello'], { cwd })).toMatchObject({
      code: 0,
      out,
      err: `imported before${err.slice(8)}`,
    })
    expect((await ran(['import', 'out.jsonl', '--data', join(cwd, 'archive')], { cwd })).code).toBe(0)
  })

  test('secrets of the environment do not reach the log', async () => {
    const cwd = folder()
    const env = { ANTHROPIC_API_KEY: 'sk-ant-very-secret-value' }
    const output = lines(init, assistant('m', [text('The key is sk-ant-very-secret-value.')]), result)
    const { out } = await ran(['import', '-'], { cwd, input: output, env })
    expect(JSON.stringify(await entriesOf(cwd, out.trim()))).not.toContain('very-secret')
  })

  test.each([
    [
      'a session file',
      ['-'],
      lines({ parentUuid: null, sessionId: 's', type: 'user' }),
      1,
      'session file of Claude Code',
    ],
    ['what no line tells', ['-'], 'hello\n', 1, 'tells which CLI agent wrote it'],
    ['a file that is not there', ['missing.jsonl'], '', 2, 'There is no file missing.jsonl.'],
    ['a mistyped format', ['-', '--from', 'ndjsn'], '', 2, 'Did you mean ndjson?'],
    ['a folder that keeps nothing', ['-', '--data', 'none'], claude, 2, 'are not kept'],
    ['nothing', ['-', '--from', 'claude'], '', 1, 'stdin is empty.'],
  ])('%s is refused, and nothing is kept', async (_, args, input, code, message) => {
    const cwd = folder()
    const done = await ran(['import', ...args], { input, cwd })
    expect([done.code, done.out]).toEqual([code, ''])
    expect(done.err).toContain(message)
    expect((await ran(['ps'], { cwd })).err).toContain('No runs found')
  })

  test('what people said of a run goes along, in lines behind its log', async () => {
    const cwd = folder({ 'out.jsonl': claude })
    const run = (await ran(['import', 'out.jsonl', '-m', 'Which files?'], { cwd })).out.trim()
    const said = { run, user: 'ann', tenant: '', verdict: 'down', note: 'Which ones?', time: 5 } as const
    const store = sqliteStore(join(cwd, '.millrace/millrace.db'))
    await store.feedback!.put(said)
    await store.close()
    await ran(['export', run, '-o', 'run.ndjson'], { cwd })
    expect(readFileSync(join(cwd, 'run.ndjson'), 'utf8').trim().split('\n').at(-1)).toBe(
      '{"feedback":{"user":"ann","tenant":"","verdict":"down","note":"Which ones?","time":5}}',
    )
    expect(await ran(['import', 'run.ndjson', '--data', 'other'], { cwd })).toMatchObject({ code: 0, out: `${run}\n` })
    const other = sqliteStore(join(cwd, 'other/millrace.db'))
    expect(await other.feedback!.of(run)).toMatchObject([said])
    await other.close()
  })
})
