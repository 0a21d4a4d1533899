import { expect, test } from 'vitest'
import { changeOf, chartsOf, noneOf, rowsOf, sumsOf, totalsOf } from './series.ts'

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

test('a chart without values says so, and has no axis; without a price it says why', () => {
  const quiet = chartsOf({ buckets: [bucket(0, { runs: 1, tokens: 5 })], slice: 60_000 }, false)
  expect(quiet.map(noneOf)).toEqual([
    undefined,
    undefined,
    'No price is known for the models that were called.',
    'Nothing in this time.',
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

test('success is of the runs that have ended and were not stopped', () => {
  const outcomes = [
    { name: 'completed', count: 6 },
    { name: 'failed', count: 1 },
    { name: 'timeout', count: 1 },
    { name: 'aborted', count: 4 },
    { name: 'running', count: 3 },
    { name: 'suspended', count: 2 },
  ]
  const usage = { inputTokens: 5, outputTokens: null, knownCost: 0.5 } as never
  expect(sumsOf({ outcomes, usage })).toEqual({ runs: 17, success: 0.75, tokens: 5, cost: 0.5 })
  expect(sumsOf({ outcomes: outcomes.slice(3), usage: null })).toEqual({
    runs: 9,
    success: undefined,
    tokens: 0,
    cost: 0,
  })
})

test.each([
  [12, 10, '+20 %'],
  [5, 10, '−50 %'],
  [10, 10, '±0 %'],
  [200, 10, '×20'],
  [0, 10, '−100 %'],
  [3, 0, undefined],
  [3, undefined, undefined],
])('%d beside %s: %s', (now, before, expected) => expect(changeOf(now, before)).toBe(expected))
