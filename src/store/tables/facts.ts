/**
 * What statistics are made of: facts of a time, of an agent. Those of a closed hour are kept as JSON (`hours.ts`). Each adds up, so that those of many
 * hours and of single rows are one:
 *
 * - `count`: how often something was; `calls` of a tool: how many, and how many failed.
 * - `used`: sums of usage. NaN stands for NULL: nobody has reported it.
 * - `times`: durations. Kept ones are a histogram whose steps are 2 % apart: a percentile of them is off by at most 1 %.
 */
import type { Percentiles, UsageSum } from '../../part/stats.ts'

export const hourLength = 3_600_000

const countKinds = ['status', 'error'] as const
const usedKinds = ['model-used', 'thread-used'] as const
const timeKinds = ['run-took', 'model-took', 'model-first', 'tool-took'] as const

export type CountKind = (typeof countKinds)[number]
export type UsedKind = (typeof usedKinds)[number]
export type TimeKind = (typeof timeKinds)[number]

/** The order of sums in a list. */
const sums = [
  'calls',
  'reports',
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'reasoningTokens',
  'estimated',
  'knownCost',
  'unpriced',
] as const satisfies (keyof UsageSum)[]

/** Values that were measured, and, of kept ones, how many there are in each step. */
export interface Times {
  values: number[]
  steps: Map<number, number>
}

type Named<T> = Map<string, T>

export class Facts {
  readonly counts: Record<CountKind, Named<number>> = { status: new Map(), error: new Map() }
  readonly used: Record<UsedKind, Named<number[]>> = { 'model-used': new Map(), 'thread-used': new Map() }
  readonly times: Record<TimeKind, Named<Times>> = {
    'run-took': new Map(),
    'model-took': new Map(),
    'model-first': new Map(),
    'tool-took': new Map(),
  }

  count(kind: CountKind, name: string, more = 1): void {
    const counts = this.counts[kind]
    counts.set(name, (counts.get(name) ?? 0) + more)
  }

  use(kind: UsedKind, name: string, usage: readonly number[]): void {
    const known = this.used[kind].get(name)
    if (known === undefined) this.used[kind].set(name, [...usage])
    else addSums(known, usage)
  }

  timesOf(kind: TimeKind, name: string): Times {
    let times = this.times[kind].get(name)
    if (times === undefined) this.times[kind].set(name, (times = { values: [], steps: new Map() }))
    return times
  }

  /** Adds all of the others, which are not used any more. */
  add(others: Facts): void {
    for (const kind of countKinds) for (const [name, count] of others.counts[kind]) this.count(kind, name, count)
    for (const kind of usedKinds) for (const [name, usage] of others.used[kind]) this.use(kind, name, usage)
    for (const kind of timeKinds) {
      for (const [name, { values, steps }] of others.times[kind]) {
        const times = this.timesOf(kind, name)
        for (const value of values) times.values.push(value)
        addSteps(times.steps, steps)
      }
    }
  }

  /** Adds what `toJson` has returned. */
  addJson(json: string): void {
    const { counts, used, times } = JSON.parse(json) as KeptFacts
    for (const [kind, name, count] of counts) this.count(kind, name, count)
    for (const [kind, name, ...usage] of used) this.use(kind, name, usage.map(orNaN))
    for (const [kind, name, ...pairs] of times) {
      const { steps } = this.timesOf(kind, name)
      for (let i = 0; i < pairs.length; i += 2) steps.set(pairs[i]!, (steps.get(pairs[i]!) ?? 0) + pairs[i + 1]!)
    }
  }

  toJson(): string {
    const counts = countKinds.flatMap((kind) => [...this.counts[kind]].map(([name, count]) => [kind, name, count]))
    // JSON has no NaN: it becomes null.
    const used = usedKinds.flatMap((kind) => [...this.used[kind]].map(([name, usage]) => [kind, name, ...usage]))
    const times = timeKinds.flatMap((kind) =>
      [...this.times[kind]].map(([name, each]) => [kind, name, ...[...stepsOf(each)].flat()]),
    )
    return JSON.stringify({ counts, used, times })
  }
}

interface KeptFacts {
  counts: [kind: CountKind, name: string, count: number][]
  used: [kind: UsedKind, name: string, ...sums: (number | null)[]][]
  times: [kind: TimeKind, name: string, ...stepsAndCounts: number[]][]
}

function orNaN(value: number | null): number {
  return value ?? Number.NaN
}

export function addSums(to: number[], more: readonly number[]): void {
  for (let i = 0; i < sums.length; i++) {
    const [a, b] = [to[i]!, more[i]!]
    if (sums[i] === 'estimated') to[i] = Math.max(a, b)
    else if (Number.isNaN(a)) to[i] = b
    else if (!Number.isNaN(b)) to[i] = a + b
  }
}

export function toUsageSum(usage: readonly number[]): UsageSum {
  return Object.fromEntries(sums.map((name, i) => [name, Number.isNaN(usage[i]) ? null : usage[i]])) as never
}

/** Two neighbours are 2 % apart. */
const ratio = Math.log(1.02)

/** Step 0 is 0 ms. Up to 50 ms no two numbers share one. */
export function stepOf(ms: number): number {
  return ms <= 0 ? 0 : 1 + Math.round(Math.log(Math.max(1, ms)) / ratio)
}

export function valueOf(step: number): number {
  return step === 0 ? 0 : Math.round(Math.exp((step - 1) * ratio))
}

function stepsOf({ values, steps }: Times): Map<number, number> {
  const all = new Map(steps)
  for (const value of values) all.set(stepOf(value), (all.get(stepOf(value)) ?? 0) + 1)
  return all
}

function addSteps(to: Map<number, number>, more: ReadonlyMap<number, number>): void {
  for (const [step, count] of more) to.set(step, (to.get(step) ?? 0) + count)
}

/** Exact if none of the times were kept. */
export function percentilesOf(name: string, times: Times): Percentiles {
  if (times.steps.size === 0) {
    const sorted = times.values.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1]!
    return { name, count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
  }
  const steps = [...stepsOf(times)].sort(([a], [b]) => a - b)
  const count = steps.reduce((sum, [, each]) => sum + each, 0)
  const at = (share: number) => {
    let left = Math.ceil(count * share)
    return valueOf(steps.find(([, each]) => (left -= each) <= 0)![0])
  }
  return { name, count, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
