/** How many runs go on and how many wait, kept up to date. */
import { useEffect, useState } from 'react'
import type { RunRow, RunStatus } from '../../src/part/log.ts'
import { api } from '../data/client.ts'
import { followRows } from '../data/live.ts'
import { useConnection } from '../data/hooks.ts'
import { useResource } from '../data/resource.ts'

export interface RunCounts {
  running: number
  waiting: number
  /** There may be more: no more than this many are asked for. */
  isCut: boolean
}

const most = 200

export function useRunCounts(): RunCounts | undefined {
  const { state } = useConnection()
  const isHere = state !== 'offline' && state !== 'unauthorized'
  const { value, reload } = useResource(isHere ? 'active-runs' : undefined, async (signal) => {
    const path = `/api/runs?status=running,suspended&limit=${most}`
    const { runs } = await api<{ runs: RunRow[] }>(path, { signal })
    return new Map(runs.map(({ id, status }) => [id, status]))
  })
  const [changed, setChanged] = useState<ReadonlyMap<string, RunStatus>>(new Map())
  useEffect(() => {
    setChanged(new Map())
    return followRows((rows) => setChanged((before) => withRows(before, rows)))
  }, [value])
  useEffect(() => {
    if (state === 'open') reload()
  }, [state, reload])
  if (value === undefined) return undefined
  return { ...countOf(value, changed), isCut: value.size >= most }
}

function withRows(before: ReadonlyMap<string, RunStatus>, rows: readonly RunRow[]): ReadonlyMap<string, RunStatus> {
  if (rows.every(({ id, status }) => before.get(id) === status)) return before
  return new Map([...before, ...rows.map(({ id, status }) => [id, status] as const)])
}

export function countOf(
  known: ReadonlyMap<string, RunStatus>,
  changed: ReadonlyMap<string, RunStatus>,
): { running: number; waiting: number } {
  const all = [...new Map([...known, ...changed]).values()]
  return {
    running: all.filter((status) => status === 'running').length,
    waiting: all.filter((status) => status === 'suspended').length,
  }
}
