/**
 * The active runs of this process: their rows, so that an append needs no read, and their latest entries, for readers that keep up. A run that is
 * not running and has no reader is dropped, because it may stay suspended for days.
 */
import type { Entry } from '../part/entry.ts'
import { createEntryLines } from '../part/entry-lines.ts'
import { createLiveTail, type LiveTail } from './live-tail-cache.ts'
import type { StoredRow } from './run-row.ts'

export interface CachedRow {
  row: StoredRow
  recent: LiveTail
  /** Encodes the run's entries. */
  toLine: ReturnType<typeof createEntryLines>
}

export interface RowCache {
  get(run: string): CachedRow | undefined
  runs(): Iterable<string>
  /** Call this after a commit, with the size of the entries in characters of JSON. */
  add(run: string, row: StoredRow, entries: readonly Entry[], length: number): CachedRow
  /** For a run that this process has just claimed: its row is known, its entries are not. */
  set(run: string, row: StoredRow): void
  /** Drops unneeded entries. Call this after the readers that `add` may have woken. */
  trim(run: string, head: CachedRow): void
  /** Call this when a reader has left. */
  left(run: string, recent: LiveTail): void
  /** Call this when the stored entries of a run differ from the appended ones. */
  forget(run: string): void
  clear(): void
}

/**
 * Limit in characters, over all runs, for entries cached for a lagging reader: the first reader of a run that has not arrived yet (`POST
 * /api/runs`, then `GET`; a short answer may end before the response is sent), and readers of a run that is no longer running.
 */
const mostWaiting = 16 * 1024 * 1024

export function createRowCache(): RowCache {
  const cached = new Map<string, CachedRow>()
  /** Runs that count towards `mostWaiting`, oldest first, with their size in characters. */
  const waiting = new Map<string, number>()
  let waitingLength = 0

  function drop(run: string): void {
    uncount(run)
    cached.delete(run)
  }

  function uncount(run: string): void {
    waitingLength -= waiting.get(run) ?? 0
    waiting.delete(run)
  }

  function count(run: string, { length }: LiveTail): void {
    waitingLength += length - (waiting.get(run) ?? 0)
    waiting.set(run, length)
    for (const oldest of waiting.keys()) {
      if (waitingLength <= mostWaiting) break
      const { row, recent } = cached.get(oldest)!
      if (row.status !== 'running') drop(oldest)
      else {
        recent.stopWaiting()
        uncount(oldest)
      }
    }
  }

  return {
    get: (run) => cached.get(run),
    runs: () => cached.keys(),
    set(run, row) {
      drop(run)
      cached.set(run, { row, recent: createLiveTail(), toLine: createEntryLines() })
    },
    add(run, row, entries, length) {
      let head = cached.get(run)
      if (head === undefined) cached.set(run, (head = { row, recent: createLiveTail(), toLine: createEntryLines() }))
      head.row = row
      head.recent.push(entries, length)
      return head
    },
    trim(run, { row, recent }) {
      const isRunning = row.status === 'running'
      // The woken reader may have been the last one.
      if (cached.get(run)?.recent !== recent) return
      if (recent.waits || (!isRunning && recent.readers.size > 0)) count(run, recent)
      else if (isRunning) uncount(run)
      else drop(run)
    },
    left(run, recent) {
      const head = cached.get(run)
      if (head && head.recent === recent && head.row.status !== 'running' && recent.readers.size === 0) drop(run)
    },
    forget: drop,
    clear() {
      cached.clear()
      waiting.clear()
      waitingLength = 0
    },
  }
}
