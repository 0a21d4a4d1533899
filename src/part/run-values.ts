/** What lists of runs compare: durations, costs, models. Stores and the page go by the same. */
import type { RunQuery, RunRow, RunSort } from './log.ts'

/** ms; up to its last entry, while it has not ended. */
export function durationOf({ startedAt, updatedAt, endedAt = updatedAt }: RunRow): number {
  return endedAt - startedAt
}

type Bounds = Pick<RunQuery, 'model' | 'protocol' | 'minCost' | 'maxCost' | 'minMs' | 'maxMs'>

/** Whether a run is within the bounds of cost and duration of a query, and has its model and its protocol. */
export function isWithin(row: RunRow, { model, protocol, minCost, maxCost, minMs, maxMs }: Bounds): boolean {
  if (model !== undefined && row.models?.includes(model) !== true) return false
  if (protocol !== undefined && row.protocol !== protocol) return false
  return isBetween(row.cost, minCost, maxCost) && isBetween(durationOf(row), minMs, maxMs)
}

function isBetween(value: number | undefined, min: number | undefined, max: number | undefined): boolean {
  if (min === undefined && max === undefined) return true
  return value !== undefined && value >= (min ?? -Infinity) && value <= (max ?? Infinity)
}

/** The value by which a run is sorted; undefined if it has none. */
function valueOf(row: RunRow, sort: RunSort): number | undefined {
  if (sort === 'started') return row.startedAt
  if (sort === 'duration') return durationOf(row)
  if (sort === 'cost') return row.cost
  const { totalTokens, inputTokens, outputTokens } = row.usage ?? {}
  if (totalTokens !== undefined) return totalTokens
  return inputTokens === undefined && outputTokens === undefined ? undefined : (inputTokens ?? 0) + (outputTokens ?? 0)
}

/** Compares two rows by what the query sorts by: what has no value is last. 0: as they are listed. */
export function compareBy({ sort = 'started', order = 'desc' }: Pick<RunQuery, 'sort' | 'order'>) {
  return (a: RunRow, b: RunRow): number => {
    const [x, y] = [valueOf(a, sort), valueOf(b, sort)]
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined)
    return order === 'asc' ? x - y : y - x
  }
}
