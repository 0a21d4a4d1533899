/** What the screen is, and what time it is, as they change. */
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react'

export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const list = matchMedia(query)
      list.addEventListener('change', listener)
      return () => list.removeEventListener('change', listener)
    },
    [query],
  )
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches)
}

/** A narrow screen: one pane, rows of two lines. */
export function useNarrow(): boolean {
  return useMedia('(max-width: 720px)')
}

/** A low screen, such as a desk at a zoom of 200 %, or a phone on its side. */
export function useLow(): boolean {
  return useMedia('(max-height: 560px)')
}

/** Epoch ms, every so often. A hidden tab is not woken. */
export function useNow(every: number): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && setNow(Date.now()), every)
    return () => clearInterval(timer)
  }, [every])
  return now
}
