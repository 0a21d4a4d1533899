/**
 * Runs that wait for somebody, and what they ask. The requests are read when they are shown. One that is answered stays where it is, so that nothing
 * moves under the pointer.
 */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { RequestView } from '../../../src/fold/run-view.ts'
import type { RunRow } from '../../../src/part/log.ts'
import { api } from '../../data/client.ts'
import { useKeyState } from '../../data/key.ts'
import { followRows } from '../../data/live.ts'
import { useResource } from '../../data/resource.ts'
import { fits, listPath, type RunFilter } from './run-filter.ts'

export interface WaitingRun {
  run: RunRow
  request: RequestView
  /** It is not open any more: answered here or elsewhere, or closed. */
  isDone: boolean
}

export interface UsedWaiting {
  /** How many runs of the filter wait. */
  count: number
  /** There may be more: no more than this many are asked for. */
  isCut: boolean
  /** Their requests, if they are shown, and those that are done. */
  waiting: readonly WaitingRun[]
  /** Takes those that are done off the list. */
  tidy(): void
}

const most = 100

/** `isShown`: the requests are wanted, not only the number of the runs. */
export function useWaiting(filter: RunFilter, isShown: boolean): UsedWaiting {
  const [runs, setRuns] = useState<ReadonlyMap<string, RunRow>>(new Map())
  const [waiting, setWaiting] = useState<readonly WaitingRun[]>([])
  const [isCut, setCut] = useState(false)
  const { changes } = useKeyState()
  useEffect(() => {
    const leave = new AbortController()
    const note = (rows: readonly RunRow[]) => setRuns((before) => withRows(before, rows))
    void api<{ runs: RunRow[] }>(`/api/runs?status=suspended&limit=${most}`, { signal: leave.signal }).then(
      (found) => {
        setCut(found.runs.length >= most)
        note(found.runs)
      },
      () => undefined,
    )
    const stop = followRows(note)
    return () => {
      leave.abort()
      stop()
    }
  }, [changes])

  const isOfFilter = useFilter(filter)
  const wanted = useMemo(() => [...runs.values()].filter(isOfFilter), [runs, isOfFilter])
  /** Up to which entry the requests of a run are known. */
  const seen = useRef(new Map<string, number>())
  useEffect(() => {
    if (!isShown) return
    const fresh = wanted.filter(({ id, lastSeq }) => (seen.current.get(id) ?? 0) < lastSeq)
    for (const { id, lastSeq } of fresh) seen.current.set(id, lastSeq)
    void Promise.all(fresh.map(requestsOf)).then((found) => {
      const known = found.filter((each) => each !== undefined)
      if (known.length > 0) setWaiting((before) => withRequests(before, known))
      for (const [i, { id }] of fresh.entries()) if (found[i] === undefined) seen.current.delete(id)
    })
  }, [isShown, wanted])
  // What waits no more has no open request.
  useEffect(() => {
    setWaiting((before) =>
      before.some(({ run, isDone }) => !isDone && !runs.has(run.id))
        ? before.map((each) => (runs.has(each.run.id) ? each : { ...each, isDone: true }))
        : before,
    )
  }, [runs, waiting])
  const tidy = useCallback(() => setWaiting((before) => before.filter(({ isDone }) => !isDone)), [])
  const shown = useMemo(() => waiting.filter(({ run }) => isOfFilter(run)), [waiting, isOfFilter])
  return { count: wanted.length, isCut, waiting: shown, tidy }
}

/** Whether a run that waits, or has waited, is of the filter. Words are found by the server, in any text of the run. */
function useFilter(filter: RunFilter): (run: RunRow) => boolean {
  const { status, q } = filter
  const asked = { ...filter, status: ['suspended'], sort: undefined }
  const found = useResource(q === undefined ? undefined : `waits ${JSON.stringify(asked)}`, (signal) =>
    api<{ runs: RunRow[] }>(listPath(asked, { before: undefined, limit: most }, Date.now()), { signal }),
  ).value
  const isWanted = status.length === 0 || status.includes('suspended')
  const key = JSON.stringify(filter)
  return useMemo(() => {
    const having = new Set(found?.runs.map(({ id }) => id))
    const rest = { ...(JSON.parse(key) as RunFilter), status: [] }
    return (run) => isWanted && fits({ ...rest, q: having.has(run.id) ? undefined : rest.q }, run, Date.now())
  }, [isWanted, key, found])
}

function withRows(before: ReadonlyMap<string, RunRow>, rows: readonly RunRow[]): ReadonlyMap<string, RunRow> {
  const next = new Map(before)
  let isChanged = false
  for (const run of rows) {
    if (run.status === 'suspended') {
      if ((next.get(run.id)?.lastSeq ?? 0) < run.lastSeq) isChanged = next.set(run.id, run).size > 0
    } else if (next.delete(run.id)) isChanged = true
  }
  return isChanged ? next : before
}

export interface FoundRequests {
  run: RunRow
  requests: readonly RequestView[]
}

async function requestsOf(run: RunRow): Promise<FoundRequests | undefined> {
  try {
    const { requests } = await api<{ requests: RequestView[] }>(`/api/runs/${encodeURIComponent(run.id)}/requests`)
    return { run, requests }
  } catch {
    return undefined
  }
}

/** What has waited longest stands first, as its time is over first; what comes later is added at the end. */
export function withRequests(before: readonly WaitingRun[], found: readonly FoundRequests[]): readonly WaitingRun[] {
  const open = new Map(found.map((each) => [each.run.id, each]))
  const known = new Set(before.map(keyOf))
  const kept = before.map((each): WaitingRun => {
    const now = open.get(each.run.id)
    if (now === undefined) return each
    return { ...each, isDone: !now.requests.some(({ requestId }) => requestId === each.request.requestId) }
  })
  const fresh = found
    .flatMap(({ run, requests }) => requests.map((request): WaitingRun => ({ run, request, isDone: false })))
    .filter((each) => !known.has(keyOf(each)))
    .sort((a, b) => a.request.timestamp - b.request.timestamp)
  return [...kept, ...fresh]
}

export function keyOf({ run, request }: Pick<WaitingRun, 'run' | 'request'>): string {
  return `${run.id} ${request.requestId}`
}
