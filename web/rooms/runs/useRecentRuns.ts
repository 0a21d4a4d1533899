/** The runs of the last minutes, and those that still go on or wait, of those that the list shows, as they change. */
import { useEffect, useState } from 'react'
import { hasEnded, type RunRow } from '../../../src/part/log.ts'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { fits, recentPaths, type RunFilter } from './run-filter.ts'

const most = 400

/** `ms`: how far back. `undefined`: none are loaded. */
export function useRecentRuns(filter: RunFilter, ms: number | undefined): readonly RunRow[] {
  const [rows, setRows] = useState<readonly RunRow[]>([])
  // A timeline has one order.
  const key = JSON.stringify({ ...filter, sort: undefined, order: undefined })
  useEffect(() => {
    if (ms === undefined) return
    const wanted = JSON.parse(key) as RunFilter
    const known = new Map<string, RunRow>()
    let frame: number | undefined
    let hasLeft = false
    const take = (news: readonly RunRow[]) => {
      const from = Date.now() - ms
      for (const row of news) {
        if ((known.get(row.id)?.lastSeq ?? -1) <= row.lastSeq && isShown(row, from)) known.set(row.id, row)
      }
      frame ??= requestAnimationFrame(() => {
        frame = undefined
        const kept = [...known.values()].filter((row) => isShown(row, Date.now() - ms))
        const latest = kept.sort((a, b) => b.startedAt - a.startedAt).slice(0, most)
        known.clear()
        for (const row of latest) known.set(row.id, row)
        setRows(latest)
      })
    }
    for (const path of recentPaths(wanted, ms, most, Date.now())) {
      void api<{ runs: RunRow[] }>(path).then(
        ({ runs }) => !hasLeft && take(runs),
        () => undefined,
      )
    }
    // As in the list: one that is shown stays, whatever becomes of it.
    const leave = followRows((news) => take(news.filter((row) => known.has(row.id) || fits(wanted, row, Date.now()))))
    return () => {
      hasLeft = true
      leave()
      if (frame !== undefined) cancelAnimationFrame(frame)
    }
  }, [key, ms])
  return rows
}

function isShown({ status, updatedAt }: RunRow, from: number): boolean {
  return updatedAt >= from || !hasEnded(status)
}
