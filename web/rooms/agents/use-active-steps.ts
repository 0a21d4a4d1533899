/** Which steps of an agent run now: of its newest run that goes on. */
import { useEffect, useState } from 'react'
import type { RunRow } from '../../../src/part/log.ts'
import { api } from '../../data/client.ts'
import { followRows, followRun } from '../../data/live.ts'
import { createOpenSteps } from './open-steps.ts'

const none: ReadonlySet<string> = new Set()

export function useActiveSteps(agent: string): ReadonlySet<string> {
  const [run, setRun] = useState<string>()
  const [active, setActive] = useState(none)
  useEffect(() => {
    const take = (rows: readonly RunRow[]) => {
      const own = rows.filter((row) => row.agent === agent)
      const newest = own.filter(({ status }) => status === 'running').sort((a, b) => b.startedAt - a.startedAt)[0]
      setRun((before) => newest?.id ?? (own.some(({ id }) => id === before) ? undefined : before))
    }
    const leave = new AbortController()
    const path = `/api/runs?status=running&limit=1&agent=${encodeURIComponent(agent)}`
    api<{ runs: RunRow[] }>(path, { signal: leave.signal }).then(
      ({ runs }) => !leave.signal.aborted && take(runs),
      () => undefined,
    )
    const stop = followRows(take)
    return () => {
      leave.abort()
      stop()
    }
  }, [agent])
  useEffect(() => {
    if (run === undefined) return
    const open = createOpenSteps()
    let frame: number | undefined
    const leave = followRun(run, 0, {
      onEntries(entries) {
        for (const entry of entries) open.apply(entry)
        frame ??= requestAnimationFrame(() => {
          frame = undefined
          const ids = open.ids()
          setActive((before) => (before.size === ids.size && [...ids].every((id) => before.has(id)) ? before : ids))
        })
      },
    })
    return () => {
      leave()
      if (frame !== undefined) cancelAnimationFrame(frame)
      setActive(none)
    }
  }, [run])
  return active
}
