/** A value of the server that is loaded when a component needs it, and again when asked. */
import { useCallback, useEffect, useRef, useState } from 'react'
import { useKeyState } from './key.ts'

export interface Resource<T> {
  /** The last one that was loaded; it stays while it is loaded again or cannot be. */
  value: T | undefined
  error: unknown
  isLoading: boolean
  reload(): void
}

/** `key`: what is loaded; another key drops the value. `undefined` loads nothing. */
export function useResource<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const [state, setState] = useState<{ key?: string; value?: T; error?: unknown; isLoading: boolean }>({
    isLoading: true,
  })
  const [round, setRound] = useState(0)
  // What was refused is asked for again with another credential.
  const { changes } = useKeyState()
  const loader = useRef(load)
  useEffect(() => {
    loader.current = load
  })
  useEffect(() => {
    if (key === undefined) return
    const leave = new AbortController()
    setState((before) => (before.key === key ? { ...before, isLoading: true } : { key, isLoading: true }))
    loader.current(leave.signal).then(
      (value) => !leave.signal.aborted && setState({ key, value, isLoading: false }),
      (error: unknown) => !leave.signal.aborted && setState((before) => ({ ...before, key, error, isLoading: false })),
    )
    return () => leave.abort()
  }, [key, round, changes])
  const reload = useCallback(() => setRound((n) => n + 1), [])
  const isCurrent = state.key === key
  return {
    value: isCurrent ? state.value : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: key !== undefined && (!isCurrent || state.isLoading),
    reload,
  }
}
