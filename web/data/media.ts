/** What the screen is, and what time it is, as they change. */
import { useCallback, useEffect, useLayoutEffect, useState, useSyncExternalStore, type RefObject } from 'react'

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

/** Little height, as at a zoom of 200 %: what is not a row gives way, and rows of two lines are one. */
export function useLow(): boolean {
  return useMedia('(max-height: 560px) and (min-width: 560px)')
}

/** The width of an element, in px. */
export function useWidth(ref: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(() => innerWidth)
  useLayoutEffect(() => {
    const element = ref.current!
    const measure = () => setWidth(element.clientWidth)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [ref])
  return width
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
