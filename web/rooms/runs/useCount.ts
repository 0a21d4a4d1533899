/** How many runs fit, and how many there are: counted by the server up to a bound, and again when runs have begun. */
import { useEffect } from 'react'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { useResource } from '../../data/resource.ts'
import { countPath, type RunFilter } from './run-filter.ts'
import type { Counted } from './say-count.ts'

/** A busy server begins many runs a second. */
const rest = 5000

export function useCount(filter: RunFilter | undefined): { counted: Counted | undefined; reload(): void } {
  // The order changes no number.
  const key = filter && `count ${JSON.stringify({ ...filter, sort: undefined, order: undefined })}`
  const { value, reload } = useResource(key, (signal) => api<Counted>(countPath(filter!, Date.now()), { signal }))
  useEffect(() => {
    if (key === undefined) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = followRows((rows) => {
      if (!rows.some(({ lastSeq, endedAt }) => lastSeq < 5 || endedAt !== undefined)) return
      timer ??= setTimeout(() => {
        timer = undefined
        reload()
      }, rest)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [key, reload])
  return { counted: value, reload }
}
