/** When runs waited for somebody, for the bars of the timeline: a row says only that a run waits now. */
import { useEffect, useState } from 'react'
import type { RunRow } from '../../../src/part/log.ts'
import type { Entry } from '../../../src/part/entry.ts'
import { fetchApi } from '../../data/client.ts'

export interface Wait {
  from: number
  /** Absent: it still waits. */
  to?: number
}

/** Shorter runs have not waited for long. */
const shortest = 5000
/** Runs that are read: each once, and again when it has gone on. */
const most = 100

export function useWaits(rows: readonly RunRow[]): ReadonlyMap<string, readonly Wait[]> {
  const [waits, setWaits] = useState<ReadonlyMap<string, readonly Wait[]>>(new Map())
  const [read] = useState(() => new Map<string, string>())
  useEffect(() => {
    const wanted = rows.filter(({ id, status, startedAt, updatedAt, endedAt = updatedAt }) => {
      const isLong = status === 'suspended' || endedAt - startedAt >= shortest
      return isLong && read.get(id) !== status
    })
    for (const { id, status } of wanted.slice(0, most)) {
      read.set(id, status)
      readWaits(id).then(
        (found) => {
          if (found.length > 0) setWaits((before) => new Map(before).set(id, found))
        },
        () => read.delete(id),
      )
    }
  }, [rows, read])
  return waits
}

async function readWaits(id: string): Promise<Wait[]> {
  const types = 'run-start,suspend,resume,run-end'
  const response = await fetchApi(
    `/api/runs/${encodeURIComponent(id)}/events?${new URLSearchParams({ types, limit: '1000' })}`,
  )
  const waits: Wait[] = []
  let shared = 0
  for (const line of (await response.text()).split('\n')) {
    if (line === '') continue
    const { type, seq, timestamp, ...entry } = JSON.parse(line) as Entry
    const last = waits.at(-1)
    if (type === 'run-start') shared = (entry as { forkedFrom?: { seq: number } }).forkedFrom?.seq ?? 0
    else if (type === 'suspend' && seq > shared) waits.push({ from: timestamp })
    else if (type !== 'suspend' && last !== undefined && last.to === undefined) last.to = timestamp
  }
  return waits
}
