import { expect, test } from 'vitest'
import { chartsOf, rowsOf, totalsOf } from './series.ts'

const bucket = (at: number, more: object = {}) => ({
  at,
  runs: 0,
  failed: 0,
  tokens: 0,
  cost: 0,
  firstToken: null,
  ...more,
})
const buckets = [
  bucket(0, { runs: 3, failed: 1, tokens: 600, cost: 0.5, firstToken: { p50: 200, p95: 900 } }),
  bucket(60_000),
  bucket(120_000, { runs: 1, tokens: 60, cost: 0.25 }),
]

test('charts have a value for each slice; what is unknown is a gap', () => {
  const [runs, tokens, cost, first] = chartsOf({ buckets, slice: 60_000 }, true)
  expect(runs!.times).toEqual([0, 60, 120])
  expect(runs!.series.map(({ values }) => values)).toEqual([
    [3, 0, 1],
    [1, 0, 0],
  ])
  expect(tokens!.series[0]!.values).toEqual([10, 0, 1])
  expect(cost!.series[0]!.values).toEqual([0.5, 0, 0.25])
  expect(first!.series.map(({ values }) => values)).toEqual([
    [200, null, null],
    [900, null, null],
  ])
})

test('totals are sums, and the table has the slices in which something happened, newest first', () => {
  expect(totalsOf(buckets)).toEqual({ runs: 4, failed: 1, tokens: 660, cost: 0.75 })
  const charts = chartsOf({ buckets, slice: 60_000 }, true)
  expect(rowsOf(charts[0]!)).toEqual([
    { at: 120_000, values: [1, 0] },
    { at: 0, values: [3, 1] },
  ])
  expect(rowsOf(charts[3]!)).toHaveLength(1)
})
