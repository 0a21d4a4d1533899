/** What lies over the page: the palette or the list of keys. One at a time. */
import { useSyncExternalStore } from 'react'

export type Overlay = 'palette' | 'keys' | 'key'

let shown: Overlay | undefined
const listeners = new Set<() => void>()

export function show(overlay: Overlay): void {
  tell(overlay)
}

/** Another one that has been shown since stays: a dialog tells of its end late. */
export function hide(overlay: Overlay): void {
  if (shown === overlay) tell(undefined)
}

function tell(next: Overlay | undefined): void {
  shown = next
  for (const listener of listeners) listener()
}

export function useOverlay(): Overlay | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => shown,
  )
}
