/** What the page may take on a machine with two cores, and whether it did. */
import type { ResultRow } from './scenario.ts'
import { medianOf } from './table.ts'

const budgets: Readonly<Record<string, number>> = {
  usable: 600,
  'tab-8': 1000,
  size: 150,
  'large-outline': 1500,
  'large-content': 2000,
  'large-heap': 150,
  'large-nodes': 3000,
  'large-scrub': 100,
  'large-scroll': 50,
  'live-frame': 50,
  'live-nodes': 3000,
  'live-scroll': 50,
}

/** The value and, where there is one, its budget. */
export function sampleOf(name: string, value: number): Record<string, number> {
  const budget = budgets[name]
  return budget === undefined ? { value } : { value, budget }
}

/** A line for each budget that a median exceeds; else one that says so. */
export function judge(rows: readonly ResultRow[]): string[] {
  const judged = rows.filter(({ name }) => name in budgets)
  const missed = judged.filter((row) => medianOf(row, 'value')! > budgets[row.name]!)
  if (missed.length === 0) return [`All ${judged.length} budgets are met by the medians.`]
  return missed.map((row) => {
    const kept = row.samples.filter(({ value }) => value! <= budgets[row.name]!).length
    return `Over its budget: ${row.title}. Kept in ${kept} of ${row.samples.length} rounds.`
  })
}
