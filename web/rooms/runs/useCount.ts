/** How many runs fit, and how many there are: counted by the server up to a bound, and again when runs have begun. */
import { useEffect } from 'react'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { useResource } from '../../data/resource.ts'
import { countPath, type RunFilter } from './run-filter.ts'

export interface Counted {
  count: number
  /** There are more. */
  isMore: boolean
}

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

/** `9 of 316`, `1,000+ runs`. */
export function sayCount(fitting: Counted | undefined, all: Counted | undefined): string {
  const say = ({ count, isMore }: Counted) => `${count.toLocaleString('en-US')}${isMore ? '+' : ''}`
  const shown = fitting ?? all
  if (shown === undefined) return ''
  if (fitting === undefined || all === undefined) return `${say(shown)} ${shown.count === 1 ? 'run' : 'runs'}`
  return `${say(fitting)} of ${say(all)}`
}
