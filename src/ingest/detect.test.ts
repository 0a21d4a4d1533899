import { expect, test } from 'vitest'
import { cliNames } from './cli-names.ts'
import { detectFormat } from './detect.ts'
import { recordingsOf } from './testing/play.ts'

const lines: [string, object | string][] = [
  ['claude', { type: 'system', subtype: 'init', session_id: 's' }],
  ['claude', { type: 'assistant', message: {}, session_id: 's' }],
  ['claude', { type: 'result', subtype: 'success', session_id: 's' }],
  ['claude', { type: 'summary', leafUuid: 'x' }],
  ['claude', { type: 'user', sessionId: 's', parentUuid: null }],
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

test.each(lines)('%s: %j', (format, line) => {
  expect(String(detectFormat(typeof line === 'string' ? line : JSON.stringify(line)))).toBe(format)
})

const recorded = cliNames.flatMap((cli) => recordingsOf(cli).map((recording) => ({ cli, ...recording })))
test.skipIf(recorded.length === 0)('the first line of each recording tells', () => {
  const told = recorded.map(({ bytes }) => detectFormat(new TextDecoder().decode(bytes).split('\n')[0]!))
  expect(told).toEqual(recorded.map(({ cli }) => cli))
})
