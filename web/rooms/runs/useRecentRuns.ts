/** The runs of the last minutes, and those that still go on or wait, of all agents, as they change. */
import { useEffect, useState } from 'react'
import { hasEnded, type RunRow } from '../../../src/part/log.ts'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'

const most = 400

/** `ms`: how far back. `undefined`: none are loaded. */
export function useRecentRuns(ms: number | undefined): readonly RunRow[] {
  const [rows, setRows] = useState<readonly RunRow[]>([])
  useEffect(() => {
    if (ms === undefined) return
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
    // What waits may have begun long before.
    for (const which of [`since=${Date.now() - ms}`, 'status=running,suspended']) {
      void api<{ runs: RunRow[] }>(`/api/runs?limit=${most}&${which}`).then(
        ({ runs }) => !hasLeft && take(runs),
        () => undefined,
      )
    }
    const leave = followRows(take)
    return () => {
      hasLeft = true
      leave()
      if (frame !== undefined) cancelAnimationFrame(frame)
    }
  }, [ms])
  return rows
}

function isShown({ status, updatedAt }: RunRow, from: number): boolean {
  return updatedAt >= from || !hasEnded(status)
}
