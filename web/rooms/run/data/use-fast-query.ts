/** A parameter of the URL that changes while something is dragged: shown at once, written a few times a second. */
import { useCallback, useEffect, useRef, useState } from 'react'
import type { Query } from '../../../data/query.ts'

/** Browsers refuse more than a few changes of the URL per second. */
const pause = 250

export function useFastQuery(
  { get, set }: Query,
  name: string,
): [value: string | undefined, change: (value: string | undefined) => void] {
  const [own, setOwn] = useState<{ value: string | undefined }>()
  const latest = useRef<string | undefined>(undefined)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const write = useRef(set)
  useEffect(() => {
    write.current = set
  })
  useEffect(() => () => clearTimeout(timer.current), [])
  const change = useCallback(
    (value: string | undefined) => {
      latest.current = value
      setOwn({ value })
      timer.current ??= setTimeout(() => {
        timer.current = undefined
        write.current({ [name]: latest.current }, { replace: true })
        setOwn(undefined)
      }, pause)
    },
    [name],
  )
  return [own === undefined ? get(name) : own.value, change]
}
