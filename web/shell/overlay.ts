/** What lies over the page: the palette, the list of keys or the sign-in. One at a time. */
import { useSyncExternalStore } from 'react'
import { loadWays } from '../data/sign-in.ts'

export type Overlay = 'palette' | 'keys' | 'sign-in'

let shown: Overlay | undefined
const listeners = new Set<() => void>()

export function show(overlay: Overlay): void {
  tell(overlay)
}

/** Once it is known how to sign in, so that nothing moves under who types. */
export function showSignIn(): void {
  void loadWays().then(() => show('sign-in'))
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
