/** Which rows a query selects. */
import type { DueRun, RunQuery, RunRow, RunSort, RunStatus } from '../part/log.ts'
import { dueAt, isShown, type StoredRow } from './run-row.ts'
import { unknownCursor } from './store-error.ts'

/** The words of `RunQuery.q`, case-folded like titles. A title matches if it contains all of them. */
export function queryWords(q: string | undefined): string[] {
  return fold(q ?? '')
    .split(/\s+/)
    .filter(Boolean)
}

export function fold(text: string): string {
  return text.toLowerCase()
}

export function limitOf({ limit = 50 }: RunQuery): number {
  return Math.min(mostListed, Math.max(1, Math.floor(limit)))
}

/** Rows of one list, and those that are sorted. */
const mostListed = 10_000

export function statusesOf(status: RunQuery['status']): readonly RunStatus[] | undefined {
  return typeof status === 'string' ? [status] : status
}

/** ms; up to its last entry, while it has not ended. */
export function tookOf({ startedAt, updatedAt, endedAt = updatedAt }: RunRow): number {
  return endedAt - startedAt
}

/** Whether a run is within the bounds of cost and duration of a query, and has its model and its protocol. */
export function isWithin(row: RunRow, { model, protocol, minCost, maxCost, minMs, maxMs }: RunQuery): boolean {
  if (model !== undefined && row.models?.includes(model) !== true) return false
  if (protocol !== undefined && row.protocol !== protocol) return false
  if (!isBetween(row.cost, minCost, maxCost)) return false
  return isBetween(tookOf(row), minMs, maxMs)
}

function isBetween(value: number | undefined, min: number | undefined, max: number | undefined): boolean {
  if (min === undefined && max === undefined) return true
  return value !== undefined && value >= (min ?? -Infinity) && value <= (max ?? Infinity)
}

/** The value by which a run is sorted; undefined if it has none. */
function valueOf(row: RunRow, sort: RunSort): number | undefined {
  switch (sort) {
    case 'started':
      return row.startedAt
    case 'duration':
      return tookOf(row)
    case 'cost':
      return row.cost
    default: {
      const { totalTokens, inputTokens, outputTokens } = row.usage ?? {}
      if (totalTokens !== undefined) return totalTokens
      return inputTokens === undefined && outputTokens === undefined
        ? undefined
        : (inputTokens ?? 0) + (outputTokens ?? 0)
    }
  }
}

/** Compares two rows by what the query sorts by: what has no value is last. 0: as they are listed. */
export function compareBy({ sort = 'started', order = 'desc' }: Pick<RunQuery, 'sort' | 'order'>) {
  return (a: RunRow, b: RunRow): number => {
    const [x, y] = [valueOf(a, sort), valueOf(b, sort)]
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined)
    return order === 'asc' ? x - y : y - x
  }
}

/** The query of the runs that are sorted: the newest that fit. */
export function unsorted({ before: _, sort: __, order: ___, ...conditions }: RunQuery): RunQuery {
  return { ...conditions, limit: mostListed }
}

/**
 * The page of a query that sorts. `newest`: the runs of {@link unsorted}; `last`: the run `before`. That may not be among the newest any more, or fit
 * no more: then its place is where it would be. Throws `unknown-run` if the filter does not show it.
 */
export function sortedPage(query: RunQuery, newest: readonly RunRow[], last: RunRow | undefined): RunRow[] {
  const { before, order } = query
  const compare = compareBy(query)
  const rows = (order === 'asc' ? newest.toReversed() : newest).toSorted(compare)
  const limit = limitOf(query)
  if (before === undefined) return rows.slice(0, limit)
  if (last === undefined || !isShown(last, query)) throw unknownCursor(before)
  const at = rows.findIndex(({ id }) => id === before)
  return (at < 0 ? rows.filter((row) => compare(row, last) > 0) : rows.slice(at + 1)).slice(0, limit)
}

/** The rows that a query selects, of all rows, oldest first. For stores that keep their rows in memory. */
export function listRows(rows: readonly RunRow[], query: RunQuery): RunRow[] {
  if (query.sort === undefined) return selectRows(rows, query)
  const last = query.before === undefined ? undefined : rows.find(({ id }) => id === query.before)
  return sortedPage(query, selectRows(rows, unsorted(query)), last)
}

/** The same of a query that does not sort. */
function selectRows(rows: readonly RunRow[], query: RunQuery): RunRow[] {
  const { agent, threadId, status, since = -Infinity, until = Infinity, idPrefix = '', before } = query
  const statuses = statusesOf(status)
  const words = [...queryWords(query.q), ...queryWords(query.search)]
  // A run that the filter does not show is unknown, so that nobody learns of it.
  const end = before === undefined ? rows.length : rows.findIndex((row) => row.id === before && isShown(row, query))
  if (end < 0) throw unknownCursor(before!)
  return rows
    .slice(0, end)
    .reverse()
    .filter(
      (row) =>
        isShown(row, query) &&
        (agent === undefined || row.agent === agent) &&
        (threadId === undefined || row.threadId === threadId) &&
        (statuses === undefined || statuses.includes(row.status)) &&
        row.startedAt >= since &&
        row.startedAt < until &&
        isWithin(row, query) &&
        row.id.startsWith(idPrefix) &&
        words.every((word) => fold(row.title ?? '').includes(word)),
    )
    .slice(0, limitOf(query))
}

/** See `RunIndex.due`. For stores that keep their rows in memory. */
export function dueRows(rows: readonly StoredRow[], before: number, limit: number): DueRun[] {
  return rows
    .map((row) => ({ id: row.id, dueAt: dueAt(row) ?? Infinity }))
    .filter((row) => row.dueAt <= before && row.dueAt < Infinity)
    .toSorted((a, b) => a.dueAt - b.dueAt)
    .slice(0, limit)
}
