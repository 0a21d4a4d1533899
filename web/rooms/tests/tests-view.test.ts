/** Which cases are shown, and how a run of tests is told. */
import { describe, expect, test } from 'vitest'
import type { LastResult, TestRow, TestsRun } from '../../data/tests.ts'
import { filterTests, groupTests, progressWords, stateOf } from './tests-view.ts'
import { lost, newer } from './use-tests.ts'

const last = (status: LastResult['status'], message = '') =>
  ({ status, failures: message === '' ? [] : [{ what: 'text', message }] }) as unknown as LastResult
const row = (id: string, result?: LastResult): TestRow => ({
  id,
  agent: id.split('/')[0]!,
  name: id.split('/')[1]!,
  file: '',
  line: 1,
  turns: 1,
  isRecorded: true,
  hasChange: false,
  ...(result && { last: result }),
})
const cases = [
  row('shop/orders', last('passed')),
  row('front/greets', last('failed', 'does not contain "Hello"')),
  row('shop/pays', last('failed')),
  row('shop/refunds'),
  row('shop/waits', last('stopped')),
]
const ids = (rows: readonly TestRow[]) => rows.map(({ id }) => id)
const none = { q: '', agent: undefined, state: undefined }

describe('the list of cases', () => {
  test('a case that was stopped or never run is not run; one that runs says so', () => {
    expect(cases.map((each) => stateOf(each, { running: ['shop/orders'] }))).toEqual([
      'running',
      'failed',
      'failed',
      'not run',
      'not run',
    ])
  })

  test('filters are combined; words are found in the reason of a failure', () => {
    expect(ids(filterTests(cases, none))).toEqual(ids(cases))
    expect(ids(filterTests(cases, { ...none, state: 'failed', agent: 'shop' }))).toEqual(['shop/pays'])
    expect(ids(filterTests(cases, { ...none, q: ' hello ' }))).toEqual(['front/greets'])
    expect(ids(filterTests(cases, { ...none, state: 'not run' }))).toEqual(['shop/refunds', 'shop/waits'])
  })

  test('groups have the names of agents in order, and count what is known', () => {
    expect(groupTests(cases).map(({ agent, rows, passed, failed }) => [agent, rows.length, passed, failed])).toEqual([
      ['front', 1, 0, 1],
      ['shop', 4, 1, 1],
    ])
  })
})

describe('a run of tests', () => {
  const run = (changes: Partial<TestsRun> = {}): TestsRun => ({
    id: 'a',
    user: '',
    startedAt: 1,
    record: false,
    total: 40,
    passed: 11,
    failed: 1,
    stopped: 0,
    running: [],
    ...changes,
  })

  test('is told in a few words', () => {
    expect(progressWords(run())).toBe('12 of 40, 1 failed')
    expect(progressWords(run({ failed: 0, passed: 0 }))).toBe('0 of 40')
    expect(progressWords(run({ passed: 40, failed: 0, endedAt: 2 }))).toBe('40 passed')
    expect(progressWords(run({ passed: 38, stopped: 1, endedAt: 2 }))).toBe('38 passed, 1 failed, 1 not run')
  })

  test('of two states the later one counts', () => {
    const later = run({ passed: 12 })
    expect(newer(run(), later)).toBe(later)
    expect(newer(later, run())).toBe(later)
    const ended = run({ passed: 12, endedAt: 5 })
    expect(newer(later, ended)).toBe(ended)
    // A server that was killed may have lost the last results.
    const cut = run({ passed: 10, endedAt: 3, isInterrupted: true })
    expect(newer(later, cut)).toBe(cut)
    expect(lost(later)).toMatchObject({ passed: 12, stopped: 27, running: [], endedAt: 1, isInterrupted: true })
    const other = run({ id: 'b', startedAt: 9, passed: 0 })
    expect(newer(ended, other)).toBe(other)
    expect(newer(undefined, undefined)).toBeUndefined()
  })
})
