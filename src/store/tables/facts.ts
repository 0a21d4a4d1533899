/**
 * What statistics are made of: facts of a time, of an agent. Those of a closed hour are kept (`hours.ts`). Each adds up, so that those of many
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

  /** `usage` has nine sums from `from` on. */
  use(kind: UsedKind, name: string, usage: ArrayLike<number>, from = 0): void {
    const known = this.used[kind].get(name)
    if (known !== undefined) return addSums(known, usage, from)
    // There may be tens of thousands of threads: a list of numbers at once, not one that grows.
    const [a, b, c, d, e] = [usage[from]!, usage[from + 1]!, usage[from + 2]!, usage[from + 3]!, usage[from + 4]!]
    const [f, g, h, i] = [usage[from + 5]!, usage[from + 6]!, usage[from + 7]!, usage[from + 8]!]
    this.used[kind].set(name, [a, b, c, d, e, f, g, h, i])
  }

  timesOf(kind: TimeKind, name: string): Times {
    let times = this.times[kind].get(name)
    if (times === undefined) this.times[kind].set(name, (times = { values: [], steps: new Map() }))
    return times
  }

  /** Adds what is listed by agent and by day. */
  addTotals(facts: Facts): void {
    for (const [name, count] of facts.counts.status) this.count('status', name, count)
    for (const usage of facts.used['model-used'].values()) this.use('model-used', '', usage)
  }

  /** Adds all of the others, which are not used any more. */
  add(others: Facts): void {
    for (const kind of countKinds) for (const [name, count] of others.counts[kind]) this.count(kind, name, count)
    for (const kind of usedKinds) for (const [name, usage] of others.used[kind]) this.use(kind, name, usage)
    for (const kind of timeKinds) {
      for (const [name, { values }] of others.times[kind]) {
        const times = this.timesOf(kind, name)
        for (const value of values) times.values.push(value)
      }
    }
  }

  /** Adds what `keep` has returned; and of it to `others` what is listed by agent and by day. */
  addKept({ names, numbers: bytes }: KeptFacts, others: readonly Facts[] = []): void {
    const { counts, used, times } = JSON.parse(names) as KeptNames
    // A copy begins at a multiple of eight.
    const numbers = new Float64Array(bytes.slice().buffer)
    let at = 0
    for (const kind of countKinds) {
      for (const name of counts[kind]) {
        this.count(kind, name, numbers[at])
        if (kind === 'status') for (const each of others) each.count(kind, name, numbers[at])
        at++
      }
    }
    for (const kind of usedKinds) {
      for (const name of used[kind]) {
        this.use(kind, name, numbers, at)
        if (kind === 'model-used') for (const each of others) each.use(kind, '', numbers, at)
        at += sums.length
      }
    }
    for (const kind of timeKinds) {
      for (const [name, length] of times[kind]) {
        const { steps } = this.timesOf(kind, name)
        for (const end = at + length; at < end; at += 2) {
          const step = numbers[at]!
          steps.set(step, (steps.get(step) ?? 0) + numbers[at + 1]!)
        }
      }
    }
  }

  keep(): KeptFacts {
    const numbers: number[] = []
    const names: KeptNames = {
      counts: { status: [], error: [] },
      used: { 'model-used': [], 'thread-used': [] },
      times: { 'run-took': [], 'model-took': [], 'model-first': [], 'tool-took': [] },
    }
    for (const kind of countKinds) {
      for (const [name, count] of this.counts[kind]) {
        names.counts[kind].push(name)
        numbers.push(count)
      }
    }
    for (const kind of usedKinds) {
      for (const [name, usage] of this.used[kind]) {
        names.used[kind].push(name)
        numbers.push(...usage)
      }
    }
    for (const kind of timeKinds) {
      for (const [name, each] of this.times[kind]) {
        const pairs = [...stepsOf(each)].flat()
        names.times[kind].push([name, pairs.length])
        for (const number of pairs) numbers.push(number)
      }
    }
    return { names: JSON.stringify(names), numbers: new Uint8Array(new Float64Array(numbers).buffer) }
  }
}

/** The names are JSON; the numbers of each, in the same order, are 64-bit floats: to read them takes a tenth of the time of JSON. */
export interface KeptFacts {
  names: string
  numbers: Uint8Array
}

interface KeptNames {
  counts: Record<CountKind, string[]>
  used: Record<UsedKind, string[]>
  times: Record<TimeKind, [name: string, length: number][]>
}

const estimated = sums.indexOf('estimated')
export const reportsAt = sums.indexOf('reports')

/** Nobody has reported tokens. */
export function noSums(): number[] {
  return [0, 0, Number.NaN, Number.NaN, Number.NaN, Number.NaN, 0, 0, 0]
}

export function addSums(to: number[], more: ArrayLike<number>, from = 0): void {
  for (let i = 0; i < sums.length; i++) {
    const [a, b] = [to[i]!, more[from + i]!]
    if (i === estimated) to[i] = a > b ? a : b
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
