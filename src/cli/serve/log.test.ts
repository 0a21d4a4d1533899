import { expect, onTestFinished, test, vi } from 'vitest'
import type { Report } from '../../server/error-guard.ts'
import { createContext } from '../../../test/support/command-context.ts'
import type { Output } from '../context.ts'
import { createServeLog, type ServeLogOptions } from './log.ts'

function logged(
  reports: Report[],
  options: Partial<ServeLogOptions> & { isTTY?: boolean; waiting?: number; env?: Record<string, string> } = {},
) {
  const { isTTY = false, waiting = 0, env = {}, ...rest } = options
  const lines: string[] = []
  const state = { waiting }
  const stream = {
    isTTY,
    get writableLength() {
      return state.waiting
    },
    write: (text: string) => lines.push(text) > 0,
  } as unknown as Output
  const { report, flush } = createServeLog(createContext({ env }), {
    stream,
    now: () => new Date(2026, 0, 2, 3, 4, 5),
    ...rest,
  })
  for (const each of reports) report(each)
  const text = () => {
    flush()
    return lines.join('')
  }
  return { text, state, report, writes: lines }
}

const run: Report = {
  level: 'info',
  event: 'run',
  run: 'run_1',
  agent: 'poet',
  threadId: 'thread_1',
  protocol: 'ui',
  outcome: 'completed',
  ms: 1234,
  usage: { inputTokens: 2, outputTokens: 3, totalTokens: 5, source: 'reported' },
  cost: 0.5,
}
const failed: Report = {
  ...run,
  level: 'error',
  outcome: 'failed',
  error: { code: 'missing-key', message: 'No key.', detail: 'Set it.' },
}

test('a line for each run: id, agent, outcome, time, tokens, cost; for a failure its cause', () => {
  const waits: Report = { ...run, outcome: 'suspended', requests: 2 }
  expect(logged([run, failed, waits]).text().split('\n')).toEqual([
    '03:04:05 run_1  poet  completed  1.23s  5 tokens  $0.5000',
    '03:04:05 run_1  poet  failed  1.23s  5 tokens  $0.5000: missing-key: No key: Set it.',
    '03:04:05 run_1  poet  suspended  1.23s  5 tokens  $0.5000  waits for 2 answers',
    '',
  ])
})

test('each line has its own time, also after the clock was set back', () => {
  const seconds = [5, 5.9, 6, 66, 5]
  const times = seconds.map((second) => new Date(2026, 0, 2, 3, 4, 0, second * 1000))
  const { text } = logged([run, run, run, run, run], { now: () => times.shift()! })
  const shown = text().split('\n').slice(0, -1)
  expect(shown.map((line) => line.slice(0, 8))).toEqual(['03:04:05', '03:04:05', '03:04:06', '03:05:06', '03:04:05'])
})

test('what a client or a model said can neither command the terminal nor pretend to be a line', () => {
  const evil = 'x\u001B[31m\r\n03:04:06 run_2  poet  completed\u202E\u2028y'
  const { text } = logged([
    { ...failed, agent: evil, error: { code: 'c', message: evil } },
    { level: 'warn', event: 'request', method: 'POST', path: evil, status: 404, code: 'c', message: evil },
    { level: 'error', event: 'uncaught-error', message: evil },
  ])
  const lines = text().trimEnd().split('\n')
  expect(lines).toHaveLength(5)
  // The last report may have several lines: all but the first are indented.
  expect(lines[3]).toMatch(/^ {4}03:04:06/u)
  // oxlint-disable-next-line no-control-regex -- that is what must not be there
  expect(text()).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E\u2028]/u)
})

test('--quiet prints failures only', () => {
  const store: Report = { level: 'info', event: 'store', message: 'Runs are stored again.' }
  expect(logged([run, failed, store], { quiet: true }).text().split('\n')).toHaveLength(2)
  expect(logged([run, failed, store], { quiet: true, json: true }).text().split('\n')).toHaveLength(2)
})

test('--json prints one JSON object a line, with every field', () => {
  const lines = logged([run, failed], { json: true }).text().trimEnd().split('\n')
  const { event, level, ...fields } = failed as Extract<Report, { event: 'run' }>
  expect(JSON.parse(lines[1]!)).toEqual({ time: new Date(2026, 0, 2, 3, 4, 5).toISOString(), level, event, ...fields })
})

test('colours on a terminal only, and not with NO_COLOR', () => {
  expect(logged([run], { isTTY: true }).text()).toContain('\u001B[')
  expect(logged([run]).text()).not.toContain('\u001B[')
  expect(logged([run], { isTTY: true, env: { NO_COLOR: '1' } }).text()).not.toContain('\u001B[')
})

test('lines that nobody reads are dropped and counted', () => {
  const { text, state, report } = logged([run, run], { waiting: 5 * 1024 * 1024 })
  expect(text()).toBe('')
  state.waiting = 0
  report(run)
  expect(text()).toMatch(/^\(2 lines dropped: the reader of this log was too slow\)\n03:04:05 run_1/u)
})

test('lines that wait for each other count as well', () => {
  const long = { ...run, agent: 'a'.repeat(1500) }
  const { text, writes, report } = logged(Array(4000).fill(long) as Report[])
  expect(writes).toEqual([])
  expect(text().length).toBeGreaterThan(4e6)
  expect(text().length).toBeLessThan(4.3e6)
  report(run)
  expect(text()).toMatch(/\(\d{4} lines dropped: the reader of this log was too slow\)\n03:04:05 run_1 {2}poet .*\n$/u)
})

test('lines about runs are written together, in order, and no other line waits', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { writes, report } = logged([run, run])
  expect(writes).toEqual([])
  vi.advanceTimersByTime(20)
  expect(writes).toEqual([expect.stringMatching(/^(?:03:04:05 run_1 .*\n){2}$/u)])
  report(run)
  report({ level: 'info', event: 'note', message: 'stopping' })
  expect(writes[1]).toMatch(/^03:04:05 run_1 .*\nstopping\n$/u)
  report(run)
  report(failed)
  expect(writes[2]).toMatch(/completed.*\n.*failed.*\n$/u)
  vi.advanceTimersByTime(20)
  expect(writes).toHaveLength(3)
  expect(logged([{ level: 'info', event: 'ready', url: 'http://a' } as Report], { json: true }).writes).toHaveLength(1)
  expect(logged([run], { isTTY: true }).writes).toHaveLength(1)
})
