/** Open requests of suspended runs. One that is answered stays where it is, so that nothing moves under the pointer. */
import { useCallback, useEffect, useState } from 'react'
import type { EntryOf } from '../../../src/part/entry.ts'
import type { RunRow } from '../../../src/part/log.ts'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'

export interface WaitingRun {
  run: RunRow
  request: EntryOf<'request'>
  /** It is not open any more: answered here or elsewhere, or closed. */
  isDone: boolean
}

export interface UsedWaiting {
  waiting: readonly WaitingRun[]
  /** Takes those that are done off the list. */
  tidy(): void
}

const most = 100

export function useWaiting(): UsedWaiting {
  const [waiting, setWaiting] = useState<readonly WaitingRun[]>([])
  useEffect(() => {
    const leave = new AbortController()
    /** Up to which entry the requests of a run are known. */
    const seen = new Map<string, number>()
    const read = async (run: RunRow) => {
      const path = `/api/runs/${encodeURIComponent(run.id)}/requests`
      const { requests } = await api<{ requests: EntryOf<'request'>[] }>(path, { signal: leave.signal })
      if (leave.signal.aborted) return
      setWaiting((before) => withRequests(before, run, requests))
    }
    const look = (rows: readonly RunRow[]) => {
      for (const run of rows) {
        if (run.status === 'suspended' && (seen.get(run.id) ?? 0) < run.lastSeq) {
          seen.set(run.id, run.lastSeq)
          read(run).catch(() => seen.delete(run.id))
        } else if (run.status !== 'suspended' && seen.delete(run.id)) {
          setWaiting((before) => withRequests(before, run, []))
        }
      }
    }
    const path = `/api/runs?status=suspended&limit=${most}`
    void api<{ runs: RunRow[] }>(path, { signal: leave.signal }).then(
      ({ runs }) => look(runs),
      () => undefined,
    )
    const stop = followRows(look)
    return () => {
      leave.abort()
      stop()
    }
  }, [])
  const tidy = useCallback(() => setWaiting((before) => before.filter(({ isDone }) => !isDone)), [])
  return { waiting, tidy }
}

/** New requests come last. */
export function withRequests(
  before: readonly WaitingRun[],
  run: RunRow,
  open: readonly EntryOf<'request'>[],
): readonly WaitingRun[] {
  const isOpen = new Set(open.map(({ requestId }) => requestId))
  const known = new Set<string>()
  const kept = before.map((each): WaitingRun => {
    if (each.run.id !== run.id) return each
    known.add(each.request.requestId)
    return { run, request: each.request, isDone: !isOpen.has(each.request.requestId) }
  })
  const fresh = open.filter(({ requestId }) => !known.has(requestId))
  return [...kept, ...fresh.map((request): WaitingRun => ({ run, request, isDone: false }))]
}
