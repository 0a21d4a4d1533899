/** The window's title. */
import { useEffect, useSyncExternalStore } from 'react'

let title: string | undefined
const listeners = new Set<() => void>()

function tell(next: string | undefined): void {
  title = next
  for (const listener of listeners) listener()
}

/** What a room calls what it shows, such as the first words of a run: in the window's title and in the header. */
export function useTitle(text: string | undefined): void {
  useEffect(() => {
    tell(text)
    return () => tell(undefined)
  }, [text])
}

export function useRoomTitle(): string | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => title,
  )
}
