import { expect, test } from 'vitest'
import type { RunRow } from '../../../src/part/log.ts'
import type { StateWord } from '../../kit/status-words.ts'
import {
  compareRuns,
  countPath,
  fits,
  isFiltered,
  listPath,
  readFilter,
  recentPaths,
  sinceTime,
  withToggled,
} from './run-filter.ts'

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
    `/api/runs?status=suspended%2Caborted&agent=assistant&user=key%3Aci&q=what&since=${now - 3_600_000}&limit=100&before=run_9`,
  )
  expect(['?user=alice', '?sel=run_1'].map((each) => isFiltered(filterOf(each)))).toEqual([true, false])
  expect(listPath(filterOf('?since=soon'), { before: undefined, limit: 1 }, now)).toBe('/api/runs?since=soon&limit=1')
})

test('the timeline asks for what the list shows, of its own time, and for what is open since before', () => {
  const recent = (search: string) => recentPaths(filterOf(search), 900_000, 9, now)
  const since = `since=${now - 900_000}&limit=9`
  expect(recent('')).toEqual([`/api/runs?${since}`, '/api/runs?status=running%2Csuspended&limit=9'])
  expect(recent('?status=failed&agent=a&sort=cost&since=1h')[0]).toMatch(new RegExp(`&agent=a&${since}$`, 'u'))
  expect(recent('?status=failed')).toHaveLength(1)
  expect(recent('?status=waiting&since=1m')).toEqual([
    `/api/runs?status=suspended&since=${now - 60_000}&limit=9`,
    `/api/runs?status=suspended&since=${now - 60_000}&limit=9`,
  ])
})

test('a link has bounds, and an order; the number of what fits has none', () => {
  const filter = filterOf('?until=1700000000000&model=m&client=page&cost=0.01..&took=..2s&sort=cost&order=asc')
  const asked = 'until=1700000000000&model=m&protocol=page&minCost=0.01&maxMs=2000'
  expect(listPath(filter, { before: undefined, limit: 1 }, now)).toBe(`/api/runs?${asked}&limit=1&sort=cost&order=asc`)
  expect(countPath(filter, now)).toBe(`/api/runs?${asked}&count=1`)
  expect(['?took=1s..', '?client=ui', '?until=1'].map((each) => isFiltered(filterOf(each)))).toEqual([true, true, true])
  expect(['?sort=cost', '?sort=price&order=asc'].map((each) => isFiltered(filterOf(each)))).toEqual([false, false])
  expect(listPath(filterOf('?took=long..'), { before: undefined, limit: 1 }, now)).toContain('minMs=long')
})

test('the order of the list: what has no cost is last, whichever way', () => {
  const rows = [row({ id: 'a', cost: 1 }), row({ id: 'b' }), row({ id: 'c', cost: 3 })]
  const ids = (search: string) => rows.toSorted(compareRuns(filterOf(search))).map(({ id }) => id)
  expect([ids('?sort=cost'), ids('?sort=cost&order=asc')]).toEqual([
    ['c', 'a', 'b'],
    ['a', 'c', 'b'],
  ])
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
  ['?until=1700000000000', {}, false],
  ['?model=m2', { models: ['m1', 'm2'] }, true],
  ['?model=m', { models: ['m1'] }, false],
  ['?client=ui', {}, true],
  ['?client=page', {}, false],
  ['?cost=..1', { cost: 0.5 }, true],
  ['?cost=..1', {}, false],
  ['?took=1s..', {}, true],
  ['?took=2s..', {}, false],
  ['?took=long..', {}, false],
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
