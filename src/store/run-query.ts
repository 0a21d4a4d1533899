/** Which rows a query selects. */
import type { DueRun, RunQuery, RunRow, RunStatus } from '../part/log.ts'
import { compareBy, isWithin } from '../part/run-values.ts'
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
  // Each once: SQLite lists the runs of each.
  return typeof status === 'string' ? [status] : status && [...new Set(status)]
}

/** The query of the runs that are sorted: the newest that fit. */
export function unsorted(query: RunQuery): RunQuery {
  const { before: _, sort: __, order: ___, ...conditions } = query
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
