/** One reader of a run: it gets cached entries if it keeps up, otherwise pages of the table. */
import type { Entry } from '../../part/entry.ts'
import { hasEnded } from '../../part/log.ts'
import type { Puller } from '../follow.ts'
import type { RowCache } from '../row-cache.ts'
import { refuseMerged, type Position, type LiveTail } from '../live-tail-cache.ts'
import type { Dropped } from './batch-index.ts'
import { pageRows, type SqlitePages } from './pages.ts'
import type { RunTable } from './runs.ts'
import { runDropped } from '../store-error.ts'

interface Sources {
  rowCache: RowCache
  runs: RunTable
  pages: SqlitePages
  /** Recently deleted runs. */
  dropped: Pick<Dropped, 'has'>
}

export interface Wanted {
  run: string
  after: number
  limit?: number | undefined
  /** Whether it waits for more; if not, it ends with the entries stored at its first pull. */
  follows: boolean
  types?: readonly Entry['type'][] | undefined
}

export function createTickReader(
  { rowCache, runs, pages, dropped }: Sources,
  { run, after, limit = pageRows, types, follows }: Wanted,
): Puller<Entry[]> {
  const position: Position = { seq: after }
  const rows = Math.max(1, Math.min(limit, pageRows))
  let joined: LiveTail | undefined
  let seen = false
  let end: number | undefined

  return {
    pull() {
      const head = rowCache.get(run)
      const row = head?.row ?? runs.get(run)
      if (joined !== head?.recent) {
        joined?.readers.delete(position)
        joined = head?.recent
        joined?.readers.add(position)
        joined?.stopWaiting()
      }
      const { seq } = position
      if (row === undefined) {
        if (seen || dropped.has(run)) throw runDropped(run)
        // The run may start later.
        return 'wait'
      }
      seen = true
      end ??= follows ? Infinity : row.lastSeq
      if (seq >= row.lastSeq) return hasEnded(row.status) ? 'end' : 'wait'
      const near = joined?.after(seq)
      const value = near ?? pages.read(run, seq, rows, types)
      refuseMerged(run, seq, value)
      const last = value.at(-1)
      if (!last) {
        const missing = `no entry after seq ${seq}, but the last seq of the run is ${row.lastSeq}`
        throw new Error(`${missing}: the file is damaged`)
      }
      position.seq = last.seq
      joined?.taken()
      const isLast = last.seq >= end || (hasEnded(row.status) && last.seq >= row.lastSeq)
      return { value, stored: near === undefined, last: isLast }
    },
    leave() {
      joined?.readers.delete(position)
      if (joined) rowCache.left(run, joined)
    },
  }
}
