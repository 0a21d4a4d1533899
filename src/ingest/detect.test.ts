import { describe, expect, test } from 'vitest'
import { cliNames } from './cli-names.ts'
import { detectFormat, otherCli } from './detect.ts'
import { lines as toLines, newestRecordings, play, recordingsOf } from './testing/play.ts'

const lines: [string, object | string][] = [
  ['claude', { type: 'system', subtype: 'init', session_id: 's' }],
  ['claude', { type: 'assistant', message: {}, session_id: 's' }],
  ['claude', { type: 'result', subtype: 'success', session_id: 's' }],
  ['claude', { type: 'summary', leafUuid: 'x' }],
  ['claude', { type: 'user', sessionId: 's', parentUuid: null }],
  ['claude', { type: 'stream_event', event: { type: 'message_start' } }],
  ['claude', { type: 'result', is_error: false, result: 'x' }],
  ['claude', { type: 'system', subtype: 'status' }],
  ['claude', { type: 'user', message: { role: 'user', content: [] } }],
  ['claude', { type: 'command_lifecycle', state: 'queued' }],
  ['qwen', { type: 'system', subtype: 'init', session_id: 's', qwen_code_version: '0.24.4' }],
  ['qwen', { type: 'stream_event', session_id: 's', event: { type: 'goal_state' } }],
  ['qwen', { type: 'result', subtype: 'success', session_id: 's', usage: { input_tokens: 1, total_tokens: 1 } }],
  ['codex', { type: 'thread.started' }],
  ['codex', { type: 'item.completed', item: {} }],
  ['codex', { type: 'session.created', session_id: 's' }],
  ['codex', { type: 'session_meta', payload: {} }],
  ['gemini', { type: 'init', session_id: 's', model: 'm' }],
  ['gemini', { type: 'message', role: 'user', content: '' }],
  ['gemini', { type: 'result', status: 'success' }],
  ['ndjson', { seq: 1, timestamp: 1, step: '', type: 'run-start' }],
  ['undefined', { type: 'error', message: 'which?' }],
  ['undefined', { type: 5 }],
  ['undefined', 'A banner'],
  ['undefined', '[]'],
]

describe('detection of the CLI', () => {
  test.each(lines)('%s: %j', (format, line) => {
    expect(String(detectFormat(typeof line === 'string' ? line : JSON.stringify(line)))).toBe(format)
  })

  test.each<[string, object]>([
    ['Droid', { type: 'system', subtype: 'init', session_id: 's', tools: [], model: 'm', reasoning_effort: 'none' }],
    ['Droid', { type: 'message', role: 'assistant', id: 'i', text: 'Hi', session_id: 's' }],
    ['GitHub Copilot CLI', { type: 'session.skills_loaded', data: {}, id: 'i' }],
    ['GitHub Copilot CLI', { type: 'assistant.message_delta', data: { deltaContent: 'x' }, parentId: 'p' }],
    ['OpenCode', { type: 'text', timestamp: 1, sessionID: 's', part: { type: 'text', text: 'x' } }],
    ['Pi', { type: 'session', version: 3, id: 'i', cwd: '/w' }],
    ['Cline', { ts: 't', type: 'hook_event', hookEventName: 'agent_start' }],
    ['Kimi CLI', { role: 'meta', type: 'system.version', version: '2' }],
  ])('%s is known by its lines, and no other: %j', (name, line) => {
    expect(otherCli(line as Record<string, unknown>)).toBe(name)
    expect(detectFormat(JSON.stringify(line))).toBe(undefined)
    for (const cli of cliNames) {
      expect(play(cli, toLines(line)).outcome.error).toMatchObject({
        code: 'unknown-format',
        message: expect.stringContaining(`the output of ${name}, which Millrace does not read`),
      })
    }
  })

  const newest = newestRecordings()
  test.skipIf(newest.length === 0)('each recording of the newest programs is known, or refused by its name', () => {
    const names = {
      droid: 'Droid',
      copilot: 'GitHub Copilot CLI',
      opencode: 'OpenCode',
      pi: 'Pi',
      cline: 'Cline',
      kimi: 'Kimi CLI',
    }
    for (const { name, program, bytes } of newest) {
      const first = new TextDecoder().decode(bytes).split('\n')[0]!
      const other = names[program as keyof typeof names]
      expect(other === undefined ? detectFormat(first) : otherCli(JSON.parse(first)), name).toBe(other ?? program)
    }
  })

  const recorded = cliNames.flatMap((cli) => recordingsOf(cli).map((recording) => ({ cli, ...recording })))
  test.skipIf(recorded.length === 0)('the first line of each recording tells', () => {
    const told = recorded.map(({ bytes }) => detectFormat(new TextDecoder().decode(bytes).split('\n')[0]!))
    expect(told).toEqual(recorded.map(({ cli }) => cli))
  })
})
