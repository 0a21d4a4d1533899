import { expect, test } from 'vitest'
import { boundsOf, isNow, rangeQuery, readTimeRange, runsIn, sayRange, timeBefore } from './range.ts'

const rangeOf = (search: string) => {
  const query = new URLSearchParams(search)
  return readTimeRange((name) => query.get(name) ?? undefined)
}
const hour = 3_600_000
const now = 1_800_000_000_000

test('a window ends now; the time before is as long', () => {
  const range = rangeOf('?window=24h')
  expect(boundsOf(range, now)).toEqual({ since: now - 24 * hour, until: now })
  expect(timeBefore(range, now)).toEqual({ since: now - 48 * hour, until: now - 24 * hour })
  expect([rangeQuery(range).window, runsIn(range), isNow(range, now)]).toEqual(['24h', { since: '24h' }, true])
})

test('a time of one’s own is from and to a moment', () => {
  const range = rangeOf(`?since=${now - 3 * hour}&until=${now - hour}&window=7d`)
  expect(timeBefore(range, now)).toEqual({ since: now - 5 * hour, until: now - 3 * hour })
  expect(rangeQuery(range)).toEqual({ window: undefined, since: `${now - 3 * hour}`, until: `${now - hour}` })
  expect(runsIn(range)).toEqual({ since: `${now - 3 * hour}`, until: `${now - hour}` })
  expect([isNow(range, now), isNow(range, now - 2 * hour)]).toEqual([false, true])
  expect(sayRange(range)).toMatch(/^from \d{4}-\d\d-\d\d \d\d:\d\d to (?:\d{4}-\d\d-\d\d )?\d\d:\d\d$/u)
})

test('there is no time before 1970', () => {
  expect(timeBefore(rangeOf('?since=5&until=20'), now)).toEqual({ since: 0, until: 5 })
})

test.each(['', '?window=2h', '?since=5', '?since=9&until=5', '?since=soon&until=later'])(
  '%s is the last hour',
  (search) => expect(rangeOf(search)).toEqual({ kind: 'window', name: '1h', ms: hour }),
)
