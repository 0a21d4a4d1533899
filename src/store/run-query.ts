/** Which rows a query selects. */
import type { DueRun, RunQuery, RunRow, RunStatus } from '../part/log.ts'
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
  return Math.min(1000, Math.max(1, Math.floor(limit)))
}

export function statusesOf(status: RunQuery['status']): readonly RunStatus[] | undefined {
  return typeof status === 'string' ? [status] : status
}

/** The rows that a query selects, of all rows, oldest first. For stores that keep their rows in memory. */
export function selectRows<T extends RunRow>(rows: readonly T[], query: RunQuery): T[] {
  const { agent, threadId, status, since = -Infinity, idPrefix = '', before } = query
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
