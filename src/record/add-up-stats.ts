/** Statistics of a store without tables, from the views of its runs. */
import type { RunRow, Store } from '../part/log.ts'
import { readView } from '../fold/read-view.ts'
import type { RunView, StepView } from '../fold/run-view.ts'
import { unlessDamaged } from '../fold/unless-damaged.ts'
import { sumUsed, type Used } from '../fold/usage-fold.ts'
import type { Count, Percentiles, Stats, StatsQuery, UsageOf } from './stats.ts'
import type { UsageSum } from './usage-sums.ts'

type Runs = Pick<Store, 'log' | 'runs'>

export async function addUpStats(store: Runs, { since, until, agent }: StatsQuery): Promise<Stats> {
  const rows = (await store.runs.list({ limit: 1000 })).filter(
    (row) => row.startedAt >= since && row.startedAt < until && (agent === undefined || row.agent === agent),
  )
  const read = rows.map(({ id }) => unlessDamaged(() => readView(store, id)))
  const views = (await Promise.all(read)).filter((view) => view !== undefined)
  const steps = views.flatMap((view) => view.steps)
  const ended = rows.flatMap(({ startedAt, endedAt }) => (endedAt === undefined ? [] : endedAt - startedAt))
  const used = views.flatMap(({ usageByModel }) => usageByModel)
  const by = (name: (view: RunView) => string) =>
    usageOf(views.flatMap((view) => view.usageByModel.map((each) => [name(view), each] as const)))
  return {
    since,
    until,
    outcomes: counts(rows.map(({ status }) => status)),
    errors: counts(rows.flatMap(({ error }) => error?.code ?? [])),
    agents: counts(rows.map((row) => row.agent)),
    days: counts(rows.map(dayOf)).sort(byName),
    duration: percentiles(ended.map((value) => ['all', value]))[0] ?? null,
    usage: sumOf(used),
    usageByModel: usageOf(used.map((each) => [each.model, each])),
    usageByAgent: usageOf(views.flatMap(({ usageByAgent }) => usageByAgent.map((each) => [each.agent, each] as const))),
    usageByDay: by(dayOf).sort(byName),
    usageByThread: by(({ threadId }) => threadId),
    modelCalls: percentiles(steps.flatMap((step) => durationOf(step, step.kind === 'model-call', step.model))),
    firstToken: [],
    toolCalls: percentiles(steps.flatMap((step) => durationOf(step, isTool(step), step.toolName))),
  }
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)

function dayOf({ startedAt }: Pick<RunRow, 'startedAt'>): string {
  return new Date(startedAt).toISOString().slice(0, 10)
}

function isTool({ kind }: StepView): boolean {
  return kind === 'tool-call' || kind === 'client-tool'
}

function durationOf({ duration }: StepView, isOne: boolean, name: string | undefined): [string, number][] {
  return isOne && name !== undefined && duration !== undefined ? [[name, duration]] : []
}

function groups<T>(all: readonly (readonly [name: string, value: T])[]): [name: string, values: T[]][] {
  const found = new Map<string, T[]>()
  for (const [name, value] of all) {
    const values = found.get(name)
    if (values === undefined) found.set(name, [value])
    else values.push(value)
  }
  return [...found]
}

function counts(names: readonly string[]): Count[] {
  return groups(names.map((name) => [name, name]))
    .map(([name, { length }]) => ({ name, count: length }))
    .sort((a, b) => b.count - a.count)
}

function percentiles(all: readonly (readonly [name: string, value: number])[]): Percentiles[] {
  return groups(all)
    .map(([name, values]) => {
      const sorted = values.toSorted((a, b) => a - b)
      const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1]!
      return { name, count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    })
    .sort((a, b) => b.count - a.count)
}

function usageOf(all: readonly (readonly [name: string, Used])[]): UsageOf[] {
  return groups(all)
    .map(([name, values]) => ({ name, ...sumOf(values) }))
    .sort((a, b) => b.reports - a.reports)
}

function sumOf(all: readonly Used[]): UsageSum {
  const { calls, usage, knownCost, unpriced } = sumUsed(all)
  const { inputTokens = null, outputTokens = null, cachedInputTokens = null, reasoningTokens = null, source } = usage
  const tokens = { inputTokens, outputTokens, cachedInputTokens, reasoningTokens }
  return { calls, reports: calls, ...tokens, estimated: source === 'estimated' ? 1 : 0, knownCost, unpriced }
}
