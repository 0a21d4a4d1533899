/** Conversations as they change: read again, at most once a second, after their runs have changed. */
import type { ThreadRow } from '../../src/part/thread.ts'
import { followRows } from './live.ts'

export function followThreads(
  load: (limit: number) => Promise<ThreadRow[]>,
  onRows: (rows: readonly ThreadRow[]) => void,
): () => void {
  let changed = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let hasLeft = false
  const look = async () => {
    const wanted = changed
    changed = new Set()
    // A thread whose run has begun or changed just now is among the first.
    const rows = await load(50).catch((): ThreadRow[] => [])
    timer = undefined
    if (hasLeft) return
    onRows(rows.filter(({ id }) => wanted.has(id)))
    if (changed.size > 0) timer = setTimeout(() => void look(), 1000)
  }
  const leave = followRows((runs) => {
    for (const { threadId } of runs) changed.add(threadId)
    if (changed.size > 0) timer ??= setTimeout(() => void look(), 300)
  })
  return () => {
    hasLeft = true
    clearTimeout(timer)
    leave()
  }
}
