/** What the charts draw, from what the server counted. */
import type { Totals as Counted } from '../../../src/part/stats.ts'
import type { StatsBucket, WindowStats } from '../../../src/part/window-stats.ts'
import { cost, count, duration } from '../../kit/format.ts'

export interface Series {
  label: string
  /** A custom property of the design: `--text-part`. */
  color: string
  /** `dots`: a line with its points, because it has gaps. */
  kind: 'bars' | 'line' | 'dots'
  /** What the label means. */
  about?: string
  values: (number | null)[]
}

export interface ChartData {
  title: string
  /** Epoch seconds, as the charts take them. */
  times: number[]
  /** Length of a slice, in seconds. */
  slice: number
  series: Series[]
  /** It counts: 1, 2, 3, and nothing between. */
  isWhole?: true
  /** Why there is nothing to draw. */
  none?: string | undefined
  write(value: number): string
}

/** `isPriced`: the price of a call is known. */
export function chartsOf({ buckets, slice }: Pick<WindowStats, 'buckets' | 'slice'>, isPriced: boolean): ChartData[] {
  const times = buckets.map(({ at }) => at / 1000)
  const shared = { times, slice: slice / 1000 }
  const values = (of: (bucket: StatsBucket) => number | null) => buckets.map(of)
  return [
    {
      title: 'Runs',
      ...shared,
      write: count,
      isWhole: true,
      series: [
        { label: 'runs', color: '--text-part', kind: 'bars', values: values(({ runs }) => runs) },
        { label: 'failed', color: '--error-part', kind: 'bars', values: values(({ failed }) => failed) },
      ],
    },
    {
      title: 'Tokens per second',
      ...shared,
      write: (value) => (value > 0 && value < 10 ? value.toFixed(1) : count(Math.round(value))),
      series: [
        {
          label: 'tokens/s',
          color: '--text-part',
          kind: 'line',
          values: values(({ tokens }) => tokens / shared.slice),
        },
      ],
    },
    {
      title: 'Cost',
      ...shared,
      write: cost,
      none: isPriced ? undefined : 'No price is known for the models that were called.',
      series: [{ label: 'cost', color: '--tool-part', kind: 'bars', values: values((bucket) => bucket.cost) }],
    },
    {
      title: 'First token',
      ...shared,
      write: duration,
      series: [
        {
          label: 'half (p50)',
          about: 'Half of the runs began to answer no later',
          color: '--text-part',
          kind: 'dots',
          values: values(({ firstToken }) => firstToken?.p50 ?? null),
        },
        {
          label: 'slowest 5 % (p95)',
          about: 'The slowest 5 % of the runs began to answer later',
          color: '--tool-part',
          kind: 'dots',
          values: values(({ firstToken }) => firstToken?.p95 ?? null),
        },
      ],
    },
  ]
}

/** Why there is nothing to draw: an axis without values has words for none. */
export function noneOf({ none, series }: ChartData): string | undefined {
  if (none !== undefined) return none
  const hasAny = series.some(({ values }) => values.some((value) => value !== null && value > 0))
  return hasAny ? undefined : 'Nothing in this time.'
}

/** What a time came to, beside another one. */
export interface Sums {
  runs: number
  /** The share of completed runs among those that have ended and were not stopped. Undefined if there are none. */
  success: number | undefined
  tokens: number
  cost: number
}

export function sumsOf({ outcomes, usage }: Pick<Counted, 'outcomes' | 'usage'>): Sums {
  const of = (name: string) => outcomes.find((each) => each.name === name)?.count ?? 0
  const runs = outcomes.reduce((sum, { count: n }) => sum + n, 0)
  const ended = runs - of('aborted') - of('running') - of('suspended')
  return {
    runs,
    success: ended === 0 ? undefined : of('completed') / ended,
    tokens: (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0),
    cost: usage?.knownCost ?? 0,
  }
}

/** `+12 %`; undefined if there is nothing to compare with. */
export function changeOf(now: number, before: number | undefined): string | undefined {
  if (before === undefined || before === 0) return undefined
  const change = Math.round((now / before - 1) * 100)
  if (change > 900) return '×' + Math.round(now / before)
  return `${change > 0 ? '+' : change < 0 ? '−' : '±'}${Math.abs(change)} %`
}

export interface Totals {
  runs: number
  failed: number
  tokens: number
  cost: number
}

export function totalsOf(buckets: readonly StatsBucket[]): Totals {
  const sum = { runs: 0, failed: 0, tokens: 0, cost: 0 }
  for (const { runs, failed, tokens, cost: usd } of buckets) {
    sum.runs += runs
    sum.failed += failed
    sum.tokens += tokens
    sum.cost += usd
  }
  return sum
}

/** Slices in which nothing happened say nothing in a table. */
export function rowsOf({ times, series }: ChartData): { at: number; values: (number | null)[] }[] {
  return times
    .map((time, i) => ({ at: time * 1000, values: series.map(({ values }) => values[i] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value !== 0))
    .reverse()
}
