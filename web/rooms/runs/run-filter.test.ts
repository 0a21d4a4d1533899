import { expect, test } from 'vitest'
import type { RunRow } from '../../../src/part/log.ts'
import type { StateWord } from '../../kit/status-words.ts'
import { fits, isFiltered, listPath, readFilter, sinceTime, withToggled } from './run-filter.ts'

const now = 1_800_000_000_000
const row = (changes: Partial<RunRow> = {}): RunRow => ({
  id: 'run_1',
  agent: 'assistant',
  threadId: 't',
  protocol: 'ui',
  status: 'running',
  startedAt: now - 1000,
  updatedAt: now,
  lastSeq: 1,
  epoch: 1,
  title: 'What is 12*7?',
  ...changes,
})
const filterOf = (search: string) => {
  const query = new URLSearchParams(search)
  return readFilter((name) => query.get(name) ?? undefined)
}

test('a link is a filter, and a filter is a request', () => {
  const filter = filterOf('?status=waiting,stopped&agent=assistant&user=key:ci&q=%20what%20&since=1h')
  expect(listPath(filter, { before: 'run_9', limit: 100 }, now)).toBe(
    `/api/runs?limit=100&status=suspended%2Caborted&agent=assistant&user=key%3Aci&q=what&since=${now - 3_600_000}&before=run_9`,
  )
  expect(['?user=alice', '?sel=run_1'].map((each) => isFiltered(filterOf(each)))).toEqual([true, false])
  expect(listPath(filterOf('?since=soon'), { before: undefined, limit: 1 }, now)).toBe('/api/runs?limit=1&since=soon')
})

test('times: ages, epoch ms, dates', () => {
  expect(['15m', '7d', '1700000000000', '2026-01-31T00:00:00Z', 'soon'].map((text) => sinceTime(text, now))).toEqual([
    now - 900_000,
    now - 604_800_000,
    1_700_000_000_000,
    Date.UTC(2026, 0, 31),
    undefined,
  ])
})

test.each<[string, Partial<RunRow>, boolean]>([
  ['', {}, true],
  ['?status=running,suspended', {}, true],
  ['?status=waiting', { status: 'suspended' }, true],
  ['?status=failed', { status: 'timed-out' }, true],
  ['?status=timed-out', { status: 'failed' }, false],
  ['?status=failed', {}, false],
  ['?agent=other', {}, false],
  ['?user=alice', { owner: 'alice' }, true],
  ['?user=alice', { owner: 'bob' }, false],
  ['?user=alice', {}, false],
  ['?since=1h', {}, true],
  ['?since=1h', { startedAt: now - 4_000_000 }, false],
  ['?q=12*7%20WHAT', {}, true],
  ['?q=what%20else', {}, false],
])('%s and a run with %j: %s', (search, changes, expected) =>
  expect(fits(filterOf(search), row(changes), now)).toBe(expected),
)

test('a chip adds its word to the address and takes it away; names of the API are words there, too', () => {
  const toggled = (search: string, word: StateWord) => withToggled(filterOf(search).status, word)
  expect(toggled('', 'failed')).toBe('failed')
  expect(toggled('?status=running,failed', 'failed')).toBe('running')
  expect(toggled('?status=suspended', 'waiting')).toBeUndefined()
  expect(toggled('?status=timed-out', 'stopped')).toBe('stopped,timed-out')
  expect(toggled('?status=timed-out', 'failed')).toBe('failed')
})
